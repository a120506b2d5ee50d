package isa

// SharedLayout places the shared variables that the kernel can reach.
func (m *Module) SharedLayout(kernel *Func) *Shared { return &Shared{} }

// Check gives everything wrong in the functions that the kernel can reach, itself included; nil when it can run.
// The error is a ptx.ErrorList.
func (m *Module) Check(kernel *Func) error { return kernel.Err }
