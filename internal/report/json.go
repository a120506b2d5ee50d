package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Schema names the JSON format; docs/json.md describes it.
const Schema = "fencepost/1"

type jsonReport struct {
	Schema     string         `json:"schema"`
	Verdict    Verdict        `json:"verdict"`
	Program    *jsonProgram   `json:"program"`
	Kernels    []jsonKernel   `json:"kernels"`
	Operators  int            `json:"operators,omitempty"`
	NotChecked []jsonSkipped  `json:"not_checked"`
	Findings   []jsonFinding  `json:"findings"`
	More       int            `json:"not_kept"`
	Detectors  []jsonDetector `json:"detectors"`
	Notes      []string       `json:"notes"`
	Trace      *Trace         `json:"trace,omitempty"`
	Verify     *Verify        `json:"verify,omitempty"`
	Condition  *bool          `json:"condition,omitempty"`
}

type jsonDetector struct {
	Name        string   `json:"name"`
	Findings    []string `json:"findings"`
	Seconds     float64  `json:"seconds"`
	Over        float64  `json:"over_bare,omitempty"`
	Metadata    uint64   `json:"metadata_bytes"`
	Misses      *int     `json:"misses,omitempty"`
	FalseAlarms *int     `json:"false_alarms,omitempty"`
}

type jsonProgram struct {
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
}

type jsonKernel struct {
	Name     string    `json:"name"`
	Grid     [3]uint32 `json:"grid"`
	Block    [3]uint32 `json:"block"`
	Launches int       `json:"launches"`
	Seconds  float64   `json:"seconds"`
}

type jsonSkipped struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

type jsonFinding struct {
	ID          string          `json:"id"`
	Group       string          `json:"group"`
	Members     []string        `json:"members,omitempty"`
	Class       detect.Class    `json:"class"`
	Kind        detect.Kind     `json:"kind"`
	Severity    string          `json:"severity"`
	Detector    string          `json:"detector"`
	Also        []string        `json:"also_found_by,omitempty"`
	Predicted   bool            `json:"predicted,omitempty"`
	Rerun       string          `json:"rerun,omitempty"`
	Kernel      string          `json:"kernel"`
	Count       int             `json:"count"`
	Message     string          `json:"message"`
	Fix         string          `json:"fix"`
	Patch       string          `json:"patch,omitempty"`
	Graph       string          `json:"graph,omitempty"`
	Schedule    string          `json:"schedule,omitempty"`
	Drawing     string          `json:"drawing,omitempty"`
	Accesses    []jsonAccess    `json:"accesses"`
	Sections    []jsonSection   `json:"sections,omitempty"`
	Fingerprint string          `json:"fingerprint,omitempty"`
	Suppressed  *jsonSuppressed `json:"suppressed,omitempty"`
}

type jsonSuppressed struct {
	By     string `json:"by"`
	At     string `json:"at"`
	Reason string `json:"reason"`
}

type jsonAccess struct {
	Op       detect.Op `json:"op"`
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Column   int       `json:"column"`
	Function string    `json:"function"`
	PTXLine  int       `json:"ptx_line"`
	Block    [3]uint32 `json:"block"`
	Thread   [3]uint32 `json:"thread"`
	Actor    string    `json:"thread_name,omitempty"`
	Space    string    `json:"space"`
	Owner    string    `json:"owner,omitempty"`
	Address  string    `json:"address"`
	Size     int       `json:"size"`
	Variable string    `json:"variable"`
	// Launched is the host's place of the launch, innermost first.
	Launched []jsonFrame `json:"launched_at,omitempty"`
}

type jsonFrame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
	Graph    bool   `json:"graph,omitempty"` // from here on it is the call that launched the graph; the frames before made one of its nodes
}

// JSON writes the report as one JSON object, indented, with a newline at its end. The bytes depend only on the report.
// Kernel times are written as 0 unless times is true, because they are the only difference between two equal runs.
func JSON(w io.Writer, r *Report, times bool) error {
	out := jsonReport{Schema: Schema, Verdict: r.Verdict, Kernels: []jsonKernel{}, NotChecked: []jsonSkipped{},
		Findings: []jsonFinding{}, Operators: r.Operators, More: r.More, Detectors: []jsonDetector{}, Notes: []string{}}
	if r.Program != nil {
		out.Program = &jsonProgram{r.Program.Exit, r.Program.Signal}
	}
	for _, k := range r.Kernels {
		seconds := 0.0
		if times {
			seconds = k.Seconds
		}
		out.Kernels = append(out.Kernels, jsonKernel{Demangle(k.Name), dim(k.Grid), dim(k.Block), k.Launches, seconds})
	}
	for _, s := range r.Skipped {
		out.NotChecked = append(out.NotChecked, jsonSkipped(s))
	}
	for i := range r.Findings {
		out.Findings = append(out.Findings, findingJSON(&r.Findings[i]))
	}
	at := 0
	for _, g := range Groups(r.Findings) {
		for &r.Findings[at] != g[0] { // groups are in the order of their first findings
			at++
		}
		for _, f := range g[1:] {
			out.Findings[at].Members = append(out.Findings[at].Members, f.ID)
		}
	}
	for i := range r.Detectors {
		out.Detectors = append(out.Detectors, detectorJSON(r, &r.Detectors[i], times))
	}
	out.Notes = append(out.Notes, r.Notes...)
	out.Trace, out.Verify, out.Condition = r.Trace, r.Verify, r.Condition
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func detectorJSON(r *Report, d *Detector, times bool) jsonDetector {
	j := jsonDetector{Name: d.Name, Findings: r.IDs(d.Name), Metadata: d.Metadata}
	if times {
		j.Seconds, j.Over = d.Seconds, d.Over()
	}
	if d.Judged {
		j.Misses, j.FalseAlarms = &d.Misses, &d.FalseAlarms
	}
	return j
}

func findingJSON(f *Finding) jsonFinding {
	j := jsonFinding{ID: f.ID, Group: f.Group, Class: f.Class, Kind: f.Kind, Severity: f.Severity.String(), Detector: f.Detector,
		Also: f.Also, Predicted: f.Predicted, Kernel: Demangle(f.Kernel), Count: f.Count, Message: f.Message, Fix: f.Fix,
		Accesses: []jsonAccess{}}
	for i := range f.Accesses {
		j.Rerun = cmp.Or(j.Rerun, f.Accesses[i].Rerun)
	}
	j.Fingerprint, j.Graph, j.Schedule, j.Drawing = f.Fingerprint, f.Graph, f.Schedule, f.Drawing
	if f.Patch != nil {
		j.Patch = f.Patch.Diff
	}
	if f.Suppressed != nil {
		j.Suppressed = (*jsonSuppressed)(f.Suppressed)
	}
	for i := range f.Accesses {
		a := &f.Accesses[i]
		p := a.Place()
		ja := jsonAccess{Op: a.Op, File: p.File, Line: p.Line, Column: p.Column, Function: Demangle(p.Function),
			Block: dim(a.Block), Thread: dim(a.Thread), Actor: a.Actor, Size: a.Size, Owner: a.Owner, Variable: variable(&a.Object)}
		if a.Host != "" {
			ja.Function = a.Host
		}
		if len(a.Frames) > 0 {
			ja.PTXLine = a.Frames[0].PTXLine
		}
		for _, f := range a.Caller {
			ja.Launched = append(ja.Launched, jsonFrame{f.File, f.Line, Demangle(f.Function), f.Graph != 0})
		}
		if a.Space != event.NoSpace {
			ja.Space = a.Space.String()
		}
		if a.Op != OpWait && a.Op != detect.Call && a.Actor == "" {
			ja.Address = fmt.Sprintf("%#x", a.Address)
		}
		j.Accesses = append(j.Accesses, ja)
	}
	for i := range f.Sections {
		j.Sections = append(j.Sections, sectionJSON(&f.Sections[i]))
	}
	return j
}

// variable names an object in machine-readable form: "tile+12".
func variable(o *Object) string {
	name := o.Name
	if o.Named {
		name = BareName(name)
	}
	if name != "" && o.Offset > 0 {
		name = fmt.Sprintf("%s+%d", name, o.Offset)
	}
	return name
}

func dim(d event.Dim3) [3]uint32 { return [3]uint32{d.X, d.Y, d.Z} }
