package toolchain

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Tool is a compiler that was found.
type Tool struct {
	Name    string // "nvcc", "clang" or "cc"
	Path    string // absolute
	From    string // where it was found: "--nvcc", "PATH", "CUDA_HOME", ...
	Version string // as the tool prints it: "13.5.37"
	Major   int
	Minor   int
}

// Missing is an error: a tool that was not found, or that is incomplete, with a remedy. It makes a run impossible and
// is not a verdict about the program.
type Missing struct {
	What   string   // "nvcc", "host C compiler", or a piece of a toolkit
	Looked []string // the places that were searched
	Remedy string   // the command to run, or what to install
}

// Error returns everything in one line.
func (e *Missing) Error() string {
	s := e.What + " was not found"
	if len(e.Looked) > 0 {
		s += " (looked in " + strings.Join(e.Looked, ", ") + ")"
	}
	return s + "; " + e.Remedy
}

// PipLine installs a working CUDA compiler into a Python environment, on a machine without a GPU.
const PipLine = "pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-nvvm nvidia-cuda-crt nvidia-cuda-cccl"

const (
	nvccRemedy  = "install the CUDA toolkit, or run: fencepost doctor --install, or: " + PipLine
	ccRemedy    = "install gcc or clang (Debian, Ubuntu: apt-get install g++), or set CC"
	clangRemedy = "install clang 14 or newer (Debian, Ubuntu: apt-get install clang)"
)

// MinClang is the oldest clang that supports the CUDA constructs that Fencepost needs.
const MinClang = 14

// Finder looks for compilers. The zero value looks in the places that the environment names.
type Finder struct {
	NVCC   string              // path or name given by the user; "" to search for it
	Clang  string              // the same for clang
	CC     string              // the same for the host C compiler
	Getenv func(string) string // nil: os.Getenv
	Roots  []string            // folders of toolkits; nil: the usual ones
}

func (f *Finder) env(name string) string {
	if f.Getenv != nil {
		return f.Getenv(name)
	}
	return os.Getenv(name)
}

// candidate is a place where a tool may be.
type candidate struct{ path, from string }

// FindNVCC finds nvcc: as given, FENCEPOST_NVCC, PATH, CUDA_HOME, CUDA_PATH, the active Python environment
// (VIRTUAL_ENV, CONDA_PREFIX), the usual install folders, the compiler that "fencepost doctor --install" has installed,
// and finally the site-packages of python3. It skips scripts that call Fencepost, so that Fencepost's wrapper may
// itself be named nvcc and be in PATH. The error is a *Missing.
func (f *Finder) FindNVCC(ctx context.Context) (*Tool, error) {
	if f.NVCC != "" {
		return f.given(ctx, "nvcc", f.NVCC, "--nvcc", nvccRemedy)
	}
	var looked []string
	for _, look := range []func(context.Context) ([]candidate, string){f.nvccByEnv, f.nvccInRoots, f.nvccInstalled, f.nvccInPython} {
		list, where := look(ctx)
		looked = append(looked, where)
		for _, c := range list {
			if !executable(c.path) || isWrapper(c.path) {
				continue
			}
			if t, err := probe(ctx, "nvcc", c.path, c.from); err == nil {
				return t, nil
			}
		}
	}
	return nil, &Missing{What: "nvcc", Looked: looked, Remedy: nvccRemedy}
}

func (f *Finder) nvccByEnv(context.Context) ([]candidate, string) {
	var list []candidate
	if p := f.env("FENCEPOST_NVCC"); p != "" {
		list = append(list, candidate{p, "FENCEPOST_NVCC"})
	}
	for _, dir := range filepath.SplitList(f.env("PATH")) {
		list = append(list, candidate{filepath.Join(dir, "nvcc"), "PATH"})
	}
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if dir := f.env(v); dir != "" {
			list = append(list, candidate{filepath.Join(dir, "bin", "nvcc"), v})
		}
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		dir := f.env(v)
		if dir == "" {
			continue
		}
		list = append(list, candidate{filepath.Join(dir, "bin", "nvcc"), v})
		list = append(list, inPackages(filepath.Join(escapeGlob(dir), "lib", "python3*", "site-packages"), v)...)
	}
	return list, "PATH, CUDA_HOME, CUDA_PATH, VIRTUAL_ENV, CONDA_PREFIX"
}

func (f *Finder) nvccInRoots(context.Context) ([]candidate, string) {
	roots := f.Roots
	if roots == nil {
		roots = []string{"/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda", "/opt/nvidia/hpc_sdk/Linux_x86_64/*/cuda", "/usr/lib/nvidia-cuda-toolkit", "/usr/lib/cuda"}
	}
	var list []candidate
	for _, r := range roots {
		// The newest of several comes first. The patterns in the list above are valid; others find nothing.
		dirs, _ := filepath.Glob(r)
		slices.SortFunc(dirs, func(a, b string) int { return compareVersions(b, a) })
		for _, d := range dirs {
			list = append(list, candidate{filepath.Join(d, "bin", "nvcc"), d})
		}
	}
	return list, strings.Join(roots, ", ")
}

// nvccInPython asks python3 for its folders. It comes last because starting Python takes a tenth of a second.
func (f *Finder) nvccInPython(ctx context.Context) ([]candidate, string) {
	const where = "the site-packages of python3"
	python := ""
	for _, dir := range filepath.SplitList(f.env("PATH")) {
		if p := filepath.Join(dir, "python3"); executable(p) {
			python = p
			break
		}
	}
	if python == "" {
		return nil, where
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const ask = "import sysconfig, site\nprint(sysconfig.get_paths()['purelib'])\nprint(site.getusersitepackages())"
	out, err := exec.CommandContext(ctx, python, "-c", ask).Output()
	if err != nil {
		return nil, where
	}
	var list []candidate
	for dir := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
		list = append(list, inPackages(escapeGlob(dir), "python3")...)
	}
	return list, where
}

// inPackages finds nvcc as installed by pip. pattern is that of a site-packages folder.
func inPackages(pattern, from string) []candidate {
	var list []candidate
	paths, _ := filepath.Glob(filepath.Join(pattern, "nvidia", "cu*", "bin", "nvcc"))
	slices.SortFunc(paths, func(a, b string) int { return compareVersions(b, a) })
	for _, p := range paths {
		list = append(list, candidate{p, from})
	}
	return list
}

// FindClang finds clang 14 or newer. The error is a *Missing.
func (f *Finder) FindClang(ctx context.Context) (*Tool, error) {
	if f.Clang != "" {
		return f.given(ctx, "clang", f.Clang, "--clang", clangRemedy)
	}
	names := []string{"clang"}
	for v := 30; v >= MinClang; v-- {
		names = append(names, "clang-"+strconv.Itoa(v))
	}
	old := ""
	for _, n := range names {
		p := f.inPath(n)
		if p == "" {
			continue
		}
		t, err := probe(ctx, "clang", p, "PATH")
		if err == nil && t.Major >= MinClang {
			return t, nil
		}
		if err == nil {
			old = fmt.Sprintf(", where %s is %s", n, t.Version)
		}
	}
	return nil, &Missing{What: "clang", Looked: []string{"PATH" + old}, Remedy: clangRemedy}
}

// FindCC finds the host C compiler: as given, CC, then cc, gcc, clang in PATH. The error is a *Missing.
func (f *Finder) FindCC(ctx context.Context) (*Tool, error) {
	if f.CC != "" {
		return f.given(ctx, "cc", f.CC, "--cc", ccRemedy)
	}
	// CC may contain options too; only the compiler matters here. A makefile whose CC is nvcc, or Fencepost's
	// replacement of it, passes it to everything it calls; that one is not meant here.
	if words := strings.Fields(f.env("CC")); len(words) > 0 && !isNVCC(f.inPath(words[0])) && !isNVCC(words[0]) {
		if t, err := f.given(ctx, "cc", words[0], "CC", ccRemedy); err == nil {
			return t, nil
		}
	}
	for _, n := range []string{"cc", "gcc", "clang"} {
		if p := f.inPath(n); p != "" {
			if t, err := probe(ctx, "cc", p, "PATH"); err == nil {
				return t, nil
			}
		}
	}
	return nil, &Missing{What: "host C compiler", Looked: []string{"CC", "cc, gcc and clang in PATH"}, Remedy: ccRemedy}
}

// given checks a tool that the user named by path or by name.
func (f *Finder) given(ctx context.Context, name, path, from, remedy string) (*Tool, error) {
	p := path
	if !strings.ContainsRune(p, filepath.Separator) {
		p = f.inPath(p)
	}
	if p == "" || !executable(p) {
		return nil, &Missing{What: fmt.Sprintf("%s (%s %s)", name, from, path), Remedy: "give the path of the program; " + remedy}
	}
	t, err := probe(ctx, name, p, from)
	if err != nil {
		return nil, &Missing{What: fmt.Sprintf("%s at %s (%v)", name, path, err), Remedy: "give the path of the program; " + remedy}
	}
	return t, nil
}

func (f *Finder) inPath(name string) string {
	for _, dir := range filepath.SplitList(f.env("PATH")) {
		if p := filepath.Join(dir, name); executable(p) {
			return p
		}
	}
	return ""
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isNVCC reports whether a compiler is nvcc or Fencepost's replacement of it.
func isNVCC(path string) bool {
	return filepath.Base(path) == "nvcc" || path != "" && isWrapper(path)
}

// isWrapper reports whether an nvcc is Fencepost's: a link to this program, or a script that calls it.
func isWrapper(path string) bool {
	if self, err := os.Executable(); err == nil {
		a, errA := os.Stat(self)
		b, errB := os.Stat(path)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return true
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := f.Read(head)
	return strings.HasPrefix(string(head[:n]), "#!") && strings.Contains(string(head[:n]), "fencepost")
}

// versions match the version in a tool's version output.
var versions = map[string]*regexp.Regexp{
	"nvcc":  regexp.MustCompile(`release \d+\.\d+, V(\d+)\.(\d+)(?:\.\d+)*`),
	"clang": regexp.MustCompile(`clang version (\d+)\.(\d+)(?:\.\d+)*`),
	"cc":    regexp.MustCompile(`(?m)(\d+)\.(\d+)(?:\.\d+)*`),
}

// probe runs a tool to learn its version.
func probe(ctx context.Context, name, path, from string) (*Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, abs, "--version").Output()
	if err != nil {
		return nil, err
	}
	m := versions[name].FindStringSubmatch(string(out))
	if m == nil {
		return nil, fmt.Errorf("its --version names no version of %s", name)
	}
	t := &Tool{Name: name, Path: abs, From: from}
	t.Version = strings.TrimLeft(m[0][strings.LastIndexAny(m[0], " V")+1:], " ")
	t.Major, _ = strconv.Atoi(m[1])
	t.Minor, _ = strconv.Atoi(m[2])
	return t, nil
}

// compareVersions orders names by the numbers in them: cuda-9.2 before cuda-13.1.
func compareVersions(a, b string) int {
	na, nb := numbers(a), numbers(b)
	if c := slices.Compare(na, nb); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}

var number = regexp.MustCompile(`\d+`)

func numbers(s string) []int {
	var out []int
	for _, d := range number.FindAllString(s, -1) {
		n, _ := strconv.Atoi(d)
		out = append(out, n)
	}
	return out
}

// escapeGlob escapes a path for use as a pattern of filepath.Glob.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
