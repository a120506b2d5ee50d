//go:build !linux

package record

import (
	"context"
	"errors"
)

var errSystem = errors.New("programs are recorded on Linux only; traces can be judged here: fencepost analyze")

// Supported returns the error of Run.
func Supported() error { return errSystem }

// Run fails.
func Run(context.Context, Options) (Result, error) { return Result{}, errSystem }
