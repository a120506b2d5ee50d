package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/cuda/standin"
)

// pythonEnv is the environment, "NAME=value" each, with which a Python program finds the emulated GPU, be it the
// program that is run or one that it starts. Other programs ignore it. libs is the folder of the stand-in libraries.
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
		// Triton makes machine code with ptxas and caches it. A cache of its own keeps code for the emulator and for a
		// GPU apart.
		"TRITON_PTXAS_PATH=" + ptxas,
		"TRITON_PTXAS_BLACKWELL_PATH=" + ptxas + "-blackwell",
		"TRITON_LIBCUDA_PATH=" + libs,
		"TRITON_CACHE_DIR=" + filepath.Join(cache, "triton"),
		"TORCHINDUCTOR_CACHE_DIR=" + filepath.Join(cache, "inductor"),
		"TORCH_EXTENSIONS_DIR=" + filepath.Join(cache, "extensions"),
		"NUMBA_CACHE_DIR=" + filepath.Join(cache, "numba"),
		// With this setting torch allocates each tensor from the device, in stream order: an allocator that keeps
		// blocks would hide errors. Newer versions read the second name.
		"PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync",
		"PYTORCH_ALLOC_CONF=backend:cudaMallocAsync",
	}
	if self, err := os.Executable(); err == nil {
		env = append(env, "FENCEPOST_EXECUTABLE="+self)
	}
	names := []string{"FENCEPOST_SOCKET", "LD_LIBRARY_PATH"}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		names = append(names, name)
	}
	return append(env, "FENCEPOST_VARIABLES="+strings.Join(names, " ")) // for children that are given an environment of their own
}

// blind returns the flag with which a Python interpreter ignores the variables of pythonEnv or Fencepost's start-up
// module, and "" if there is none. program is the interpreter or a script whose first line names one.
func blind(program string, args []string) string {
	if line := firstLine(program); strings.HasPrefix(line, "#!") {
		words := strings.Fields(line[2:])
		for i, w := range words {
			if interpreter.MatchString(filepath.Base(w)) {
				return blindFlag(words[i+1:])
			}
		}
	}
	if !interpreter.MatchString(filepath.Base(program)) {
		return ""
	}
	return blindFlag(args)
}

var interpreter = regexp.MustCompile(`^python[0-9.]*$`)

func blindFlag(args []string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			return ""
		}
		if strings.HasPrefix(a, "--") {
			if a == "--check-hash-based-pycs" {
				i++
			}
			continue
		}
		for j, c := range a[1:] {
			switch c {
			case 'I', 'E', 'S':
				return "-" + string(c)
			case 'c', 'm':
				return ""
			case 'W', 'X': // with a value, here or in the next argument
				if j+2 == len(a) {
					i++
				}
			default:
				continue
			}
			break
		}
	}
	return ""
}

// firstLine is the first line of a script, and "" for another file.
func firstLine(name string) string {
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	return line
}

// tellEnv lists the environment variables of a program.
func tellEnv(w io.Writer, env []string) {
	for _, e := range env {
		fmt.Fprintf(w, "fencepost: set for Python: %s\n", e)
	}
}
