package main

// asm is the assembly of one function being written.
type asm struct{}
