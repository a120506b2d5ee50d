// Command gen compiles the device code of each mode with nvcc.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"fencepost.dev/fencepost/internal/toolchain"
)

func main() {
	if err := compile(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func compile() error {
	nvcc, err := (&toolchain.Finder{}).FindNVCC(context.Background())
	if err != nil {
		return err
	}
	for _, mode := range []string{"log", "hirace"} {
		// The names of internal functions contain a hash of the seed.
		cmd := exec.Command(nvcc.Path, "-frandom-seed="+mode, "-ptx", "-rdc=true", "-arch=compute_75", mode+".cu", "-o", mode+".ptx")
		cmd.Dir = "device"
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}
