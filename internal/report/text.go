package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Text writes findings for people, like a compiler's diagnostics.
type Text struct {
	// Color switches terminal colours on.
	Color bool
	// Dir is the folder to which file names are shown relative; "" shows them as the compiler wrote them.
	Dir string
	// Source returns the lines of a source file, nil if it cannot be read.
	Source func(file string) []string
	// Limit is the number of findings of a group that are listed after its first; 0 lists all.
	Limit int
	// Short leaves out what is needed to fix a finding but not to understand it: addresses, synchronisation, counts.
	Short bool

	declared map[string]*declarations // by file
}

// Colours of the parts, as SGR parameters.
const (
	bold   = "1"
	red    = "1;31"
	yellow = "1;33"
	cyan   = "1;36"
	blue   = "1;34"
	green  = "1;32"
)

// Paint colours s by an SGR parameter, if there are colours.
func (t *Text) Paint(sgr, s string) string { return t.paint(sgr, s) }

func (t *Text) paint(sgr, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

var severityColor = map[detect.Severity]string{detect.Error: red, detect.Warning: yellow, detect.Info: cyan}

// Finding writes one finding, a blank line after it.
func (t *Text) Finding(w io.Writer, f *Finding) { t.Group(w, []*Finding{f}) }

// Group writes findings of one cause: the first, and a line for each of the others. A blank line follows.
func (t *Text) Group(w io.Writer, group []*Finding) {
	var b bytes.Buffer
	f := group[0]
	severity := f.Severity.String()
	if f.Predicted {
		severity += " (predicted)"
	}
	fmt.Fprintf(&b, "%s%s\n", t.paint(severityColor[f.Severity], severity), t.paint(bold, ": "+t.headline(f)))
	gutter := t.gutter(f)
	shown := f.inDisplayOrder()
	for i, a := range shown {
		t.access(&b, gutter, a, i > 0 && t.samePlace(a, shown[i-1]), i+1 < len(shown) && t.samePlace(a, shown[i+1]))
		if i+1 == len(shown) || shown[i+1].Launch != a.Launch {
			t.caller(&b, gutter, a)
		}
	}
	for _, n := range t.notes(f) {
		if t.Short && n[0] != "why" && n[0] != "fix" {
			continue
		}
		t.note(&b, gutter, n[0], n[1])
	}
	if head, lines := t.others(group); len(lines) > 0 {
		t.note(&b, gutter, "more", head)
		for _, line := range lines {
			fmt.Fprintf(&b, "%s  %s\n", strings.Repeat(" ", gutter+1), clean(line))
		}
	}
	b.WriteByte('\n')
	w.Write(b.Bytes())
}

// inDisplayOrder returns the accesses in the order of display: for a read and a write of one launch the write comes
// first, because which came first depends on the schedule.
func (f *Finding) inDisplayOrder() []*Access {
	var all []*Access
	for i := range f.Accesses {
		all = append(all, &f.Accesses[i])
	}
	if f.Class == detect.Race && len(all) == 2 && all[0].Op == detect.Read && all[1].Op != detect.Read && all[0].Launch == all[1].Launch {
		all[0], all[1] = all[1], all[0]
	}
	return all
}

// headline describes the error in one line, with the stable kind at its end.
func (t *Text) headline(f *Finding) string {
	return fmt.Sprintf("%s [%s]", t.Title(f), f.Kind)
}

// Title is the headline without the kind's id: "data race on tile[3] (shared): missing barrier".
func (t *Text) Title(f *Finding) string {
	switch {
	case len(f.Accesses) > 0 && f.Accesses[0].Op == detect.Call && f.Kernel == "":
		return kindTitle(f.Kind) + ": " + clean(f.Accesses[0].Host)
	case len(f.Accesses) == 0 || f.Accesses[0].Op == OpWait || f.Accesses[0].Op == detect.Call:
		return kindTitle(f.Kind) + in(f.Kernel)
	}
	where := t.element(f)
	if f.Class == detect.Race {
		return fmt.Sprintf("data race on %s: %s", where, kindTitle(f.Kind))
	}
	a := &f.Accesses[0]
	return fmt.Sprintf("%s: %s of %d bytes at %s", kindTitle(f.Kind), a.Op, a.Size, where)
}

func in(kernel string) string {
	if kernel == "" {
		return ""
	}
	return " in kernel " + ShortName(BareName(kernel))
}

// kindTitles are the titles of kinds whose names do not read well.
var kindTitles = map[detect.Kind]string{
	detect.AtomicScope:     "the atomic's scope is too small",
	detect.FenceScope:      "the fence's scope is too small",
	detect.LockScope:       "the lock's scope is too small",
	detect.MixedAtomic:     "atomic mixed with plain access",
	detect.WarpSynchronous: "relies on lockstep warps",
	detect.SameValue:       "unordered writes of the same value",
	detect.VolatileOnly:    "volatile does not order accesses",
	detect.Unordered:       "nothing orders the accesses",
	detect.InterKernel:     "kernels or host operations not ordered",
	detect.ReadOnlyLoad:    "read-only load of what the kernel writes",
	"assertion":            "failed assertion",
	"trap":                 "trap instruction",
	"launch-refused":       "launch refused",
	"freed-memory":         "use of freed memory",
	"call-out-of-bounds":   "out of bounds",
	"wrong-direction":      "wrong copy direction",
	"error-ignored":        "error never looked at",
}

func kindTitle(k detect.Kind) string {
	if s, ok := kindTitles[k]; ok {
		return s
	}
	return strings.ReplaceAll(string(k), "-", " ")
}

// element names the common object of both accesses: "tile[3] (shared)", "byte 12 of cudaMalloc #3 (64 bytes) (global)".
func (t *Text) element(f *Finding) string {
	a := f.shown()
	name := t.objectAt(a)
	if i, ok := t.index(f); ok {
		name = fmt.Sprintf("%s[%d]", BareName(a.Object.Name), i)
	}
	if a.Space == event.NoSpace || a.Space == event.Generic {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, a.Space)
}

// index returns the array index of the address if it is certain: the element size is known, or both accesses have one
// size and a source line of one of them subscripts the variable once with nothing after it. PTX contains no types:
// without that evidence tile[3] might be the second field of tile[1].
func (t *Text) index(f *Finding) (uint64, bool) {
	a := f.shown()
	o := &a.Object
	if !o.Named || o.Type != "" && o.Elem == 0 { // the latter is an array with gaps
		return 0, false
	}
	if o.Elem > 0 {
		return o.Offset / uint64(o.Elem), o.Size != uint64(o.Elem)
	}
	if a.Size == 0 || o.Size == uint64(a.Size) || o.Offset%uint64(a.Size) != 0 {
		return 0, false
	}
	sure := false
	for i := range f.Accesses {
		x := &f.Accesses[i]
		if x.Size != a.Size {
			return 0, false
		}
		p := x.Place()
		sure = sure || subscripts(t.line(p.File, p.Line), BareName(o.Name))
	}
	return o.Offset / uint64(a.Size), sure
}

// shown is the access whose address the headline names: the first with an object that has a name in the program.
func (f *Finding) shown() *Access {
	for i := range f.Accesses {
		if f.Accesses[i].Object.Named {
			return &f.Accesses[i]
		}
	}
	return &f.Accesses[0]
}

// subscripts reports whether every mention of name in the source line is a single subscript: name[...] without a member
// or another subscript after it.
func subscripts(line, name string) bool {
	found := false
	for rest := line; name != ""; {
		i := strings.Index(rest, name)
		if i < 0 {
			break
		}
		before, after := rest[:i], rest[i+len(name):]
		rest = after
		if isWordByte(lastByte(before)) || (after != "" && isWordByte(after[0])) {
			continue
		}
		end := closingBracket(strings.TrimLeft(after, " "))
		if end == "" && strings.TrimLeft(after, " ") == "" {
			return false
		}
		tail := strings.TrimLeft(strings.TrimPrefix(end, "]"), " ")
		if !strings.HasPrefix(end, "]") || strings.HasPrefix(tail, ".") || strings.HasPrefix(tail, "->") || strings.HasPrefix(tail, "[") {
			return false
		}
		found = true
	}
	return found
}

// closingBracket returns s from the bracket that closes the one with which s begins, "" if there is none.
func closingBracket(s string) string {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			if i == 0 {
				return ""
			}
			return s[i:]
		}
	}
	return ""
}

func lastByte(s string) byte {
	if s == "" {
		return 0
	}
	return s[len(s)-1]
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// objectAt names the address of an access: "tile + 12 bytes", "byte 12 of cudaMalloc #3 (4096 bytes)",
// "address 0x200000001000".
func (t *Text) objectAt(a *Access) string {
	o := &a.Object
	if o.Name == "" {
		return fmt.Sprintf("address %#x", a.Address)
	}
	name := o.Name
	if o.Named {
		name = BareName(name)
	}
	switch {
	case o.Offset == 0:
		return name
	case !o.Named:
		return fmt.Sprintf("byte %d of %s", o.Offset, name)
	}
	return fmt.Sprintf("%s + %d bytes", name, o.Offset)
}

// typed is the type of the object's elements and its shape, to be appended to its name.
func (o *Object) typed() string {
	if o.Type == "" {
		return ""
	}
	return " of " + o.Type
}

// gutter is the width of the line numbers of a finding.
func (t *Text) gutter(f *Finding) int {
	width := 1
	for i := range f.Accesses {
		if line, n, _ := t.source(f.Accesses[i].Place()); line != "" {
			width = max(width, len(strconv.Itoa(n)))
		}
	}
	return width
}

// samePlace reports whether two accesses are at one place with a source line, which is then shown once.
func (t *Text) samePlace(a, b *Access) bool {
	p, q := a.Place(), b.Place()
	line, _, _ := t.source(p)
	same := p.File == q.File && p.Line == q.Line && (p.Line > 0 || p.PTXFile == q.PTXFile && p.PTXLine == q.PTXLine)
	return line != "" && same && a.Host == "" && b.Host == "" && p.Function == q.Function &&
		len(a.Frames)-userIndex(a.Frames) == len(b.Frames)-userIndex(b.Frames)
}

// source returns the line to show for a place, its number and the column: those of the PTX if the PTX names no source.
// The line is "" if it is not available.
func (t *Text) source(f event.Frame) (line string, n, column int) {
	if f.File == "" || f.Line == 0 {
		return t.line(f.PTXFile, f.PTXLine), f.PTXLine, 0
	}
	return t.line(f.File, f.Line), f.Line, f.Column
}

// access writes one side: its place, the source line with a caret, its description, and the calls that led there.
// continued says that it is at the place of the preceding one, and continues that the next one is at its place.
func (t *Text) access(b *bytes.Buffer, gutter int, a *Access, continued, continues bool) {
	pad := strings.Repeat(" ", gutter)
	what := t.Describe(a)
	bar := t.paint(blue, "|")
	p := a.Place()
	line, n, column := t.source(p)
	switch {
	case a.Host != "" && (line == "" || p.File == ""):
		fmt.Fprintf(b, "%s%s host: %s\n%s %s %s\n", pad, t.paint(blue, "-->"), clean(a.Host)+t.hostPlace(p), pad, bar, t.paint(red, what))
	case line == "":
		fmt.Fprintf(b, "%s%s %s\n%s %s %s\n", pad, t.paint(blue, "-->"), t.Where(p), pad, bar, t.paint(red, what))
	default:
		from, to := t.marked(a, line, column)
		shown, space, caret := excerpt(line, from, to)
		if !continued {
			fmt.Fprintf(b, "%s%s %s\n%s %s\n", pad, t.paint(blue, "-->"), t.Where(p), pad, bar)
			fmt.Fprintf(b, "%s %s %s\n", t.paint(blue, fmt.Sprintf("%*d", gutter, n)), bar, shown)
		}
		fmt.Fprintf(b, "%s %s %s%s\n", pad, bar, space, t.paint(red, caret+" "+what))
	}
	t.inside(b, pad, a)
	if !continues {
		t.callers(b, pad, a)
		fmt.Fprintf(b, "%s %s\n", pad, bar)
	}
}

// hostPlace describes the place of a host call whose source line cannot be shown.
func (t *Text) hostPlace(p event.Frame) string {
	switch {
	case p.File != "":
		return " at " + t.Where(p)
	case p.Function != "":
		return " in " + ShortName(BareName(p.Function))
	}
	return ""
}

// inside names the functions called at the shown place: "inside atomicAdd > __iAtomicAdd, PTX line 11".
func (t *Text) inside(b *bytes.Buffer, pad string, a *Access) {
	at := userIndex(a.Frames)
	if at <= 0 || a.Host != "" {
		return
	}
	var names []string
	for i := at - 1; i >= 0; i-- {
		// Template arguments of the toolkit's own headers are of no use to the reader.
		name, _, _ := strings.Cut(BareName(a.Frames[i].Function), "<")
		if name != "" && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(b, "%s %s   inside %s%s\n", pad, t.paint(blue, "|"), clean(strings.Join(elide(names, 4), " > ")), ptxPlace(a.Frames[0]))
	}
}

// callers writes the calls that led to the function of the shown place.
func (t *Text) callers(b *bytes.Buffer, pad string, a *Access) {
	at := userIndex(a.Frames)
	if at >= 0 {
		t.calls(b, pad, a.Frames[at:])
	}
}

// calls writes the calls that led to the first of the frames, innermost first: the first six of them and, if all of
// these are in headers, the user's own however deep it is.
func (t *Text) calls(b *bytes.Buffer, pad string, frames []event.Frame) {
	bar := t.paint(blue, "|")
	own := slices.IndexFunc(frames, func(f event.Frame) bool { return f.File != "" && f.Line > 0 && !systemFile(f.File) })
	const most = 6
	skipped := 0
	for i, f := range frames {
		switch {
		case i == 0:
		case i > most && i != own && f.Graph == 0:
			skipped++
		default:
			if skipped > 0 {
				fmt.Fprintf(b, "%s %s   through %s\n", pad, bar, plural(skipped, "more call"))
				skipped = 0
			}
			fmt.Fprintf(b, "%s %s   %s %s\n", pad, bar, calledFrom(f), t.Where(f))
		}
	}
	if skipped > 0 {
		fmt.Fprintf(b, "%s %s   and %s\n", pad, bar, plural(skipped, "more call"))
	}
}

// calledFrom describes the relation of a frame of a call stack to the preceding one.
func calledFrom(f event.Frame) string {
	if f.Graph != 0 {
		return "in a graph launched at"
	}
	return "called from"
}

// caller writes the host's place of the launch of an access.
func (t *Text) caller(b *bytes.Buffer, gutter int, a *Access) {
	if len(a.Caller) == 0 {
		return
	}
	pad := strings.Repeat(" ", gutter)
	fmt.Fprintf(b, "%s%s launched at %s\n", pad, t.paint(blue, "-->"), t.Where(a.Caller[0]))
	t.calls(b, pad, a.Caller)
	fmt.Fprintf(b, "%s %s\n", pad, t.paint(blue, "|"))
}

// elide keeps the first and the last names of a long list.
func elide(names []string, keep int) []string {
	if len(names) <= keep {
		return names
	}
	out := append([]string{}, names[:keep-1]...)
	return append(out, "...", names[len(names)-1])
}

// ptxPlace is empty if there is no PTX: in programs of the CPU.
func ptxPlace(f event.Frame) string {
	if f.PTXLine == 0 {
		return ""
	}
	return fmt.Sprintf(", PTX line %d", f.PTXLine)
}

// Where names the place of a frame: "reduce.cu:12:7 in reduce", or the PTX line if the PTX has no source lines.
func (t *Text) Where(f event.Frame) string {
	in := ""
	if f.Function != "" {
		in = " in " + ShortName(BareName(f.Function))
	}
	if f.File != "" && f.Line > 0 {
		if f.Column > 0 {
			return fmt.Sprintf("%s:%d:%d%s", t.file(f.File), f.Line, f.Column, in)
		}
		return fmt.Sprintf("%s:%d%s", t.file(f.File), f.Line, in)
	}
	if f.PTXLine > 0 {
		return fmt.Sprintf("%s:%d%s (no source line in the PTX)", t.file(f.PTXFile), f.PTXLine, in)
	}
	return "an unknown place" + in
}

// File shows a file name as the text does.
func (t *Text) File(name string) string { return t.file(name) }

// file shows a file name relative to Dir if it is below it, and a header of the toolkit as it is included.
func (t *Text) file(name string) string {
	if header, ok := toolkitHeaderName(name); ok {
		return clean(header)
	}
	if t.Dir == "" || !filepath.IsAbs(name) {
		return clean(name)
	}
	rel, err := filepath.Rel(t.Dir, name)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return clean(filepath.Clean(name))
	}
	return clean(rel)
}

// Describe describes an access and its thread.
func (t *Text) Describe(a *Access) string {
	switch {
	case a.Op == OpWait:
		return t.describeWait(a)
	case a.Op == detect.Call:
		return clean(a.Host + " " + a.Doing)
	}
	if a.Actor != "" {
		return fmt.Sprintf("%s by thread %s", a.Op, clean(a.Actor))
	}
	size := fmt.Sprintf("%d bytes", a.Size)
	if a.Size == 1 {
		size = "1 byte"
	}
	var q []string
	if a.Order != event.Weak {
		q = append(q, a.Order.String())
		if a.Order != event.Volatile && a.Scope != event.NoScope {
			q = append(q, a.Scope.String()+" scope")
		}
	}
	op := string(a.Op)
	if len(q) > 0 {
		op += " (" + strings.Join(q, ", ") + ")"
	}
	if a.Host != "" && a.Place().File != "" {
		return op + " by the host: " + clean(a.Host)
	}
	if a.Host != "" {
		return op // of a range, one byte of which raced
	}
	by := fmt.Sprintf("by thread %s of block %s", a.Thread, a.Block)
	if a.Threads > 1 {
		by = fmt.Sprintf("by %d threads, one is %s of block %s", a.Threads, a.Thread, a.Block)
	}
	if a.Size == 0 { // of a litmus test, whose variables have no size
		return op + " " + by
	}
	return fmt.Sprintf("%s of %s %s", op, size, by)
}

func (t *Text) describeWait(a *Access) string {
	doing := a.Doing
	if doing == "" {
		doing = "is here"
	}
	if a.Threads > 1 {
		return fmt.Sprintf("%d threads, one is %s of block %s: %s", a.Threads, a.Thread, a.Block, doing)
	}
	return fmt.Sprintf("thread %s of block %s: %s", a.Thread, a.Block, doing)
}

// notes are the lines below the source: label and text.
func (t *Text) notes(f *Finding) [][2]string {
	var ns [][2]string
	add := func(label, format string, args ...any) {
		ns = append(ns, [2]string{label, fmt.Sprintf(format, args...)})
	}
	t.kernelNotes(f, add)
	if len(f.Accesses) > 0 && f.Accesses[0].Op != OpWait && f.Accesses[0].Op != detect.Call && f.Accesses[0].Actor == "" {
		add("address", "%s", t.addresses(f))
	}
	if f.synchronised() {
		add("sync", "%s", t.syncAfter(&f.Accesses[0]))
		add("sync", "%s", t.syncBefore(&f.Accesses[1]))
	}
	if f.Message != "" {
		add("why", "%s", f.Message)
	}
	if len(f.Sections) == 2 {
		add("order", "%s", t.order(&f.Sections[0], &f.Sections[1]))
	}
	if f.Fix != "" {
		add("fix", "%s", f.Fix)
	}
	seen := plural(f.Count, "time")
	if f.Addresses > 1 {
		unit := "bytes"
		if f.Accesses[0].Actor != "" {
			unit = "variables"
		}
		seen += fmt.Sprintf(", on %d %s", f.Addresses, unit)
	}
	by := "detector " + f.Detector
	if len(f.Also) > 0 {
		by = "detectors " + strings.Join(append([]string{f.Detector}, f.Also...), ", ")
	}
	add("seen", "%s; id %s, %s", seen, f.ID, by)
	return ns
}

// synchronised reports whether Sync of both accesses is known: for the first the following one, for the second the
// preceding one.
func (f *Finding) synchronised() bool {
	return f.Class == detect.Race && f.Kind != detect.InterKernel && len(f.Accesses) == 2 && !f.NoSync
}

func (t *Text) kernelNotes(f *Finding, add func(label, format string, args ...any)) {
	shown := ""
	for i := range f.Accesses {
		a := &f.Accesses[i]
		if a.Host != "" || a.Kernel == "" {
			continue
		}
		s := fmt.Sprintf("%s, launch %d, grid %s, block %s", ShortName(Demangle(a.Kernel)), a.Launch, a.Grid, a.Shape)
		if a.Rerun != "" {
			s += "; seen when it was executed once more, as by " + a.Rerun
		}
		if s != shown {
			add("kernel", "%s", s)
		}
		shown = s
	}
}

// addresses returns the object and address of the accesses; both if they differ.
func (t *Text) addresses(f *Finding) string {
	s := t.address(&f.Accesses[0])
	for i := 1; i < len(f.Accesses); i++ {
		if x := t.address(&f.Accesses[i]); x != s {
			s += "; " + x
		}
	}
	return s
}

// address returns the object and address of an access.
func (t *Text) address(a *Access) string {
	o := &a.Object
	var s string
	switch {
	case a.Space == event.Tensor:
		s = o.Name
	case (a.Space == event.Shared || a.Space == event.Local) && o.Name == "":
		s = fmt.Sprintf("%s memory offset %#x", a.Space, a.Address)
	case a.Space == event.Shared || a.Space == event.Local:
		s = fmt.Sprintf("%s (%s memory offset %#x)", t.objectAt(a), a.Space, a.Address)
	case a.Size == 0 && a.Address == 0 && o.Named:
		s = t.objectAt(a)
	case o.Name == "" && o.Unknown:
		s = fmt.Sprintf("%#x", a.Address)
	case o.Name == "":
		s = fmt.Sprintf("%#x, in no allocation", a.Address)
	default:
		s = fmt.Sprintf("%s (%#x)", t.objectAt(a)+a.Object.typed(), a.Address)
	}
	if a.Owner != "" {
		s += " of block " + a.Owner
	}
	if o.Freed {
		s += ", freed before"
	} else if o.Named && o.Size > 0 && o.Offset >= o.Size {
		s += fmt.Sprintf(", whose size is %d bytes", o.Size)
	}
	return s
}

func who(a *Access) string {
	if a.Host != "" {
		return "the host"
	}
	return fmt.Sprintf("thread %s of block %s", a.Thread, a.Block)
}

func (t *Text) syncAfter(a *Access) string {
	if a.Sync == nil {
		return fmt.Sprintf("after its %s, %s does not synchronise before the other access", a.Op, who(a))
	}
	return fmt.Sprintf("after its %s, %s next does %s", a.Op, who(a), t.sync(a.Sync))
}

func (t *Text) syncBefore(a *Access) string {
	if a.Sync == nil {
		return fmt.Sprintf("before its %s, %s has not synchronised", a.Op, who(a))
	}
	return fmt.Sprintf("before its %s, %s last did %s", a.Op, who(a), t.sync(a.Sync))
}

func (t *Text) sync(s *Sync) string {
	if len(s.Frames) == 0 {
		return s.What
	}
	return fmt.Sprintf("%s at %s", s.What, t.Where(userFrame(s.Frames)))
}

// note writes one labelled line, wrapped.
func (t *Text) note(b *bytes.Buffer, gutter int, label, text string) {
	pad := strings.Repeat(" ", gutter+1)
	const width = 110
	lead := len(pad) + len("= ") + len(label) + len(": ")
	for i, line := range Wrap(clean(text), width-lead) {
		if i == 0 {
			fmt.Fprintf(b, "%s%s %s %s\n", pad, t.paint(blue, "="), t.paint(bold, label+":"), line)
			continue
		}
		fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", lead), line)
	}
}

// Wrap breaks text at spaces into lines of at most width runes if words are not longer.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Brief writes a finding in short form: the headline, and each side's place with its source line.
func (t *Text) Brief(w io.Writer, f *Finding) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "  %s%s\n", t.paint(severityColor[f.Severity], f.Severity.String()), t.paint(bold, ": "+t.headline(f)))
	last := ""
	for i := range f.Accesses {
		a := &f.Accesses[i]
		p := a.Place()
		if a.Host != "" {
			fmt.Fprintf(&b, "    %-7s host: %s%s\n", a.Op, clean(a.Host), t.hostPlace(p))
			continue
		}
		op := string(a.Op)
		if a.Op == OpWait {
			op = "at"
		}
		line := fmt.Sprintf("    %-7s %d:%d: %s", op, p.Line, p.Column, strings.TrimSpace(t.line(p.File, p.Line)))
		if p.File == "" {
			line = fmt.Sprintf("    %-7s %s", op, t.Where(p))
		}
		if line != last {
			fmt.Fprintln(&b, clean(line))
		}
		last = line
	}
	w.Write(b.Bytes())
}
