package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/cuda/standin"
)

// pythonEnv is what a program is told in its environment for the Python that it is, or that it starts, to find the emulated
// GPU: "NAME=value" each. Other programs do not look at it. libs is the folder of the stand-in libraries.
func pythonEnv(libs string) []string {
	folder := filepath.Join(libs, standin.Python)
	cache := filepath.Dir(libs)
	start := filepath.Join(folder, "start") + string(filepath.ListSeparator) + folder
	if old := os.Getenv("PYTHONPATH"); old != "" {
		start += string(filepath.ListSeparator) + old
	}
	ptxas := filepath.Join(folder, "ptxas")
	env := []string{
		"PYTHONPATH=" + start,
		cuda.PythonEnv + "=" + folder,
		"FENCEPOST_LIBRARIES=" + libs,
		// Triton makes machine code with ptxas, and keeps it: in a cache of its own here, so that neither is taken for the other's.
		"TRITON_PTXAS_PATH=" + ptxas,
		"TRITON_PTXAS_BLACKWELL_PATH=" + ptxas,
		"TRITON_LIBCUDA_PATH=" + libs,
		"TRITON_CACHE_DIR=" + filepath.Join(cache, "triton"),
		"TORCHINDUCTOR_CACHE_DIR=" + filepath.Join(cache, "inductor"),
		"TORCH_EXTENSIONS_DIR=" + filepath.Join(cache, "extensions"),
		"NUMBA_CACHE_DIR=" + filepath.Join(cache, "numba"),
		// torch asks the device for each tensor, in stream order: an allocator that keeps blocks would hide errors. Newer versions
		// read the second name.
		"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
		"PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
	}
	if self, err := os.Executable(); err == nil {
		env = append(env, "FENCEPOST_EXECUTABLE="+self)
	}
	return env
}

// tellEnv lists what a program is told in its environment.
func tellEnv(w io.Writer, env []string) {
	for _, e := range env {
		fmt.Fprintf(w, "fencepost: set for Python: %s\n", e)
	}
}
