//go:build !arm64

package codegen

// flush does nothing: on x86-64, instructions are fetched as data is written.
func flush([]byte) {}
