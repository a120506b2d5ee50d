package report

import (
	"path"
	"strings"
)

// systemRoots are folders that contain no files of the user.
var systemRoots = []string{"/usr/include/", "/usr/lib/", "/usr/local/include/", "/usr/local/cuda", "/opt/cuda", "/opt/nvidia/"}

// toolkitFolders are folder names that, below a folder called include (or beside one, for cccl), contain headers of the
// CUDA toolkit.
var toolkitFolders = map[string]bool{"cccl": true, "cub": true, "thrust": true, "libcudacxx": true,
	"cooperative_groups": true, "crt": true, "nv": true}

// toolkitHeaders are prefixes of the headers that are directly in the toolkit's include folder and define device
// functions.
var toolkitHeaders = []string{"cuda_", "device_", "sm_", "math_functions", "cooperative_groups", "texture_", "surface_",
	"vector_functions", "cudart_platform", "driver_functions", "host_defines", "common_functions", "mma."}

// systemFile reports whether a source file belongs to the toolkit or the system, not to the user. The name is as the
// compiler wrote it. A user's own include folder belongs to the user: a folder called include counts only below a
// system root, below a folder called nvidia or cuda*, or for a recognised header of the toolkit.
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

// below reports whether the folders under an include folder belong to the toolkit.
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

// toolkitHeaderName is the name with which a header of the toolkit is included: "<cub/agent/agent_scan.cuh>".
func toolkitHeaderName(name string) (string, bool) {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	i := strings.LastIndex(name, "/include/")
	if i < 0 || !systemFile(name) {
		return "", false
	}
	return "<" + strings.TrimPrefix(name[i+len("/include/"):], "cccl/") + ">", true
}
