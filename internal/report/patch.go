package report

import (
	"regexp"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/diff"
	"fencepost.dev/fencepost/internal/event"
)

// Patch is a change of a source file that fixes a finding.
type Patch struct {
	File  string
	Edits []Edit // by line
	Diff  string // unified
}

// Edit changes a line of a source.
type Edit struct {
	Line   int
	Insert bool // Text is inserted before the line; otherwise it replaces the line
	Text   string
}

// Patches adds known fixes to the findings: a wider scope at the places that the findings of the kernel name, and a
// barrier between two statements that all threads of the block execute.
func Patches(findings []Finding, source func(file string) []string) {
	read := CachedSource(source)
	scopes := map[string]*Patch{} // by kernel
	for i := range findings {
		if f := &findings[i]; f.patchable() && f.narrow() {
			if scopes[f.Kernel] == nil {
				scopes[f.Kernel] = &Patch{}
			}
			scopes[f.Kernel].widen(f, read)
		}
	}
	for _, p := range scopes {
		p.write(read)
	}
	for i := range findings {
		f := &findings[i]
		switch {
		case !f.patchable():
		case f.Kind == detect.MissingBarrier:
			f.Patch = barrierBetween(f, read)
		case f.narrow() && scopes[f.Kernel].Diff != "":
			f.Patch = scopes[f.Kernel]
		}
	}
}

// patchable reports whether the finding is a race of two threads that counts.
func (f *Finding) patchable() bool {
	return f.Class == detect.Race && f.Suppressed == nil && len(f.Accesses) == 2 && f.Accesses[0].Host == "" && f.Accesses[1].Host == ""
}

// sameBlock reports whether the two threads are in one block.
func (f *Finding) sameBlock() bool {
	return f.Accesses[0].Launch == f.Accesses[1].Launch && f.Accesses[0].Block == f.Accesses[1].Block
}

// narrow reports whether a scope is that of a block but should be that of the device. Between launches it should be
// that of the system.
func (f *Finding) narrow() bool {
	return f.Accesses[0].Launch == f.Accesses[1].Launch && !f.sameBlock() && (f.Kind == detect.AtomicScope || f.Kind == detect.FenceScope || f.Kind == detect.LockScope)
}

// write makes the diff of the edits, in the order of the lines.
func (p *Patch) write(read func(string) []string) {
	if len(p.Edits) == 0 {
		return
	}
	slices.SortFunc(p.Edits, func(a, b Edit) int { return a.Line - b.Line })
	before := read(p.File)
	p.Diff = diff.Unified(p.File, strings.Join(before, "\n")+"\n", strings.Join(p.Apply(before), "\n")+"\n")
}

// Apply makes the edits.
func (p *Patch) Apply(lines []string) []string {
	var out []string
	edits := p.Edits
	for i, line := range lines {
		keep := true
		for ; len(edits) > 0 && edits[0].Line == i+1; edits = edits[1:] {
			out = append(out, edits[0].Text)
			keep = keep && edits[0].Insert
		}
		if keep {
			out = append(out, line)
		}
	}
	return out
}

// blockScope matches the CUDA C++ names of block scope.
var blockScope = regexp.MustCompile(`\b(atomic[A-Za-z]+)_block\b|\b__threadfence_block\b|\bthread_scope_block\b`)

// widen gives device scope to the operations of block scope that a finding names in one file, that of the first.
func (p *Patch) widen(f *Finding, read func(string) []string) {
	for i := range f.Accesses {
		a := &f.Accesses[i]
		places := []event.Frame{a.Place()}
		if a.Sync != nil {
			places = append(places, userFrame(a.Sync.Frames))
		}
		for _, at := range places {
			text := line(read, at.File, at.Line)
			wide := blockScope.ReplaceAllStringFunc(text, func(s string) string {
				if s == "thread_scope_block" {
					return "thread_scope_device"
				}
				return strings.TrimSuffix(s, "_block")
			})
			if wide == text || p.File != "" && p.File != at.File || slices.ContainsFunc(p.Edits, func(e Edit) bool { return e.Line == at.Line }) {
				continue
			}
			p.File = at.File
			p.Edits = append(p.Edits, Edit{Line: at.Line, Text: wide})
		}
	}
}

// barrierBetween inserts a barrier between the two accesses if the threads are in one block, the later access is on a
// later line, and both are in the body of one kernel, so that every thread of the block passes between them.
func barrierBetween(f *Finding, read func(string) []string) *Patch {
	a, b := f.Accesses[0].Place(), f.Accesses[1].Place()
	if !f.sameBlock() || a.File == "" || a.File != b.File || a.Function != b.Function || a.Line >= b.Line || !cFile.MatchString(a.File) {
		return nil
	}
	lines := read(a.File)
	if b.Line > len(lines) {
		return nil
	}
	body := statements(lines[:b.Line])
	at := len(body.starts) - 1
	if !body.kernel || body.leaves || at < 0 || body.starts[at] <= a.Line || body.from > a.Line {
		return nil
	}
	n := body.starts[at]
	text := lines[n-1]
	p := &Patch{File: a.File, Edits: []Edit{{n, true, text[:len(text)-len(strings.TrimLeft(text, " \t"))] + "__syncthreads();"}}}
	p.write(read)
	return p
}

// body describes the function in whose body lines end.
type body struct {
	kernel bool  // it is a __global__ function
	leaves bool  // a thread may leave it before the end of the lines
	from   int   // the line at which it begins
	starts []int // lines on which a statement of its outermost block begins and that contain no part of another
}

var (
	literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|//.*|/\*.*?\*/`)
	leaving = regexp.MustCompile(`\b(return|goto|exit|asm|__trap|throw)\b`)
)

// statements finds the function in which the given lines end. If there are preprocessor lines or multi-line comments it
// finds none.
func statements(lines []string) (b body) {
	depth, parens, header, begins := 0, 0, "", false
	for i, line := range lines {
		text := strings.TrimSpace(literal.ReplaceAllString(line, " "))
		if strings.Contains(text, "/*") || depth > 0 && strings.HasPrefix(text, "#") {
			return body{}
		}
		if strings.HasPrefix(text, "#") {
			continue
		}
		if depth == 1 && parens == 0 && begins && text != "" && !strings.HasPrefix(text, "else") && !strings.HasPrefix(text, "}") {
			b.starts = append(b.starts, i+1)
		}
		if depth > 0 && leaving.MatchString(text) && i+1 < len(lines) {
			b.leaves = true
		}
		for _, c := range text {
			switch c {
			case '(', '[':
				parens++
			case ')', ']':
				parens--
			case '{':
				if depth == 0 {
					b = body{kernel: strings.Contains(header, "__global__"), from: i + 1}
				}
				depth++
			case '}':
				depth--
				if depth == 0 {
					b, header = body{}, ""
				}
			case ';':
				if depth == 0 {
					header = ""
				}
			}
			if depth == 0 {
				header += string(c)
			}
		}
		if depth == 0 {
			header += " "
		}
		if text != "" {
			begins = strings.HasSuffix(text, ";") || strings.HasSuffix(text, "}") || strings.HasSuffix(text, "{")
		}
	}
	return b
}
