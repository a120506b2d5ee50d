package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/fatbin"
)

// jitLibrary is the soname of a library that compiles or links at run time and has a stand-in before it.
var jitLibrary = regexp.MustCompile(`^lib(nvrtc|nvJitLink)\.so\.(1[23])$`)

// toolkitFolders are where such libraries are, behind a program's own search path.
var toolkitFolders = []string{"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64"}

// jitEnv is what a program that is linked with NVRTC or nvJitLink is told in its environment: the stand-ins, which are loaded first, and
// where the real ones are. What they give as machine code is PTX. libs is the folder of the stand-in libraries.
func jitEnv(program, libs string) []string {
	b, err := fatbin.File(program)
	if err != nil {
		return nil // a script, or what fails to start
	}
	folders := append(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), toolkitFolders...)
	var env, first []string
	for _, soname := range b.Needed {
		m := jitLibrary.FindStringSubmatch(soname)
		if m == nil {
			continue
		}
		if real := b.Locate(soname, folders); real != "" {
			env = append(env, "FENCEPOST_"+strings.ToUpper(m[1])+"_"+m[2]+"="+real)
			first = append(first, filepath.Join(libs, standin.Python, soname))
		}
	}
	if len(first) > 0 {
		env = append(env, "LD_PRELOAD="+strings.Join(first, ":"))
	}
	return env
}
