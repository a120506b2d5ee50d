package cli

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/verify"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// kernelOptions are the flags that launch a kernel.
type kernelOptions struct {
	grid, block []int
	args        []string // as entries of a launch file
	shared      int
	name        string
	number      int // of a launch of a program, from 1; 0: none
	schedule    string
}

// The flags that launch a kernel without a launch file, or override one.
var (
	gridFlag = &flag{"grid", "N[,N[,N]]", "launch the kernel with N blocks, whatever the file says",
		func(o *options, v string) error { return dimensions(v, &o.kernel.grid) }}
	blockFlag = &flag{"block", "N[,N[,N]]", "launch the kernel with blocks of N threads, whatever the file says",
		func(o *options, v string) error { return dimensions(v, &o.kernel.block) }}
	argFlag = &flag{"arg", "VALUE", "an argument of the kernel, one --arg for each: i32=5, or a buffer as in x:i32[4] or x:i32[4]=7; x is that buffer again",
		func(o *options, v string) error { return argument(v, &o.kernel.args) }}
	sharedFlag = &flag{"shared", "BYTES", "dynamic shared memory of a block of the kernel",
		func(o *options, v string) error { return number(v, 0, 1<<20, &o.kernel.shared) }}
)

// launches reports whether flags launch a kernel.
func (k *kernelOptions) launches() bool {
	return k.grid != nil || k.block != nil || k.args != nil || k.shared > 0
}

// dimensions reads "4" or "2,2,1".
func dimensions(text string, dst *[]int) error {
	*dst = nil
	for part := range strings.SplitSeq(text, ",") {
		n := 0
		if err := number(part, 1, 1<<20, &n); err != nil {
			return err
		}
		*dst = append(*dst, n)
	}
	if len(*dst) > 3 {
		return usagef("%s has %d dimensions; a grid or block has at most 3", text, len(*dst))
	}
	return nil
}

var (
	numberArg = regexp.MustCompile(`^([iuf](?:8|16|32|64))=([^\s,{}\[\]"]+)$`)
	bytesArg  = regexp.MustCompile(`^bytes=([0-9a-fA-F ]+)$`)
	noType    = regexp.MustCompile(`^(?:[-+]?[.\d]+|null|NULL|nullptr|true|false)$`)
	bufferArg = regexp.MustCompile(`^(\w+)(?::([iuf](?:8|16|32|64))\[(\d+)\](?:=(.+))?)?$`)
	fillWord  = regexp.MustCompile(`^[a-z]+$`)
)

// argument makes an entry of the args of a launch file.
func argument(text string, dst *[]string) error {
	if m := numberArg.FindStringSubmatch(text); m != nil {
		entry := fmt.Sprintf("{ %s = %s }", m[1], m[2])
		// Numbers of a launch file have at most 63 bits.
		if v, err := strconv.ParseUint(m[2], 0, 64); err == nil && m[1] == "u64" && v > math.MaxInt64 {
			entry = fmt.Sprintf("{ bytes = \"% x\" }", binary.LittleEndian.AppendUint64(nil, v))
		}
		*dst = append(*dst, entry)
		return nil
	}
	if m := bytesArg.FindStringSubmatch(text); m != nil {
		*dst = append(*dst, fmt.Sprintf("{ bytes = %q }", m[1]))
		return nil
	}
	if noType.MatchString(text) {
		return usagef("%q has no type: write a number as TYPE=VALUE (i32=5, f32=0.5), a bool as u8=1, and a null pointer as u64=0", text)
	}
	m := bufferArg.FindStringSubmatch(text)
	if m == nil {
		return usagef("%q is no argument: write a number as TYPE=VALUE (i32=5, f32=0.5), a struct as bytes=HEX, and a buffer as NAME:TYPE[COUNT] or "+
			"NAME:TYPE[COUNT]=FILL (x:i32[4], x:i32[4]=7, x:u32[2]=[1, 2]), where TYPE is i8 u8 i16 u16 i32 u32 i64 u64 f32 or f64; NAME alone is a buffer described before", text)
	}
	entry := fmt.Sprintf("{ buffer = %q", m[1])
	if m[2] != "" {
		entry += fmt.Sprintf(", type = %q, shape = [%s]", m[2], m[3])
	}
	switch {
	case fillWord.MatchString(m[4]):
		entry += fmt.Sprintf(", fill = %q", m[4])
	case m[4] != "":
		entry += ", fill = " + m[4]
	}
	*dst = append(*dst, entry+" }")
	return nil
}

// madeFile is the name of a launch file that is made from the flags.
const madeFile = "--arg"

// madeTerms replaces terms of launch files in messages by the flags.
var madeTerms = strings.NewReplacer("as in kernel = ", "as in --kernel ", "needs a type and a shape", "needs a type and a count, as in NAME:i32[4]", "shape is", "the count is")

// file makes a launch file from the flags, with each argument on a line of its own.
func (k *kernelOptions) file() string {
	return k.head() + "  " + strings.Join(k.args, ",\n  ") + "\n]\n"
}

// head is the launch file up to the arguments.
func (k *kernelOptions) head() string {
	var b strings.Builder
	list := func(name string, d []int) {
		if d == nil {
			d = []int{1}
		}
		var parts []string
		for _, n := range d {
			parts = append(parts, strconv.Itoa(n))
		}
		fmt.Fprintf(&b, "%s = [%s]\n", name, strings.Join(parts, ", "))
	}
	if k.name != "" {
		fmt.Fprintf(&b, "kernel = %q\n", k.name)
	}
	list("grid", k.grid)
	list("block", k.block)
	fmt.Fprintf(&b, "shared = %d\nargs = [\n", k.shared)
	return b.String()
}

// launch returns the launch file of a kernel: an existing one, or one made from the flags. Flags override the file.
func (k *kernelOptions) launch(o *options, name string, in *session.Input) (*session.LaunchFile, error) {
	if o.launch == "" && (k.grid != nil || k.block != nil || k.args != nil) {
		f, err := session.ReadLaunchFile(madeFile, []byte(k.file()))
		if err == nil && k.name != "" {
			f.Launches[0].KernelPos = session.Pos{}
		}
		return f, k.blame(err)
	}
	f, err := launchFile(o, name, in)
	if err != nil {
		return nil, err
	}
	if len(f.Launches) != 1 {
		return nil, usagef("%s has %d launches, and --grid, --block, --shared and \"fencepost verify\" are of one: give a launch file with one", f.Name, len(f.Launches))
	}
	if k.args != nil {
		return nil, usagef("--arg and --launch exclude each other: %s has the arguments", f.Name)
	}
	l := &f.Launches[0]
	for _, d := range []struct {
		flag []int
		dim  []*uint32
	}{{k.grid, []*uint32{&l.Grid.X, &l.Grid.Y, &l.Grid.Z}}, {k.block, []*uint32{&l.Block.X, &l.Block.Y, &l.Block.Z}}} {
		for i := range d.flag {
			*d.dim[i] = uint32(d.flag[i])
		}
	}
	if k.shared > 0 {
		l.Shared = k.shared
	}
	if k.name != "" {
		l.Kernel, l.KernelPos = k.name, session.Pos{}
	}
	return f, nil
}

// explorer is an engine that explores launches instead of running them.
type explorer struct {
	options verify.Options
	claims
	result *verify.Result
	took   time.Duration
	err    error
}

// claims are the claims of a launch file about the final memory of every execution.
type claims struct {
	expects   []session.Expect
	condition *session.Condition
	file      string // the launch file
}

// claimsOf returns the claims of a launch file.
func claimsOf(f *session.LaunchFile) claims { return claims{f.Expects, f.Condition, f.Name} }

// Run implements engine.Engine.
func (x *explorer) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	var condition *verify.Condition
	if condition, x.err = x.claim(l); x.err == nil {
		begin := time.Now()
		x.result, x.err = verify.Kernel(ctx, l, x.expected(l), condition, x.options)
		x.took = time.Since(begin)
	}
	return engine.Stats{}, nil
}

// registers are the registers of a launch's kernel that a formula mentions. They implement litmus.Registers.
type registers struct {
	launch *engine.Launch
	list   []verify.Register
	types  []isa.Type // of list
}

// Threads implements litmus.Registers.
func (x *registers) Threads() int { return int(x.launch.Grid.Count() * x.launch.Block.Count()) }

// Number implements litmus.Registers.
func (x *registers) Number(name string) (int32, error) {
	slot, t, err := x.launch.Func.Register(name)
	if err != nil {
		return 0, err
	}
	r := verify.Register{Slot: slot, Bytes: max(t.Size(), 1), Signed: t.Signed()}
	n := slices.Index(x.list, r)
	if n < 0 {
		n = len(x.list)
		x.list, x.types = append(x.list, r), append(x.types, t)
	}
	return int32(n), nil
}

// Range implements litmus.Registers.
func (x *registers) Range(number int32) (least, most int64) {
	switch t := x.types[number]; {
	case t == isa.Pred:
		return 0, 1
	case t.Size() >= 8: // of both signs: see verify.Register
		return math.MinInt64, math.MaxInt64
	case t.Signed():
		return -1 << (8*t.Size() - 1), 1<<(8*t.Size()-1) - 1
	default:
		return 0, 1<<(8*t.Size()) - 1
	}
}

// claim reads the condition of the launch file: a formula over elements of the buffers that the launch takes, and over
// registers.
func (x *explorer) claim(l *engine.Launch) (*verify.Condition, error) {
	if x.condition == nil {
		return nil, nil
	}
	var variables []litmus.Variable
	var of []int // by location: its argument
	for i, a := range l.Arguments {
		if a.Elem == 0 || a.Float || slices.ContainsFunc(variables, func(v litmus.Variable) bool { return v.Name == a.Name }) {
			continue
		}
		n := int(a.Size / uint64(a.Elem))
		variables = append(variables, litmus.Variable{Name: a.Name, First: int32(len(of)), Size: n, Array: n != 1})
		of = append(of, slices.Repeat([]int{i}, n)...)
	}
	where := fmt.Sprintf("%s (line %d, the text of %s)", x.file, x.condition.Pos.Line, x.condition.Quantifier)
	named := &registers{launch: l}
	f, observed, err := litmus.ParseFormula(where, x.condition.Text, variables, named)
	if err != nil {
		return nil, err
	}
	return &verify.Condition{Condition: litmus.Condition{Quantifier: litmus.Quantifier(x.condition.Quantifier), Formula: f}, Observed: observed,
		Registers: named.list,
		Element: func(loc int32) (addr uint64, size int, signed bool) {
			a := &l.Arguments[of[loc]]
			first := slices.Index(of, of[loc])
			return a.Addr + uint64(int(loc)-first)*uint64(a.Elem), a.Elem, a.Signed
		}}, nil
}

// expected returns the elements of memory with expected values.
func (x *explorer) expected(l *engine.Launch) []verify.Expected {
	var expected []verify.Expected
	for i := range x.expects {
		expect := &x.expects[i]
		for _, a := range l.Arguments {
			if a.Name != expect.Buffer.Name {
				continue
			}
			for k := range expect.First {
				expected = append(expected, verify.Expected{Name: a.Name, Index: k, Addr: a.Addr + k*uint64(a.Elem), Size: a.Elem,
					Judge: func(data []byte) (string, bool) {
						got, _, ok := expect.Judge(k, data)
						return got, ok
					}})
			}
		}
	}
	return expected
}

// exploreLaunch explores the launch of in. If it returns no result the report says why.
func exploreLaunch(ctx context.Context, o session.Options, in *session.Input, v verify.Options) (*verify.Result, *report.Report, error) {
	x, rep, err := explore(ctx, o, in, v)
	return x.result, rep, err
}

// explore is exploreLaunch with the complete data of the search.
func explore(ctx context.Context, o session.Options, in *session.Input, v verify.Options) (*explorer, *report.Report, error) {
	x := &explorer{options: v, claims: claimsOf(in.Launch)}
	in.Launch.Expects, in.Launch.Condition = nil, nil // they apply to every execution, not to one run
	o.Bare, o.Seeds, o.Engine = true, 1, func() engine.Engine { return x }
	rep, err := session.Check(ctx, &o, in)
	if err == nil {
		err = x.err
	}
	if rep != nil { // this run has no detector on purpose
		rep.Notes = slices.DeleteFunc(rep.Notes, func(n string) bool { return n == session.NoDetector })
	}
	return x, rep, err
}

// tellResult writes a result as text, more may append to the text, and the files of its findings. It returns the
// report. launch is the number of the launch among those of its kernel.
func (o *options) tellResult(e *env, result *verify.Result, took time.Duration, launch int, source func(string) []string, more func(rep *report.Report, w io.Writer) error) (*report.Report, error) {
	w := o.reportWriter(e, e.stdout)
	if err := o.writeFindings(result, launch); err != nil {
		return nil, err
	}
	rep := result.Report()
	report.Fingerprint(rep.Findings, source)
	o.annotate(w, rep, source)
	text := newText(w, source)
	result.Rename(text.File)
	result.Text(w, func(file string, line int) string {
		if lines := text.Source(file); line >= 1 && line <= len(lines) {
			return lines[line-1]
		}
		return ""
	}, text.Paint)
	o.tellTimes(w, took, rep)
	if more == nil {
		return rep, nil
	}
	return rep, more(rep, w)
}

// unroll is the bound of loops.
func (o *options) unroll() int { return cmp.Or(o.litmus.Unroll, litmus.DefaultUnroll) }

// blame finds the flag that caused an error in the launch file made from the flags, or an error about the kernel that
// --kernel names.
func (k *kernelOptions) blame(err error) error {
	var list session.FileErrors
	if errors.As(err, &list) {
		var blamed []error
		for _, e := range list {
			blamed = append(blamed, k.blame(e))
		}
		return errors.Join(blamed...)
	}
	var at *session.FileError
	if !errors.As(err, &at) {
		return err
	}
	if at.Pos == (session.Pos{}) && k.name != "" {
		return fmt.Errorf("--kernel: %s", at.Msg)
	}
	if at.File != madeFile {
		return err
	}
	flag := madeFile
	if n := at.Pos.Line - strings.Count(k.head(), "\n"); n >= 1 && n <= len(k.args) {
		flag = fmt.Sprintf("%s number %d", madeFile, n)
	}
	text := madeTerms.Replace(at.Msg)
	if refused := (*cuda.Error)(nil); errors.As(err, &refused) {
		return fmt.Errorf("the launch is refused (%s)", text)
	}
	if len(k.args) == 0 && strings.Contains(text, "its parameters are") {
		text += "; an argument is a number, as --arg i32=5, or a buffer, as --arg 'x:i32[64]'"
	}
	return fmt.Errorf("%s: %s", flag, text)
}

// identity identifies a launch: the code, and the description of the launch.
func (o *options) identity(in *session.Input) []string {
	k := &o.kernel
	out := []string{fmt.Sprint(o.unroll(), k.grid, k.block, k.shared, k.name), strings.Join(k.args, "\n")}
	for _, image := range in.Images {
		out = append(out, image.Name, image.Text)
	}
	if file, err := os.ReadFile(in.Launch.Name); err == nil { // otherwise it was made from the flags
		out = append(out, string(file))
	}
	return out
}

// verifyKernel explores a launch of a kernel.
func verifyKernel(ctx context.Context, e *env, o *options, name string) (int, error) {
	in, err := inputFiles(ctx, e, o, []string{name})
	if err != nil {
		return 0, err
	}
	if in.Launch, err = o.kernel.launch(o, name, in); err != nil {
		return 0, o.kernel.blame(err)
	}
	opts, stop := o.verifyProgress(e)
	opts.Unroll = o.unroll()
	if opts.Checkpoint, err = o.openCheckpoint(o.identity(in)...); err != nil {
		return 0, err
	}
	claims := claimsOf(in.Launch)
	x, rep, err := explore(ctx, o.session, in, opts)
	result := x.result
	stop()
	if result != nil {
		o.closeCheckpoint(&opts, result)
	}
	var large *verify.TooLarge
	switch source := sourceBeside(name); {
	case errors.As(err, &large):
		return 0, fmt.Errorf("%w: give a smaller --grid and --block", err)
	case err != nil:
		return 0, o.kernel.blame(err)
	case result == nil: // the device refused the launch: the report says why
		return tell(e, o.reportWriter(e, e.stdout), o, rep, source)
	default:
		rep, err = o.tellResult(e, result, x.took, 1, source, func(rep *report.Report, w io.Writer) error {
			if !o.repair || result.Verdict() != verify.Error {
				return nil
			}
			fixed, err := repairKernel(ctx, e, o, name, in, claims, opts)
			if err == nil {
				fixed.Text(w)
				rep.Verify.Repair = fixed.Report()
			}
			return err
		})
		if err != nil {
			return 0, err
		}
		return exitCodes[rep.Verdict], writeReports(e, o, rep, source)
	}
}
