package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/standin"
	"fencepost.dev/fencepost/internal/fatbin"
)

// jitLibrary is the soname of a library that compiles or links at run time and that has a stand-in.
var jitLibrary = regexp.MustCompile(`^lib(nvrtc|nvJitLink)\.so\.(1[23])$`)

// toolkitFolders are folders with such libraries that are searched after a program's own search path.
var toolkitFolders = []string{"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64"}

// jitEnv is the environment of a program that is linked with NVRTC or nvJitLink: it loads the stand-ins first and tells
// them where the real libraries are. The stand-ins return PTX as machine code. libs is the folder of the stand-in
// libraries.
func jitEnv(program, libs string) []string {
	b, err := fatbin.File(program)
	if err != nil {
		return nil // a script, or a program that fails to start
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
