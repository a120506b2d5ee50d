package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const watchLong = `
fencepost watch prog.cu
  runs the program, and runs it again whenever a source beside it is saved: files with the endings .cu, .cuh, .h, .hpp,
  .cpp, .c, .ptx and .toml in the folders of the files on the command line. Flags are those of run, or of check if the
  file is PTX. Ctrl-C ends it; the exit code is that of the last run.`

func watchCommand() *command {
	return &command{name: "watch", args: "PROG.cu | KERNEL.ptx [ARGUMENTS]", doc: "run or check again whenever a source is saved", long: watchLong,
		raw: true, run: runWatch}
}

// watchEvery is how often files are looked at. A look at a folder of 100 files takes less than a millisecond.
const watchEvery = 200 * time.Millisecond

func runWatch(ctx context.Context, e *env, _ *options, args []string) (int, error) {
	if len(args) == 1 && (args[0] == "-h" || args[0] == "--help") {
		writeCommandHelp(e.stdout, watchCommand())
		return exitClean, nil
	}
	folders, ptx := watched(args)
	if len(folders) == 0 {
		for _, a := range args {
			if strings.EqualFold(filepath.Ext(a), ".ptx") || isSource(a) {
				if err := readable(a); err != nil {
					return 0, err
				}
			}
		}
		return 0, usagef("watch what? Name a CUDA source or a .ptx file: fencepost watch prog.cu")
	}
	c := runCommand()
	if ptx {
		c = checkCommand()
	}
	for {
		before := saved(folders)
		begin := time.Now()
		code := execute(ctx, e, c, args)
		if ctx.Err() != nil {
			return code, nil
		}
		fmt.Fprintf(e.stderr, "fencepost: exit code %d after %.1f s; watching %s\n", code, time.Since(begin).Seconds(), strings.Join(folders, ", "))
		for saved(folders) == before {
			select {
			case <-ctx.Done():
				return code, nil
			case <-time.After(watchEvery):
			}
		}
	}
}

// watched gives the folders of the sources that arguments name, and whether one is PTX. What stands behind -- is the program's.
func watched(args []string) (folders []string, ptx bool) {
	seen := map[string]bool{}
	for _, a := range args {
		if a == "--" {
			break
		}
		ext := strings.ToLower(filepath.Ext(a))
		if st, err := os.Stat(a); err != nil || !st.Mode().IsRegular() || ext != ".ptx" && !isSource(a) {
			continue
		}
		ptx = ptx || ext == ".ptx"
		if dir := filepath.Dir(a); !seen[dir] {
			seen[dir] = true
			folders = append(folders, dir)
		}
	}
	return folders, ptx
}

var watchedExts = map[string]bool{".cu": true, ".cuh": true, ".h": true, ".hpp": true, ".cpp": true, ".cc": true, ".cxx": true, ".c": true, ".ptx": true, ".toml": true}

// saved tells one state of the sources in folders from another.
func saved(folders []string) string {
	var b strings.Builder
	for _, dir := range folders {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if st, err := entry.Info(); err == nil && watchedExts[strings.ToLower(filepath.Ext(entry.Name()))] {
				fmt.Fprintf(&b, "%s/%s %d %d\n", dir, entry.Name(), st.Size(), st.ModTime().UnixNano())
			}
		}
	}
	return b.String()
}
