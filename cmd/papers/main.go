// Command papers makes docs/papers.md: the tables and figures of the papers that Fencepost implements, reproduced.
//
//	go run ./cmd/papers [-full] [-out FILE]
package main

import (
	"os"

	"fencepost.dev/fencepost/internal/papers"
)

func main() { os.Exit(papers.Main(os.Args[1:], os.Stdout, os.Stderr)) }
