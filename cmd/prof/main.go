package main

import (
	"os"
	"runtime/pprof"

	"fencepost.dev/fencepost/internal/cli"
)

func main() {
	f, _ := os.Create(os.Getenv("FP_PROFILE"))
	pprof.StartCPUProfile(f)
	rc := cli.Main(os.Args, os.Stdin, os.Stdout, os.Stderr)
	pprof.StopCPUProfile()
	if m := os.Getenv("FP_HEAP"); m != "" {
		f, _ := os.Create(m)
		pprof.Lookup("allocs").WriteTo(f, 0)
		f.Close()
	}
	os.Exit(rc)
}
