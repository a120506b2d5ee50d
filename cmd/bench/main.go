// Command bench measures Fencepost: go run ./cmd/bench -help.
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/bench"
)

func main() { os.Exit(bench.Main(os.Args[1:], os.Stdout, os.Stderr)) }
