// Command site makes the pages of the documentation: see internal/site.
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/site"
)

func main() { os.Exit(site.Main(os.Args[1:], os.Stdout, os.Stderr)) }
