// Command release builds the archives and the Python wheels of a release: go run ./cmd/release -help.
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/release"
)

func main() { os.Exit(release.Main(os.Args[1:], os.Stdout, os.Stderr)) }
