package report

import (
	"path"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// systemRoots are folders in which nothing belongs to the user.
var systemRoots = []string{"/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/local/cuda", "/opt/cuda", "/opt/nvidia/"}

// toolkitFolders are folder names that, below a folder called include (or beside one, for cccl), hold headers of the
// CUDA toolkit.
var toolkitFolders = map[string]bool{"cccl": true, "cub": true, "thrust": true, "libcudacxx": true,
	"cooperative_groups": true, "crt": true, "nv": true}

// toolkitHeaders are name parts of the headers that lie directly in the toolkit's include folder and define device
// functions.
var toolkitHeaders = []string{"cuda_", "device_", "sm_", "math_functions", "cooperative_groups", "texture_", "surface_",
	"vector_functions", "cudart_platform", "driver_functions", "host_defines", "common_functions", "mma."}

// systemFile says that a source file belongs to the toolkit or the system, not to the user. The name is as the compiler
// wrote it. A user's own include folder is the user's: a folder called include counts only below a system root, below
// a folder called nvidia or cuda*, or for what is recognised as a header of the toolkit.
func systemFile(name string) bool {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	for _, root := range systemRoots {
		if strings.HasPrefix(name, root) {
			return true
		}
	}
	parts := strings.Split(name, "/")
	base := parts[len(parts)-1]
	folders := parts[:len(parts)-1]
	vendor, packages := false, false
	for i, p := range folders {
		switch {
		case p == "include":
			if vendor || packages || below(folders[i+1:]) {
				return true
			}
			if i == len(folders)-1 && toolkitHeader(base) {
				return true
			}
		case p == "site-packages" || p == "dist-packages":
			packages = true
		case p == "nvidia" || p == "cuda" || strings.HasPrefix(p, "cuda-"):
			vendor = true
		case p == "cccl":
			return true
		}
	}
	return false
}

// below says that the folders under an include folder are the toolkit's.
func below(folders []string) bool {
	return len(folders) > 0 && toolkitFolders[folders[0]]
}

func toolkitHeader(base string) bool {
	if !strings.HasSuffix(base, ".h") && !strings.HasSuffix(base, ".hpp") {
		return false
	}
	for _, p := range toolkitHeaders {
		if strings.HasPrefix(base, p) {
			return true
		}
	}
	return false
}

// toolkitHeaderName is how a header of the toolkit is included: "<cub/agent/agent_scan.cuh>".
func toolkitHeaderName(name string) (string, bool) {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	i := strings.LastIndex(name, "/include/")
	if i < 0 || !systemFile(name) {
		return "", false
	}
	return "<" + strings.TrimPrefix(name[i+len("/include/"):], "cccl/") + ">", true
}

// Internal says that a race is the toolkit's own business: a mild one, both of whose accesses its headers made in one
// call, or one between the steps of atomic functions that its headers make of a read and a compare-and-swap. Nothing in
// the user's code could order them.
func (f *Finding) Internal() bool {
	if f.Class != detect.Race || len(f.Accesses) != 2 {
		return false
	}
	if f.Kind == detect.MixedAtomic {
		return f.Accesses[0].ofAtomicFunction() && f.Accesses[1].ofAtomicFunction()
	}
	volatile := f.Accesses[0].Order == event.Volatile && f.Accesses[1].Order == event.Volatile
	if f.Kind != detect.VolatileOnly && f.Kind != detect.SameValue && !volatile {
		return false
	}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Host != "" || len(a.Frames) == 0 || !systemFile(a.Frames[0].File) {
			return false
		}
	}
	p, q := f.Accesses[0].Place(), f.Accesses[1].Place()
	if systemFile(p.File) || systemFile(q.File) {
		return systemFile(p.File) && systemFile(q.File)
	}
	return p.File == q.File && p.Line == q.Line && p.Column == q.Column
}

// ofAtomicFunction says that the access was made by a function such as atomicAdd of the toolkit's headers, called from
// the user's code: atomicAdd of __nv_bfloat162 is a plain read and a loop of atomicCAS on this device.
func (a *Access) ofAtomicFunction() bool {
	function := ""
	for _, frame := range a.Frames {
		if frame.File != "" && !systemFile(frame.File) {
			break
		}
		function = frame.Function
	}
	return a.Host == "" && strings.HasPrefix(BareName(function), "atomic")
}
