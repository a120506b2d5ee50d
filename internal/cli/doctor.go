package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/toolchain"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

func doctorCommand() *command {
	return &command{name: "doctor", doc: "print what is installed, what is missing and how to install it", run: runDoctor,
		flags: []*flag{nvccFlag, installFlag, yesFlag},
		long: `
Exits with 0 when "fencepost run prog.cu" can work here, with 3 when something is missing. "fencepost check" of PTX files
and of the corpus needs none of it. With --install it puts NVIDIA's compiler into the user's cache, by pip, if there is none.`}
}

func runDoctor(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) > 0 {
		return 0, usagef("doctor takes no arguments")
	}
	if o.install {
		if err := install(ctx, e, o); err != nil {
			return 0, err
		}
	}
	checks := []toolchain.Check{checkSystem()}
	if checks[0].Problem == "" {
		checks = append(checks, toolchain.Doctor(ctx, &toolchain.Finder{NVCC: o.nvcc})...)
		checks = append(checks, checkLibraries(ctx), checkMemory(), checkGPU(ctx))
	}
	checks = append(checks, checkTier())
	missing := 0
	for i := range checks {
		writeCheck(e.stdout, &checks[i])
		if checks[i].Problem != "" && checks[i].Needed {
			missing++
		}
	}
	if missing > 0 {
		fmt.Fprintf(e.stdout, "\nCUDA programs cannot be compiled and run here yet. \"fencepost check\" of PTX works without all this.\n")
		return exitNotChecked, nil
	}
	fmt.Fprintf(e.stdout, "\nReady: fencepost run prog.cu\n")
	return exitClean, nil
}

var installFlag = &flag{"install", "", "install NVIDIA's compiler into the user's cache by pip, unless one is installed",
	func(o *options, v string) error { o.install = true; return nil }}

var yesFlag = &flag{"yes", "", "install without asking",
	func(o *options, v string) error { o.yes = true; return nil }}

// install installs a compiler where there is none, and asks before.
func install(ctx context.Context, e *env, o *options) error {
	f := &toolchain.Finder{NVCC: o.nvcc}
	if nvcc, err := f.FindNVCC(ctx); err == nil {
		fmt.Fprintf(e.stderr, "fencepost: nvcc %s is there: %s\n", nvcc.Version, nvcc.Path)
		return nil
	}
	if !o.yes {
		fmt.Fprintf(e.stderr, "fencepost: install NVIDIA's CUDA compiler (some 500 MB, under NVIDIA's licence) with pip into %s? [y/N] ", f.InstallFolder())
		answer, _ := bufio.NewReader(e.stdin).ReadString('\n')
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
			return nil
		}
	}
	_, err := f.Install(ctx, e.stderr)
	return err
}

func checkSystem() toolchain.Check {
	c := toolchain.Check{Name: "system", Purpose: runtime.GOOS + " on " + runtime.GOARCH, Needed: true}
	if err := cuda.Supported(); err != nil {
		c.Problem = err.Error()
	}
	return c
}

// checkLibraries builds the stand-in libraries, which no toolchain can be blamed for alone.
func checkLibraries(ctx context.Context) toolchain.Check {
	c := toolchain.Check{Name: "stand-in libraries", Purpose: "take the place of the CUDA runtime and driver", Needed: true}
	if _, err := libraries(ctx, io.Discard); err != nil {
		c.Problem = err.Error()
	}
	return c
}

func checkMemory() toolchain.Check {
	c := toolchain.Check{Name: "device memory", Purpose: "holds the memory of the emulated GPU", Needed: true,
		Remedy: "raise the limit on address space (ulimit -v unlimited); Linux 3.17 or newer is needed"}
	d, err := cuda.NewDevice(cuda.Config{Engine: engine.NewRef()})
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		c.Problem = err.Error()
	}
	return c
}

// checkGPU says whether instrumented programs can run on a GPU.
func checkGPU(ctx context.Context) toolchain.Check {
	c := toolchain.Check{Name: "GPU", Purpose: "runs instrumented programs, by --device gpu"}
	name, _, err := findGPU(ctx, io.Discard)
	if err != nil {
		c.Problem, c.Remedy = err.Error(), "none is needed; where there is one, install NVIDIA's driver"
		return c
	}
	c.Purpose += ": " + name
	return c
}

// checkTier says how the lanes of a warp are computed, of which nothing but the speed depends.
func checkTier() toolchain.Check {
	how := "Go code, which is four to twenty times slower than machine code for AVX2"
	switch {
	case lanes.Best() == lanes.Compiling && runtime.GOARCH == "arm64":
		how = "machine code for NEON, made at run time; it was tested in an emulator, and its speed was not measured"
	case lanes.Best() == lanes.Compiling:
		how = "machine code for AVX2, made at run time"
	}
	c := toolchain.Check{Name: "speed of kernels", Purpose: fmt.Sprintf("lanes are computed by %s (tier %s)", how, lanes.Best())}
	if err := lanes.TierError(); err != nil {
		c.Problem, c.Remedy = err.Error(), "unset "+lanes.TierVariable
	}
	return c
}

func writeCheck(w io.Writer, c *toolchain.Check) {
	state := "ok"
	switch {
	case c.Problem != "" && c.Needed:
		state = "MISSING"
	case c.Problem != "":
		state = "absent"
	}
	detail := c.Purpose
	if c.Tool != nil {
		detail = fmt.Sprintf("%s, %s (found by %s)", c.Tool.Version, c.Tool.Path, c.Tool.From)
	}
	fmt.Fprintf(w, "%-8s %-24s %s\n", state, c.Name, detail)
	if c.Problem != "" {
		fmt.Fprintf(w, "%9s%s\n", "", c.Problem)
		if c.Remedy != "" {
			fmt.Fprintf(w, "%9sremedy: %s\n", "", c.Remedy)
		}
	}
}
