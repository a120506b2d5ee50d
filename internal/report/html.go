package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// The page is a frame and a script that renders only what is viewed: a page with 10,000 rendered findings would not
// open.
var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// The data for the script of the page. Names are short because there may be 10,000 findings; zero values are left out.
type (
	pageReport struct {
		Verdict   Verdict                   `json:"verdict"`
		Last      string                    `json:"last"` // the last line of the text
		Version   string                    `json:"version"`
		Command   string                    `json:"command,omitempty"`
		Kernels   []pageKernel              `json:"kernels"`
		Skipped   []jsonSkipped             `json:"skipped"`
		Notes     []string                  `json:"notes"`
		Detectors []string                  `json:"detectors"`
		Verify    *Verify                   `json:"verify,omitempty"`
		Trace     *Trace                    `json:"trace,omitempty"`
		Findings  []pageFinding             `json:"findings"`
		Sources   map[string]map[int]string `json:"sources"` // the lines around accesses, by file
		Help      map[string]string         `json:"help"`    // the page of each kind that occurs
	}
	pageKernel struct {
		Name     string  `json:"name"`
		Grid     string  `json:"grid"`
		Block    string  `json:"block"`
		Launches int     `json:"launches"`
		Seconds  float64 `json:"seconds,omitempty"`
	}
	pageFinding struct {
		ID         string      `json:"id"`
		Group      string      `json:"group,omitempty"`
		Kind       detect.Kind `json:"kind"`
		Severity   string      `json:"severity"`
		Title      string      `json:"title"`
		Predicted  bool        `json:"predicted,omitempty"`
		First      int         `json:"first"` // the side that came first; -1 if the synchronisation between them is not known
		Count      int         `json:"count"`
		Notes      [][2]string `json:"notes"` // those of the text
		Fix        string      `json:"fix,omitempty"`
		Patch      string      `json:"patch,omitempty"`
		Graph      string      `json:"graph,omitempty"`
		Suppressed string      `json:"suppressed,omitempty"`
		Sides      []pageSide  `json:"sides"`
	}
	pageSide struct {
		What   string     `json:"what"` // "write of 4 bytes by thread (0,0,0) of block (1,0,0)"
		Op     string     `json:"op"`
		Who    string     `json:"who"`
		Where  string     `json:"where"`
		File   string     `json:"file,omitempty"` // key of Sources
		Line   int        `json:"line,omitempty"`
		From   int        `json:"from,omitempty"` // the marked part of the line, in characters
		To     int        `json:"to,omitempty"`
		Calls  []string   `json:"calls,omitempty"`
		Launch uint32     `json:"launch,omitempty"`
		Kernel string     `json:"kernel,omitempty"`
		Grid   *[3]uint32 `json:"grid,omitempty"`  // nil for what is no thread of a launch
		Shape  *[3]uint32 `json:"shape,omitempty"` // of the block
		Block  *[3]uint32 `json:"block,omitempty"`
		Thread *[3]uint32 `json:"thread,omitempty"`
		Object string     `json:"object,omitempty"`
		Space  string     `json:"space,omitempty"`
		Offset uint64     `json:"offset,omitempty"`
		Of     uint64     `json:"of,omitempty"` // bytes of the object
		Size   int        `json:"size,omitempty"`
		Took   *pageTook  `json:"took,omitempty"`
		Sync   string     `json:"sync,omitempty"` // the nearest synchronisation that faces the other side
	}
)

// around is the number of lines that the page shows before and after an access.
const around = 6

// HTML writes one self-contained page. last is the last line of the text. Kernel times are left out unless times is true.
func HTML(w io.Writer, r *Report, x *Export, last string, times bool) error {
	b := pageBuilder{text: &Text{Dir: x.Dir, Source: CachedSource(x.Source)}, sources: map[string]map[int]string{}}
	p := pageReport{Verdict: r.Verdict, Last: last, Version: x.Version, Command: x.Command, Kernels: []pageKernel{}, Skipped: []jsonSkipped{},
		Notes: append([]string{}, r.Notes...), Detectors: []string{}, Verify: r.Verify, Trace: r.Trace, Findings: []pageFinding{}, Sources: b.sources, Help: map[string]string{}}
	for _, k := range r.Kernels {
		pk := pageKernel{Name: clean(Demangle(k.Name)), Grid: k.Grid.String(), Block: k.Block.String(), Launches: k.Launches}
		if times {
			pk.Seconds = k.Seconds
		}
		p.Kernels = append(p.Kernels, pk)
	}
	for _, s := range r.Skipped {
		p.Skipped = append(p.Skipped, jsonSkipped(s))
	}
	for _, d := range r.Detectors {
		p.Detectors = append(p.Detectors, d.Name)
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		p.Findings = append(p.Findings, b.finding(f))
		if _, ok := p.Help[string(f.Kind)]; !ok && x.Help != nil {
			p.Help[string(f.Kind)] = x.Help(string(f.Kind))
		}
	}
	data, err := json.Marshal(p) // which escapes <, > and &, so that no text ends the element
	if err != nil {
		return err
	}
	_, err = strings.NewReplacer("{{css}}", pageCSS, "{{js}}", pageJS, "{{data}}", string(data)).WriteString(w, pageHTML)
	return err
}

type pageBuilder struct {
	text    *Text
	sources map[string]map[int]string
	numbers int // number of pageTook numbers written
}

func (b *pageBuilder) finding(f *Finding) pageFinding {
	p := pageFinding{ID: f.ID, Group: f.Group, Kind: f.Kind, Severity: f.Severity.String(), Title: b.text.Title(f), Predicted: f.Predicted,
		First: -1, Count: f.Count, Fix: f.Fix, Graph: f.Graph, Sides: []pageSide{}}
	if f.Patch != nil {
		p.Patch = f.Patch.Diff
	}
	if s := f.Suppressed; s != nil {
		p.Suppressed = strings.TrimSuffix(fmt.Sprintf("by %s %s: %s", s.By, s.At, s.Reason), ": ")
	}
	for _, n := range b.text.notes(f) {
		if n[0] != "fix" {
			p.Notes = append(p.Notes, n)
		}
	}
	for i, a := range f.inDisplayOrder() {
		p.Sides = append(p.Sides, b.side(a))
		if f.synchronised() && a == &f.Accesses[0] {
			p.First = i
		}
	}
	return p
}

func (b *pageBuilder) side(a *Access) pageSide {
	place := a.Place()
	s := pageSide{What: b.text.Describe(a), Op: string(a.Op), Where: b.text.Where(place), Launch: a.Launch}
	line, n, column := b.text.source(place)
	if line != "" {
		name := place.File
		if name == "" || place.Line == 0 {
			name = place.PTXFile
		}
		from, to := b.text.marked(a, line, column)
		s.File, s.Line = b.text.file(name), n
		s.From, s.To = utf8.RuneCountInString(line[:from]), utf8.RuneCountInString(line[:to])
		b.lines(s.File, name, n)
	}
	if at := userIndex(a.Frames); at >= 0 {
		for _, f := range a.Frames[min(at+1, len(a.Frames)):] {
			s.Calls = append(s.Calls, calledFrom(f)+" "+b.text.Where(f))
		}
	}
	for i, f := range a.Caller {
		how := calledFrom(f)
		if i == 0 {
			how = "launched at"
		}
		s.Calls = append(s.Calls, how+" "+b.text.Where(f))
	}
	switch {
	case a.Host != "":
		s.Who = "host: " + clean(a.Host)
	case a.Actor != "":
		s.Who = "thread " + clean(a.Actor)
	default:
		s.Who = who(a)
		s.Kernel = clean(ShortName(Demangle(a.Kernel)))
		if a.Grid.Count() > 0 && a.Shape.Count() > 0 {
			grid, shape, block, thread := dim(a.Grid), dim(a.Shape), dim(a.Block), dim(a.Thread)
			s.Grid, s.Shape, s.Block, s.Thread = &grid, &shape, &block, &thread
		}
	}
	if a.Op != OpWait && a.Op != detect.Call {
		s.Object, s.Offset, s.Of, s.Size = clean(a.Object.Name), a.Object.Offset, a.Object.Size, a.Size
		if a.Object.Named {
			s.Object = clean(BareName(a.Object.Name))
		}
		if a.Object.Name == "" { // its place is its address
			s.Offset = a.Address
		}
		if a.Space != event.NoSpace {
			s.Space = a.Space.String()
		}
	}
	s.Took = b.took(a)
	if a.Sync != nil {
		s.Sync = b.text.sync(a.Sync)
	}
	return s
}

// lines keeps the lines of a file around line n.
func (b *pageBuilder) lines(key, file string, n int) {
	kept := b.sources[key]
	if kept == nil {
		kept = map[int]string{}
		b.sources[key] = kept
	}
	count := len(b.text.Source(file))
	for i := max(1, n-around); i <= min(count, n+around); i++ {
		if _, ok := kept[i]; !ok {
			kept[i] = clean(b.text.line(file, i))
		}
	}
}
