// Command mutate changes a package one small step at a time and checks that its tests notice: go run ./cmd/mutate
// -help.
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/mutate"
)

func main() { os.Exit(mutate.Main(os.Args[1:], os.Stdout, os.Stderr)) }
