package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/fatbin"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
)

const checkLong = `
fencepost check kernel.ptx --launch l.toml
  launches kernels of PTX files. A launch file says which, with grid, block and arguments (docs/launch.md); the default is
  kernel.toml. Several .ptx files are linked. A .cu file is compiled first. Object files and programs are searched for PTX.
  Flags may be anywhere.

fencepost check kernel.cu --grid 2 --block 32 --arg 'x:i32[64]'
  launches a kernel without a launch file. With --schedule FILE, where FILE is from "fencepost verify --schedule", the
  threads run in that order.

fencepost check corpus
  checks all built-in programs and compares the findings with those that their sources expect. It exits with 0 if exactly
  these are found. "check corpus/race" checks one folder.

fencepost check corpus/race/reduce
  checks one of them like any other program, and so exits with 1.`

func checkCommand() *command {
	return &command{name: "check", args: "KERNEL.ptx | corpus[/NAME]", long: checkLong,
		doc:     "launch the kernels of a launch file, or check the built-in corpus",
		refused: map[string]string{"devices": "kernels are launched on one device here: several are for programs, \"fencepost run\""},
		flags:   append([]*flag{launchFlag, gridFlag, blockFlag, argFlag, sharedFlag, jobsFlag, nvccFlag, compilerFlag, uninitFlag}, runFlags()...), run: runCheck, anywhere: true}
}

func runCheck(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) == 0 {
		return 0, usagef("check what? Name a .ptx file and give --launch FILE, or say \"fencepost check corpus\"")
	}
	if isCorpus(args[0]) {
		if len(args) > 1 {
			return 0, usagef("check takes one name of the corpus; flags stand before it")
		}
		if o.launch != "" || o.kernel.launches() {
			return 0, corpusLaunch(args[0])
		}
		return checkCorpus(ctx, e, o, args[0])
	}
	in, err := inputFiles(ctx, e, o, args)
	if err != nil {
		return 0, err
	}
	if !o.kernel.launches() {
		in.Launch, err = launchFile(o, args[0], in)
	} else {
		if o.session.Replay != nil {
			o.kernel.name = o.session.Replay.Kernel
		}
		in.Launch, err = o.kernel.launch(o, args[0], in)
	}
	if err != nil {
		return 0, err
	}
	code, err := checkInput(ctx, e, o, in, sourceBeside(args[0]))
	return code, o.kernel.blame(err)
}

// corpusLaunch refuses --launch and similar flags for programs that have launch files of their own.
func corpusLaunch(name string) error {
	return usagef("--launch: %s has its own launch file", name)
}

// checkInput checks kernels and reports.
func checkInput(ctx context.Context, e *env, o *options, in *session.Input, source func(string) []string) (int, error) {
	w := o.reportWriter(e, e.stdout)
	o.session.Printf, o.session.Rerun = w, !o.once
	stop := showProgress(e, &o.session)
	r, err := session.Check(ctx, &o.session, in)
	stop()
	if err != nil {
		return 0, err
	}
	return tell(e, w, o, r, source)
}

// sourceBeside reads source files that the PTX names. Relative names are also looked for in the folder of the PTX file.
func sourceBeside(ptx string) func(string) []string {
	return func(name string) []string {
		lines := report.ReadSource(name)
		if lines == nil && !filepath.IsAbs(name) {
			lines = report.ReadSource(filepath.Join(filepath.Dir(ptx), name))
		}
		return lines
	}
}

// maxInput bounds the size of files that are searched for PTX.
const maxInput = 4 << 30

// inputFiles reads the kernels.
func inputFiles(ctx context.Context, e *env, o *options, names []string) (*session.Input, error) {
	in := &session.Input{}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, usagef("%s is named twice", name)
		}
		if err := readable(name); err != nil {
			return nil, err
		}
		images, err := inputFile(ctx, e, o, name)
		if err != nil {
			return nil, err
		}
		in.Images = append(in.Images, images...)
	}
	return in, nil
}

// readable returns an error if a name is not a file with contents.
func readable(name string) error {
	if name == "" {
		return usagef("a file name is empty")
	}
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such file", name)
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("%s is a folder; name a file in it", name)
	case st.Mode().IsRegular() && st.Size() == 0:
		return fmt.Errorf("%s is empty", name)
	case strings.EqualFold(filepath.Ext(name), ".ptx") && st.Size() > int64(fatbin.MaxPTX()):
		return tooLong(name)
	case st.Mode().IsRegular() && st.Size() > maxInput:
		return fmt.Errorf("%s has %d bytes; at most %d are read", name, st.Size(), int64(maxInput))
	}
	return nil
}

func inputFile(ctx context.Context, e *env, o *options, name string) ([]cuda.Image, error) {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".ptx":
		text, err := readAll(name)
		return []cuda.Image{{Name: name, Text: text}}, err
	case ".cu":
		return compilePTX(ctx, e, o, name)
	case ".toml":
		return nil, usagef("%s is a launch file; name the .ptx file too: fencepost check KERNEL.ptx --launch %s", name, name)
	}
	b, err := fatbin.File(name)
	if err != nil {
		return nil, err
	}
	var images []cuda.Image
	for _, g := range b.Groups {
		arch := o.session.Arch
		if arch == 0 {
			arch = engine.LimitsOf(fatbin.BuiltFor(g.Entries)).Capability()
		}
		for _, x := range fatbin.Best(g.Entries, arch) {
			images = append(images, cuda.Image{Name: fmt.Sprintf("%s:%s", name, x.Name), Text: string(x.Text)})
		}
	}
	switch {
	case len(images) > 0:
		return images, nil
	case b.CUDA():
		return nil, sassOnly(name)
	}
	return nil, fmt.Errorf("%s is no PTX and holds none; check takes .ptx files, and objects or programs that hold PTX", name)
}

// compilePTX compiles a CUDA source to PTX. The name distinguishes the two in places of the PTX.
func compilePTX(ctx context.Context, e *env, o *options, name string, flags ...string) ([]cuda.Image, error) {
	nvcc, clang, err := compilers(ctx, o)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fencepost-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	files, notes, err := toolchain.BuildPTX(ctx, toolchain.BuildOptions{NVCC: nvcc, Clang: clang, Sources: []string{name}, Flags: slices.Concat(o.config.compiler, flags), Arch: o.arch, Out: dir, Output: e.stderr.to})
	for _, n := range notes {
		fmt.Fprintf(e.stderr, "fencepost: %s\n", n)
	}
	if err != nil {
		return nil, err
	}
	text, err := readAll(files[0])
	return []cuda.Image{{Name: "PTX of " + name, Text: text}}, err
}

// sassOnly says what to do about code without PTX.
func sassOnly(name string) error {
	return fmt.Errorf("%s holds machine code (SASS) only, and no PTX: it cannot be checked.\n"+
		"Rebuild it with PTX: use \"fencepost nvcc\" in place of nvcc, or add -gencode arch=compute_80,code=compute_80 -lineinfo -Xcicc -O0", name)
}

// readAll reads PTX.
func readAll(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var text strings.Builder
	if st, err := f.Stat(); err == nil && st.Size() <= int64(fatbin.MaxPTX()) {
		text.Grow(int(st.Size()))
	}
	n, err := io.Copy(&text, io.LimitReader(f, int64(fatbin.MaxPTX())+1))
	if err == nil && n > int64(fatbin.MaxPTX()) {
		err = tooLong(name)
	}
	return text.String(), err
}

func tooLong(name string) error {
	return fmt.Errorf("%s has more than %d MiB of PTX, which are refused: split the module", name, fatbin.MaxPTX()>>20)
}

// launchBeside is the name of the launch file that belongs to a file of kernels.
func launchBeside(file string) string { return strings.TrimSuffix(file, filepath.Ext(file)) + ".toml" }

// regular reports whether there is a regular file of that name.
func regular(name string) bool {
	st, err := os.Stat(name)
	return err == nil && st.Mode().IsRegular()
}

// launchFile reads the launch file of the kernels in file.
func launchFile(o *options, file string, in *session.Input) (*session.LaunchFile, error) {
	name := o.launch
	if name == "" {
		if name = launchBeside(file); !regular(name) {
			template, err := session.LaunchTemplate(in)
			if err != nil {
				return nil, err
			}
			return nil, usagef("how is %s to be launched? Give --grid, --block and --arg, or --launch FILE. A file to start from:\n\n%s", file, template)
		}
	}
	if err := readable(name); err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, session.MaxLaunchFile+1))
	if err != nil {
		return nil, err
	}
	return session.ReadLaunchFile(name, text)
}
