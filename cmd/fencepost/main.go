// Fencepost finds data races in CUDA programs on a machine without a GPU.
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)) }
