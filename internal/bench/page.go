package bench

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/cpu"

	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// Report is all measurements.
type Report struct {
	CPU      string    `json:"cpu"`
	Vectors  string    `json:"vectors"` // vector instructions of the processor
	Tier     string    `json:"tier"`    // the tier of package lanes, which computes lanes
	Cores    int       `json:"cores"`
	Compiler string    `json:"compiler,omitempty"` // compiler of the native versions
	Detector string    `json:"detector"`
	Rounds   int       `json:"rounds"`
	Rows     []Row     `json:"kernels,omitempty"`
	Growth   []Growth  `json:"growth,omitempty"`
	Scaling  []CoreRow `json:"cores_compared,omitempty"`
	Peaks    []Peak    `json:"memory,omitempty"`
	Whole    *Whole    `json:"whole,omitempty"`

	Detectors *Detectors `json:"detectors,omitempty"`
}

// NewReport returns a report that describes the machine.
func NewReport(o *Options) *Report {
	r := &Report{CPU: cpuModel(), Vectors: vectors(), Tier: lanes.Best().String(), Cores: runtime.NumCPU(), Detector: o.Detector.Name, Rounds: o.Rounds}
	if o.Native != nil {
		r.Compiler = o.Native.Compiler
	}
	return r
}

// cpuModel returns the name of the processor from Linux, or the name of its architecture.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.Join(strings.Fields(value), " ")
			}
		}
	}
	return runtime.GOARCH
}

// vectors returns the names of the processor's vector instructions.
func vectors() string {
	switch x := cpu.X86; {
	case runtime.GOARCH == "arm64":
		return "NEON"
	case runtime.GOARCH != "amd64":
		return runtime.GOARCH
	case x.HasAVX2:
		return "AVX2"
	}
	return "no AVX2"
}

// path describes the code that computed the lanes.
func (r *Report) path() string {
	const code = "The engine `warp` computed lanes by machine code for %s that it makes at run time (tier `compiled`)"
	const others = "which nearly all processors of laptops, servers and CI machines with x86-64 have. On Linux on ARM it also makes machine code, whose speed was not measured. Elsewhere Go code computes the lanes, four to twenty times slower."
	switch {
	case r.Tier != lanes.Compiling.String():
		return "The engine `warp` computed lanes by Go code (tier `interpret`); the processor has " + r.Vectors + ". With AVX2 it is four to twenty times faster."
	case r.Vectors != "AVX2":
		return fmt.Sprintf(code+".", r.Vectors)
	}
	return fmt.Sprintf(code+",\n", r.Vectors) + others
}

// WriteText writes the report as text: the tables in Markdown, with explanations.
func (r *Report) WriteText(w io.Writer) error {
	p := &page{w: w}
	p.say("%s, %d cores. Processor time; medians of %d rounds; ratios are made within a round.", r.CPU, r.Cores, r.Rounds)
	p.say("%s", r.path())
	if r.Compiler != "" {
		p.say("Native: %s, one core.", r.Compiler)
	}
	r.tables(p, "")
	return p.err
}

func (r *Report) tables(p *page, heading string) {
	r.kernelTables(p, heading)
	r.detectorTables(p, heading)
	r.growthTable(p, heading)
	r.scalingTable(p, heading)
	r.peakTable(p, heading)
	r.wholeTable(p, heading)
}

func (r *Report) kernelTables(p *page, heading string) {
	for _, e := range r.engines() {
		rows := slices.DeleteFunc(slices.Clone(r.Rows), func(x Row) bool { return x.Engine != e })
		p.title(heading, "Kernels on `%s`", e)
		t := table{{"kernel", "size", "M lane-instr.", "M/s", "native ms", "bare/native", "events/bare", r.Detector + "/bare", r.Detector + "/native", "metadata B/B",
			"warp-instr. kept/default", "default/default", "digest", ""}}
		for _, x := range rows {
			t = append(t, []string{x.Kernel, strconv.Itoa(x.Size), number(float64(x.Lanes) / 1e6), number(float64(x.Lanes) / 1e6 / x.Bare),
				number(x.Native * 1e3), number(x.BareOverNative), number(x.EventsOverBare), number(x.WatchedOverBare), number(x.WatchedOverNative),
				fixed(x.MetadataPerByte), fixed(x.KeptOverDefault), fixed(x.DefaultOverDefault), x.Digest, r.mark(&x)})
		}
		t = append(t, meanRow("geometric mean", rows))
		for _, coalesced := range []bool{true, false} {
			part := slices.DeleteFunc(slices.Clone(rows), func(x Row) bool { return x.Coalesced != coalesced })
			if len(part) > 0 && len(part) < len(rows) {
				t = append(t, meanRow(map[bool]string{true: "of coalesced", false: "of scattered"}[coalesced], part))
			}
		}
		p.table(t)
	}
}

func (r *Report) engines() []string {
	var names []string
	for _, x := range r.Rows {
		if !slices.Contains(names, x.Engine) {
			names = append(names, x.Engine)
		}
	}
	return names
}

// mark describes how the digest was compared.
func (r *Report) mark(x *Row) string {
	switch {
	case x.Wrong != "":
		return "WRONG"
	case x.Why != "":
		return r.Detector + " " + x.Why
	case r.Compiler == "":
		return ""
	case x.Exact:
		return "="
	}
	return "≈"
}

func meanRow(name string, rows []Row) []string {
	mean := func(f func(x *Row) float64) string { return number(geomean(rows, f)) }
	return []string{name, "", "", mean(func(x *Row) float64 { return float64(x.Lanes) / 1e6 / x.Bare }), "",
		mean(func(x *Row) float64 { return x.BareOverNative }), mean(func(x *Row) float64 { return x.EventsOverBare }),
		mean(func(x *Row) float64 { return x.WatchedOverBare }), mean(func(x *Row) float64 { return x.WatchedOverNative }), fixed(geomean(rows, func(x *Row) float64 { return x.MetadataPerByte })),
		fixed(geomean(rows, func(x *Row) float64 { return x.KeptOverDefault })),
		fixed(geomean(rows, func(x *Row) float64 { return x.DefaultOverDefault })), "", ""}
}

func (r *Report) growthTable(p *page, heading string) {
	if len(r.Growth) == 0 {
		return
	}
	p.title(heading, "Growth with threads")
	p.say("\n`saxpy`, one thread for each element, one core; nanoseconds of processor time for each thread.")
	t := table{{"engine", "threads", "bare ns", r.Detector + " ns", r.Detector + "/bare", "metadata B/B"}}
	for _, g := range r.Growth {
		t = append(t, []string{g.Engine, strconv.Itoa(g.Threads), number(g.Bare), number(g.Watched), number(g.Watched / g.Bare), fixed(g.Memory)})
	}
	p.table(t)
}

func (r *Report) scalingTable(p *page, heading string) {
	if len(r.Scaling) == 0 {
		return
	}
	p.title(heading, "One core and %d", r.Scaling[0].Cores)
	p.say("\nElapsed time on one core (GOMAXPROCS), divided by that on all cores. On several cores the detector runs in parallel with the engine.")
	t := table{{"engine", "kernel", "bare", r.Detector}}
	for _, s := range r.Scaling {
		watched := s.Why
		if watched == "" {
			watched = fixed(s.WatchedOne / s.WatchedAll)
		}
		t = append(t, []string{s.Engine, s.Kernel, fixed(s.BareOne / s.BareAll), watched})
	}
	p.table(t)
}

func (r *Report) peakTable(p *page, heading string) {
	if len(r.Peaks) == 0 {
		return
	}
	p.title(heading, "Memory of a large launch")
	p.say("\n`saxpy` in a process of its own: the largest resident set of the process, with the buffers on device and host.")
	t := table{{"engine", "threads", "detector", "buffers MiB", "peak MiB"}}
	for _, x := range r.Peaks {
		name := r.Detector
		if !x.Watched {
			name = "none"
		}
		t = append(t, []string{x.Engine, strconv.Itoa(x.Threads), name, number(float64(x.Buffers) / (1 << 20)), number(float64(x.Bytes) / (1 << 20))})
	}
	p.table(t)
}

func (r *Report) wholeTable(p *page, heading string) {
	if r.Whole == nil {
		return
	}
	p.title(heading, "The tool")
	t := table{{"what", "value"}}
	for _, c := range r.Whole.Corpus {
		t = append(t, []string{fmt.Sprintf("embedded corpus on `%s`, %d of %d programs as expected", c.Engine, c.Right, c.Programs), number(c.Seconds) + " s"})
	}
	if r.Whole.Skipped == "" {
		t = append(t, []string{"`fencepost run` of a small program", number(r.Whole.Run) + " s"},
			[]string{"nvcc alone, the same program and flags", number(r.Whole.NVCC) + " s"},
			[]string{"`fencepost run` of the program already built", number(r.Whole.Built) + " s"})
	}
	p.table(t)
	if r.Whole.Skipped != "" {
		p.say("\n`fencepost run` was not measured: %s.", r.Whole.Skipped)
	}
}

const pageHead = `<!-- Made by "go run ./cmd/bench -write docs/benchmarks.md". Do not edit. -->

# How fast is it?

Made on %d cores, %s; native code by %s. Absolute times mean little on another machine. Ratios are
made within one run, from measurements taken in turns, and are medians of %[4]d rounds. Times on one core are processor time.

%[6]s

- **bare/native**: time of the kernel's host program with its launches on the engine without a detector, divided by the time of the same work
  in C. Both run on one core. The PTX is made of the source by "nvcc -lineinfo -Xcicc -O0", as by Fencepost, which keeps every access in its
  place. Preparing the code (parsing, optimising) is not counted if a launch takes less than a second.
- **events/bare**: time with the events that the detector requests, which are made and discarded, divided by the bare time.
- **%[5]s/bare**, **%[5]s/native**: time with the detector, divided by the bare time and by the time of native code. A user waits for the time with
  the detector.
- **metadata B/B**: bytes of the detector's memory for each byte of the kernel's buffers, at the end of a launch, when the detector needs most.
- **warp-instr. kept/default**: warp-instructions that the engine executes for that PTX, divided by those of nvcc's optimised PTX on the
  reference engine, which executes it unchanged. **default/default**: the same for nvcc's optimised PTX on this engine.
- **digest**: FNV-1a of the bytes of the results. "=" means that the engine's results, with and without a detector, equal those of the native
  code bit by bit. "≈" means that they agree within the kernel's tolerance, because CUDA's rsqrtf, expf and logf are not those of the C
  library; the digest is then that of the sums of the results to three digits. No run may have a finding, because the kernels are free of races.
`

// WritePage writes the report as a page of the documentation.
func (r *Report) WritePage(w io.Writer) error {
	p := &page{w: w}
	compiler := r.Compiler
	if compiler == "" {
		compiler = "no compiler"
	}
	p.printf(pageHead, r.Cores, r.CPU, compiler, r.Rounds, r.Detector, r.path())
	r.tables(p, "## ")
	return p.err
}

// page is a writer that keeps its first error.
type page struct {
	w   io.Writer
	err error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *page) say(format string, args ...any) { p.printf(format+"\n", args...) }

func (p *page) title(heading, format string, args ...any) {
	p.printf("\n%s"+format+"\n", append([]any{heading}, args...)...)
}

// table holds rows of cells. The first row is the head.
type table [][]string

// table writes rows in Markdown with aligned columns, all but the first one to the right.
func (p *page) table(t table) {
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	p.printf("\n")
	for n, row := range t {
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if i == 0 {
				p.printf("| %s%s ", c, pad)
			} else {
				p.printf("| %s%s ", pad, c)
			}
		}
		p.printf("|\n")
		if n == 0 {
			for i := range row {
				if i == 0 {
					p.printf("|%s", strings.Repeat("-", width[i]+2))
				} else {
					p.printf("|%s:", strings.Repeat("-", width[i]+1))
				}
			}
			p.printf("|\n")
		}
	}
}

// number formats x with three significant digits, or as "" if x is 0.
func number(x float64) string {
	switch {
	case x == 0:
		return ""
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 0.01:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 2, 64)
}

// fixed formats x with two decimals.
func fixed(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }
