//go:build !arm64

package codegen

// flush does nothing: x86-64 keeps instruction fetches coherent with data writes.
func flush([]byte) {}
