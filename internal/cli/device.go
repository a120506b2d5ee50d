package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/instrument/gpu"
)

// Where kernels run, by --device. Auto is a GPU if there is one, and the emulator otherwise.
const (
	deviceWatched  = "watched"
	deviceEmulated = "emulated"
	deviceGPU      = "gpu"
	deviceAuto     = "auto"
)

// chooseGPU selects a GPU to run kernels if one is requested.
func (o *options) chooseGPU(ctx context.Context, e *env) error {
	if o.device != deviceGPU && o.device != deviceAuto {
		return nil
	}
	name, worker, err := findGPU(ctx, e.stderr)
	switch {
	case err == nil:
		fmt.Fprintf(e.stderr, "fencepost: kernels run on %s\n", name)
		o.session.Engine = func() engine.Engine { return gpu.New(worker) }
	case o.device == deviceGPU:
		return fmt.Errorf("no GPU can be used: %w\n  remedy: install NVIDIA's driver, or choose --device emulated", remedy(err))
	}
	return nil
}

// findGPU returns the name of the GPU on which launches can run, and the program that makes the driver's calls.
func findGPU(ctx context.Context, notes io.Writer) (name, worker string, err error) {
	libs, err := libraries(ctx, notes)
	if err != nil {
		return "", "", err
	}
	d, err := cuda.NewDevice(cuda.Config{Engine: engine.NewRef()})
	if err != nil {
		return "", "", err
	}
	defer d.Close()
	worker = filepath.Join(libs, calls.GPUWorker)
	name, err = gpu.Name(worker, d.Memory())
	return name, worker, err
}
