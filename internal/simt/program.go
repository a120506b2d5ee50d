package simt

import (
	"fencepost.dev/fencepost/internal/isa"
)

// Program is a module loaded into the memory of a device.
type Program struct {
	Module *isa.Module
	Memory *Memory
}

// Load places the variables of mod in mem.
func Load(mod *isa.Module, mem *Memory) (*Program, error) {
	return &Program{Module: mod, Memory: mem}, nil
}

// Unload frees the program's variables.
func (p *Program) Unload() {}

// Kernel gives the entry called name, nil when there is none.
func (p *Program) Kernel(name string) *isa.Func { return nil }

// Symbol gives the address and size of a variable.
func (p *Program) Symbol(name string) (addr, size uint64, ok bool) { return 0, 0, false }

// SharedVar names the shared variable of kernel that covers offset off of its window.
func (p *Program) SharedVar(kernel *isa.Func, off uint64) (name string, at uint64, ok bool) {
	return "", 0, false
}
