package simt

import (
	"errors"

	"fencepost.dev/fencepost/internal/isa"
)

// Program is a module loaded into the memory of a device.
type Program struct {
	Module *isa.Module
	Memory *Memory
}

// PlaceTable numbers the places of a device.
type PlaceTable struct{}

// Memory is the global memory of a device.
type Memory struct{}

// What a run can end with besides success and cancellation.
var (
	ErrDeadlock = errors.New("no warp can make a step")
	ErrStopped  = errors.New("step limit reached")
	ErrTrap     = errors.New("the kernel trapped")
)
