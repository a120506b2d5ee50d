package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
	cpus "fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
	"fencepost.dev/fencepost/internal/verify"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// options are the values of all flags.
type options struct {
	session session.Options
	help    bool
	json    string
	limit   int
	limited bool // --limit was given
	times   bool
	launch  string
	arch    string // the name of the device; empty: that for which the program was built
	nvcc    string
	clang   bool // compiles instead of nvcc
	// schedule is the name of a schedule file; "" for none.
	schedule string
	once     bool // --schedule names a policy other than both
	// outlives lets the program keep running when this process is killed.
	outlives bool
	// errorExit is the exit code for findings; nil for exitFindings.
	errorExit    *int
	command      string // as given, with shell quotes
	config       config
	origins      map[string]origin // of settings, by the names of flags
	color        string            // "always", "never", or "" for terminals
	markdown     string
	out          string
	verbose      bool
	recorded     bool // the report is of a trace and not of a run
	verify       verify.Options
	repair       bool   // by verify
	graph        string // of verify
	checkpoint   string // of verify
	litmus       litmus.Options
	kernel       kernelOptions // of verify
	reports      reports
	reason       string // of suppress
	expires      string
	install, yes bool   // of doctor
	device       string // by --device; "" is watched
	// cpuDetectors judge traces of CPU programs.
	cpuDetectors []cpu.Spec
	simulation   simulation
}

// flag is one flag with its complete description.
type flag struct {
	name string
	arg  string // placeholder of its value; "" for a flag without a value
	doc  string
	set  func(o *options, value string) error
}

// runFlags are the flags of commands that execute kernels.
func runFlags() []*flag {
	flags := []*flag{
		{"fail-on", "SEVERITY", "exit with 1 for findings of this severity or worse: error (default), warning, info",
			func(o *options, v string) error {
				return choose(v, map[string]detect.Severity{"error": detect.Error, "warning": detect.Warning, "info": detect.Info},
					"severity", &o.session.FailOn)
			}},
		{"json", "FILE", "also write the report as JSON (docs/json.md); - is standard output",
			setJSON},
		{"limit", "N", "list at most N findings; in text N groups with N members each (default 20 in text; 0: all)",
			func(o *options, v string) error { o.limited = true; return number(v, 0, 1<<30, &o.limit) }},
		{"max-findings", "N", "keep at most N findings, the most severe and one of each kind; count the others (default 10000)",
			func(o *options, v string) error { return number(v, 1, 1<<24, &o.session.MaxFindings) }},
		{"detector", "NAME,...", "detectors, see \"fencepost help detectors\"; none: no detector (default: hb, and predictions of gwcp)",
			setDetectors},
		{"model", "NAME", "meaning of volatile accesses and fences: cuda (default), ptx, hrf",
			func(o *options, v string) error {
				return choose(v, map[string]detect.Model{"cuda": detect.ModelCUDA, "ptx": detect.ModelPTX, "hrf": detect.ModelHRF},
					"model", &o.session.Model)
			}},
		{"seed", "N", "schedule threads by seed N (default 0)",
			func(o *options, v string) error { return number(v, 0, 1<<62, &o.session.Seed) }},
		{"seeds", "N", "run with N seeds, beginning with --seed, and merge the findings",
			func(o *options, v string) error { return number(v, 1, 10000, &o.session.Seeds) }},
		{"schedule", "NAME|FILE", "order of threads: both (default), fair, contended, lockstep (pre-Volta), pct (random), FILE of verify",
			setSchedule},
		{"engine", "NAME", "engine for kernels: warp (default, optimised, 32 lanes at once), ref (one lane at a time)",
			func(o *options, v string) error {
				return choose(v, session.Engines(), "engine", &o.session.Engine)
			}},
		{"device", "NAME", "where kernels run: watched (default), gpu or emulated (instrumented: docs/gpu.md), auto",
			func(o *options, v string) error {
				o.device = v
				return choose(v, map[string]bool{deviceWatched: false, deviceEmulated: true, deviceGPU: true, deviceAuto: true}, "device", &o.session.Logged)
			}},
		modeFlag(), pruneFlag(),
		{"arch", "NAME", "the device: sm_80, sm_90a, sm_100f and so on (default: the one that the program was built for)",
			func(o *options, v string) error {
				o.arch = v
				return choose(v, devices(), "device", &o.session.Arch)
			}},
		{"timeout", "DURATION", "stop after this time, as in 90s or 5m, and report what was found",
			setTimeout},
		{"times", "", "write kernel times into the JSON report (without it they are 0, so that equal runs give equal bytes)",
			func(o *options, v string) error { o.times = true; return nil }},
	}
	return slices.Concat(flags, watchFlags(), reportFlags(), sanitizerFlags())
}

// devices returns the compute capabilities, times ten, of the architectures that nvcc has names for: with the suffix a
// from 9.0 on, and with f from 10.0 on.
func devices() map[string]int {
	names := map[string]int{}
	for _, n := range engine.Capabilities() {
		suffixes := []string{"", "a", "f"}
		switch {
		case n < 90:
			suffixes = suffixes[:1]
		case n < 100:
			suffixes = suffixes[:2]
		}
		for _, s := range suffixes {
			names[fmt.Sprintf("sm_%d%s", n, s)] = n
		}
	}
	return names
}

// watchFlags select what is judged.
func watchFlags() []*flag {
	pattern := func(to func(*options) **regexp.Regexp) func(*options, string) error {
		return func(o *options, v string) (err error) {
			*to(o), err = regexp.Compile(v)
			return err
		}
	}
	ranges := func(bits int, to func(*options) *[]detect.Range) func(*options, string) error {
		return func(o *options, v string) (err error) {
			*to(o), err = detect.ParseRanges(v, bits)
			return err
		}
	}
	return []*flag{
		{"kernel", "REGEX", "watch only the kernels whose demangled name matches; the others run unwatched",
			pattern(func(o *options) **regexp.Regexp { return &o.session.Watch.Kernel })},
		{"skip-kernel", "REGEX", "do not watch the kernels whose demangled name matches",
			pattern(func(o *options) **regexp.Regexp { return &o.session.Watch.SkipKernel })},
		{"variable", "REGEX", "report only races on variables and allocations whose name matches",
			pattern(func(o *options) **regexp.Regexp { return &o.session.Watch.Variable })},
		{"skip-variable", "REGEX", "do not report races on variables and allocations whose name matches",
			pattern(func(o *options) **regexp.Regexp { return &o.session.Watch.SkipVariable })},
		{"blocks", "N,N-N,...", "report only races between threads of these blocks, numbered over the grid from 0",
			ranges(32, func(o *options) *[]detect.Range { return &o.session.Watch.Blocks })},
		{"threads", "N,N-N,...", "report only races between these threads of blocks, numbered over the block from 0",
			ranges(32, func(o *options) *[]detect.Range { return &o.session.Watch.Threads })},
		{"addresses", "A-A,...", "report only races on these addresses of global memory, as in 0x200000000200-0x2000000002ff",
			ranges(64, func(o *options) *[]detect.Range { return &o.session.Watch.Addresses })},
	}
}

// sanitizerFlags are flags of NVIDIA's Compute Sanitizer that scripts pass (Compute Sanitizer manual, 2.1, command line
// options).
func sanitizerFlags() []*flag {
	return []*flag{
		{"error-exitcode", "N", "exit with N instead of 1 if there are findings",
			func(o *options, v string) error { o.errorExit = new(int); return number(v, 0, 255, o.errorExit) }},
		{"kernel-name", "FILTER", "watch only the kernels with kernel_name=NAME, or kernel_substring=TEXT in the name (kne=, kns=)", setKernelName},
		{"print-limit", "N", "the same as --limit",
			func(o *options, v string) error { o.limited = true; return number(v, 0, 1<<30, &o.limit) }},
	}
}

// killFlag is a flag of Compute Sanitizer, too.
var killFlag = &flag{"kill", "yes|no", "kill the program when fencepost is killed (default yes); with no it runs on, and its CUDA calls fail",
	func(o *options, v string) error {
		return choose(v, map[string]bool{"yes": false, "no": true}, "value of --kill", &o.outlives)
	}}

// setKernelName takes a kernel filter of Compute Sanitizer. It applies to linker names, whereas --kernel applies to
// demangled ones.
func setKernelName(o *options, v string) error {
	key, name, ok := strings.Cut(strings.Trim(v, "{}"), "=")
	if !ok || name == "" || strings.Contains(name, ",") {
		return usagef("--kernel-name %q is no filter; write kernel_name=NAME or kernel_substring=TEXT; --kernel takes a regular expression", v)
	}
	if demangled := report.Demangle(name); demangled != name {
		name = report.BareName(demangled)
	}
	pattern := regexp.QuoteMeta(name)
	whole := `(^|[ :])` + pattern + `($|[(<])`
	if err := choose(key, map[string]string{"kernel_name": whole, "kne": whole, "kernel_substring": pattern, "kns": pattern}, "key of --kernel-name", &pattern); err != nil {
		return err
	}
	o.session.Watch.Kernel = regexp.MustCompile(pattern)
	return nil
}

// without leaves out the flags that a command refuses.
func without(flags []*flag, refused map[string]string) []*flag {
	return slices.DeleteFunc(flags, func(f *flag) bool { return refused[f.name] != "" })
}

// setJSON takes the file for the report.
func setJSON(o *options, v string) error {
	o.json = v
	if v == "-" {
		return nil
	}
	return writable("json", v, ", or - for the standard output")
}

// both is the schedule fair; small launches whose threads may contend are executed again with the schedule contended,
// and with others.
const both = "both"

// schedules are the policies by name.
var schedules = map[string]engine.Schedule{both: engine.Fair, "contended": engine.Contended, "fair": engine.Fair, "lockstep": engine.Lockstep, "pct": engine.PCT}

// setSchedule takes a policy or a schedule file.
func setSchedule(o *options, v string) error {
	o.session.Schedule, o.schedule, o.once = engine.Fair, "", v != both
	if _, ok := schedules[v]; ok || !strings.ContainsAny(v, "./") && !regular(v) {
		return choose(v, schedules, "schedule", &o.session.Schedule)
	}
	o.schedule = v
	return nil
}

// readSchedule reads the schedule file for a replay.
func (o *options) readSchedule() error {
	if o.schedule == "" {
		return nil
	}
	if err := readable(o.schedule); err != nil {
		return err
	}
	f, err := os.Open(o.schedule)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, session.MaxScheduleFile+1))
	if err == nil {
		o.session.Replay, err = session.ReadScheduleFile(o.schedule, text)
	}
	return err
}

// setOut takes the output file of a command.
func setOut(o *options, v string) error {
	o.out = v
	return writable("out", v, "")
}

// writable refuses a file that cannot be written, before the program runs, which may take long.
func writable(flag, name, or string) error {
	if name == "" {
		return usagef("--%s: name a file%s", flag, or)
	}
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		return usagef("--%s: %s is a folder; name a file%s", flag, name, or)
	}
	if dir := filepath.Dir(name); dir != "." {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return usagef("--%s: there is no folder %s to write %s in", flag, dir, filepath.Base(name))
		}
	}
	return nil
}

// keepInput refuses to overwrite inputs: the arguments that are files, except those of a program, and the launch file.
func (o *options) keepInput(c *command, args []string) error {
	if !c.anywhere && len(args) > 0 && !compilable(args[0]) {
		args = args[:1]
	}
	written := o.reports.written()
	written["json"], written["out"], written["schedule"], written["graph"] = o.json, o.out, o.kernel.schedule, o.graph
	for flag, name := range written {
		st, err := os.Stat(name)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		for _, arg := range append(append([]string{o.launch}, o.reports.read()...), args...) {
			if in, err := os.Stat(arg); err == nil && os.SameFile(st, in) {
				return usagef("--%s %s would be written over %s, which is read", flag, name, arg)
			}
		}
	}
	by := map[string]string{}
	for _, flag := range sorted(slices.Collect(maps.Keys(written))) {
		name := written[flag]
		if name == "" || name == "-" {
			continue
		}
		if other := by[filepath.Clean(name)]; other != "" {
			return usagef("--%s and --%s name one file, %s", other, flag, name)
		}
		by[filepath.Clean(name)] = flag
	}
	return nil
}

var colorFlag = &flag{"color", "WHEN", "colour the text: auto (on a terminal, unless NO_COLOR is set), always, never",
	func(o *options, v string) error {
		return choose(v, map[string]string{"auto": "", "always": "always", "never": "never"}, "value of --color", &o.color)
	}}

var launchFlag = &flag{"launch", "FILE", "how to launch the kernel (docs/launch.md); default: FILE.toml beside FILE.ptx",
	func(o *options, v string) error { o.launch = v; return nil }}

var jobsFlag = &flag{"jobs", "N", "use N cores (default: all), for seeds and programs of the corpus in parallel, or within one run",
	func(o *options, v string) error { return number(v, 1, 1024, &o.session.Jobs) }}

// corpusJobsFlag is --jobs of compare, which runs everything else on one core.
var corpusJobsFlag = &flag{"jobs", "N", "compare N programs of the corpus at a time (default: the number of cores)",
	func(o *options, v string) error { return number(v, 1, 1024, &o.session.Jobs) }}

// apartFlag is --jobs of programs. Only the user knows whether concurrent runs of a program share files or ports.
var apartFlag = &flag{"jobs", "N", "use N cores (default: all); also run N --seeds at a time, if given: runs must not share files or ports",
	func(o *options, v string) error {
		o.session.Apart = true
		return number(v, 1, 1024, &o.session.Jobs)
	}}

var verboseFlag = &flag{"verbose", "", "print the variables that are set in the program's environment",
	func(o *options, v string) error { o.verbose = true; return nil }}

var leaksFlag = &flag{"leaks", "", "report memory that the program allocates and never frees",
	func(o *options, v string) error { o.session.Leaks = true; return nil }}

var devicesFlag = &flag{"devices", "N", "the program sees N devices, at most 64 (default 1); it can enable peer access between all of them",
	func(o *options, v string) error { return number(v, 1, cuda.MaxDevices, &o.session.Devices) }}

var uninitFlag = &flag{"uninit", "NAME", "severity of reads of memory, and uses of local variables, that nothing has written: off (default), warning, error",
	func(o *options, v string) error {
		return choose(v, map[string][]detect.Spec{"off": nil, "warning": {all.Uninit("warning")}, "error": {all.Uninit("error")}}, "severity", &o.session.Beside)
	}}

var nvccFlag = &flag{"nvcc", "PATH", "the CUDA compiler (default: the one that \"fencepost doctor\" shows)",
	func(o *options, v string) error { o.nvcc = v; return nil }}

var compilerFlag = &flag{"compiler", "NAME", "compiler for .cu files: nvcc (default), or clang 14 or newer with the headers of nvcc's toolkit",
	func(o *options, v string) error {
		return choose(v, map[string]bool{"nvcc": false, "clang": true}, "compiler", &o.clang)
	}}

// compilers finds nvcc, and clang if it is to compile.
func compilers(ctx context.Context, o *options) (nvcc, clang *toolchain.Tool, err error) {
	finder := toolchain.Finder{NVCC: o.nvcc}
	if nvcc, err = finder.FindNVCC(ctx); err == nil && o.clang {
		clang, err = finder.FindClang(ctx)
	}
	if err != nil {
		return nil, nil, remedy(err)
	}
	return nvcc, clang, nil
}

func setDetectors(o *options, v string) error {
	o.session.Detectors, o.cpuDetectors = nil, nil
	o.session.Bare = v == "none"
	if o.session.Bare {
		return nil
	}
	for i, name := range strings.Split(v, ",") {
		if name == "none" {
			return usagef("--detector: none stands alone, and not with detectors")
		}
		if slices.Contains(strings.Split(v, ",")[:i], name) {
			return usagef("--detector: %s is named twice", name)
		}
		if spec, ok := cpuDetector(name); ok {
			o.cpuDetectors = append(o.cpuDetectors, spec)
			continue
		}
		d, err := detect.Choose(all.Detectors(), name)
		if u := (*detect.UnknownError)(nil); errors.As(err, &u) {
			if u.What == "detector" {
				u.Valid = append(u.Valid, "none")
				for _, spec := range cpus.Detectors() {
					u.Valid = append(u.Valid, spec.Name)
				}
			}
			return usagef("unknown %s %q%s", u.What, u.Name, nearest.Hint(u.Name, u.Valid))
		}
		o.session.Detectors = append(o.session.Detectors, d)
	}
	if len(o.session.Detectors) > 0 {
		return o.onlyTraces(o.session.Detectors[0].Name + " judges kernels")
	}
	return nil
}

func setTimeout(o *options, v string) error {
	d, err := time.ParseDuration(v)
	if err != nil {
		if s, serr := strconv.ParseFloat(v, 64); serr == nil {
			d, err = time.Duration(s*float64(time.Second)), nil
		}
	}
	if err != nil || d <= 0 {
		return usagef("--timeout %q is no duration; write 90s, 5m or a number of seconds", v)
	}
	o.session.Timeout = d
	return nil
}

// choose sets dst to the value of a word.
func choose[T any](word string, values map[string]T, what string, dst *T) error {
	v, ok := values[word]
	if !ok {
		var names []string
		for name := range values {
			names = append(names, name)
		}
		return usagef("unknown %s %q%s", what, word, nearest.Hint(word, sorted(names)))
	}
	*dst = v
	return nil
}

// number reads an integer between least and most.
func number[T int | uint64](text string, least, most int64, dst *T) error {
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return usagef("%q is no integer", text)
	}
	if n < least || n > most {
		return usagef("%d is not between %d and %d", n, least, most)
	}
	*dst = T(n)
	return nil
}

// parseFlags reads the flags before the first other argument, or anywhere if the command allows it. `--` ends them. It
// returns the other arguments.
func parseFlags(c *command, args []string) (*options, []string, error) {
	o := &options{limit: 20, origins: map[string]origin{}, session: session.Options{FailOn: detect.Error, Seeds: 1, Jobs: runtime.NumCPU()}}
	if c.raw {
		return o, args, nil
	}
	rest, err := readFlags(c, o, args)
	return o, rest, err
}

// readFlags applies the configuration and then the flags.
func readFlags(c *command, o *options, args []string) ([]string, error) {
	if !slices.Contains(args, "--help") { // help works whatever the configuration is
		if err := configure(c, o); err != nil {
			return nil, err
		}
	}
	var rest []string
	for len(args) > 0 {
		arg := args[0]
		switch {
		case arg == "-h" || arg == "-help" || arg == "--help":
			o.help = true
			return nil, nil
		case len(c.flags) == 0 && len(arg) > 1 && arg[0] == '-':
			return nil, usagef("%s knows no flags, and so no %q", c.name, arg)
		case arg == "--":
			return append(rest, args[1:]...), nil
		case len(arg) < 2 || arg[0] != '-':
			if !c.anywhere {
				return args, nil
			}
			rest, args = append(rest, arg), args[1:]
			continue
		}
		var err error
		if args, err = parseFlag(c, o, args); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

// parseFlag reads the flag at the start of args and returns the arguments after it.
func parseFlag(c *command, o *options, args []string) ([]string, error) {
	arg, args := args[0], args[1:]
	name, value, hasValue := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	f := c.flag(name)
	if why, ok := c.refused[name]; f == nil && ok {
		return nil, usagef("--%s: %s", name, why)
	}
	if f == nil {
		return nil, usagef("unknown flag %q%s", arg, c.hint(name))
	}
	switch {
	case f.arg == "" && hasValue:
		return nil, usagef("--%s takes no value", f.name)
	case f.arg != "" && !hasValue:
		if len(args) == 0 {
			return nil, usagef("--%s needs a value: --%s %s", f.name, f.name, f.arg)
		}
		value, args = args[0], args[1:]
	}
	if err := f.set(o, value); err != nil {
		return nil, within(f, err)
	}
	o.origins[f.name] = origin{value, "--" + f.name}
	return args, nil
}

// within adds the name of the flag to an error that lacks it.
func within(f *flag, err error) error {
	if strings.Contains(err.Error(), "--"+f.name) {
		return err
	}
	return usagef("--%s: %v", f.name, err)
}

func (c *command) flag(name string) *flag {
	if name == "o" { // as compilers spell it
		name = "out"
	}
	for _, f := range c.flags {
		if f.name == name {
			return f
		}
	}
	return nil
}

// hint suggests the flag that was probably meant, as in `; did you mean "--jobs"?`, by spelling alone, or lists all
// flags if they are few.
func (c *command) hint(name string) string {
	var names []string
	for _, f := range c.flags {
		names = append(names, f.name)
	}
	if w := nearest.Word(name, names); w != "" {
		return `; did you mean "--` + w + `"?`
	}
	return nearest.Hint("", c.flagNames())
}

func (c *command) flagNames() []string {
	var names []string
	for _, f := range c.flags {
		names = append(names, "--"+f.name)
	}
	return names
}
