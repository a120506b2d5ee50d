// Command gen compiles the device code of the log, with nvcc.
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
	// Names of internal functions hold a hash of the seed.
	cmd := exec.Command(nvcc.Path, "-frandom-seed=log", "-ptx", "-rdc=true", "-arch=compute_75", "log.cu", "-o", "log.ptx")
	cmd.Dir = "device"
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
