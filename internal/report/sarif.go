package report

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Export is the additional data that the formats for other programs need.
type Export struct {
	Version string                     // of Fencepost
	Dir     string                     // folder to which file names are relative
	Help    func(kind string) string   // a page about a kind, in Markdown; nil if there are none
	Source  func(file string) []string // lines of a source; nil if there are none
	FailOn  detect.Severity            // the least severity that fails
	Command string                     // the command that makes the report again; "" if not known
}

// The parts of SARIF 2.1.0 (OASIS) that are written, with the names of the standard.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Bases       map[string]any    `json:"originalUriBaseIds,omitempty"`
		Columns     string            `json:"columnKind"`
		Results     []sarifResult     `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID         string            `json:"id"`
		Short      sarifText         `json:"shortDescription"`
		Full       sarifText         `json:"fullDescription"`
		Help       *sarifText        `json:"help,omitempty"`
		Default    map[string]string `json:"defaultConfiguration"`
		Properties map[string]any    `json:"properties"`
	}
	sarifText struct {
		Text     string `json:"text"`
		Markdown string `json:"markdown,omitempty"`
	}
	sarifInvocation struct {
		Successful    bool                `json:"executionSuccessful"`
		Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string    `json:"level"`
		Message sarifText `json:"message"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		RuleIndex    int                `json:"ruleIndex"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Related      []sarifLocation    `json:"relatedLocations,omitempty"`
		Flows        []sarifCodeFlow    `json:"codeFlows,omitempty"`
		Fingerprints map[string]string  `json:"partialFingerprints,omitempty"`
		Baseline     string             `json:"baselineState,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
		Occurrences  int                `json:"occurrenceCount,omitempty"`
		Properties   map[string]any     `json:"properties"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification,omitempty"`
	}
	sarifCodeFlow struct {
		Message sarifText         `json:"message"`
		Threads []sarifThreadFlow `json:"threadFlows"`
	}
	sarifThreadFlow struct {
		ID        string              `json:"id"`
		Locations []sarifFlowLocation `json:"locations"`
	}
	sarifFlowLocation struct {
		Location   sarifLocation `json:"location"`
		Importance string        `json:"importance"`
		Kinds      []string      `json:"kinds,omitempty"`
		Nesting    int           `json:"nestingLevel"`
	}
	sarifLocation struct {
		ID       int            `json:"id,omitempty"`
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
		Message  *sarifText     `json:"message,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		Line    int        `json:"startLine"`
		Column  int        `json:"startColumn,omitempty"`
		Snippet *sarifText `json:"snippet,omitempty"`
	}
	sarifLogical struct {
		Name string `json:"fullyQualifiedName"`
		Kind string `json:"kind"`
	}
)

// sarifBase names the folder to which file names are relative.
const sarifBase = "SRCROOT"

// SARIF writes the findings in the Static Analysis Results Interchange Format, version 2.1.0.
func SARIF(w io.Writer, r *Report, x *Export) error {
	run := sarifRun{Columns: "unicodeCodePoints", Results: []sarifResult{},
		Tool: sarifTool{sarifDriver{Name: "Fencepost", Version: x.Version, Rules: []sarifRule{}}}}
	if x.Dir != "" {
		run.Bases = map[string]any{sarifBase: map[string]string{"uri": fileURI(x.Dir) + "/"}}
	}
	inv := sarifInvocation{Successful: r.Verdict != NotChecked}
	for _, s := range r.Skipped {
		inv.Notifications = append(inv.Notifications, sarifNotification{"error", sarifText{Text: fmt.Sprintf("%s was not checked: %s", s.What, s.Reason)}})
	}
	for _, n := range r.Notes {
		inv.Notifications = append(inv.Notifications, sarifNotification{"note", sarifText{Text: n}})
	}
	run.Invocations = []sarifInvocation{inv}
	source := CachedSource(x.Source)
	cached := *x
	cached.Source = source
	x = &cached
	rules := map[detect.Kind]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if _, ok := rules[f.Kind]; !ok {
			rules[f.Kind] = len(run.Tool.Driver.Rules)
			run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, x.sarifRule(f))
		}
		result := x.sarifResult(f, r.Baseline)
		result.RuleIndex = rules[f.Kind]
		run.Results = append(run.Results, result)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// sarifLevel returns the level of a severity.
func sarifLevel(s detect.Severity) string {
	switch s {
	case detect.Error:
		return "error"
	case detect.Warning:
		return "warning"
	}
	return "note"
}

// sarifRule describes the kind of a finding, with the severity of the most severe finding of the kind, which comes
// first.
func (x *Export) sarifRule(f *Finding) sarifRule {
	title := upperFirst(kindTitle(f.Kind))
	rule := sarifRule{ID: string(f.Kind), Short: sarifText{Text: title}, Full: sarifText{Text: title + "."},
		Default: map[string]string{"level": sarifLevel(f.Severity)}, Properties: map[string]any{"tags": []string{"CUDA", string(f.Class)}}}
	if x.Help != nil {
		if help := x.Help(string(f.Kind)); help != "" {
			rule.Help = &sarifText{Text: help, Markdown: help}
		}
	}
	return rule
}

func (x *Export) sarifResult(f *Finding, baseline bool) sarifResult {
	title := (&Text{Source: x.Source}).Title(f)
	text := upperFirst(title) + ". " + upperFirst(strings.TrimSuffix(f.Message, ".")) + "."
	if f.Fix != "" {
		text += " To fix it: " + strings.TrimSuffix(f.Fix, ".") + "."
	}
	out := sarifResult{RuleID: string(f.Kind), Level: sarifLevel(f.Severity), Message: sarifText{Text: text}, Occurrences: f.Count,
		Properties: map[string]any{"id": f.ID, "detector": f.Detector, "kernel": Demangle(f.Kernel), "predicted": f.Predicted}}
	if f.Fingerprint != "" {
		out.Fingerprints = map[string]string{"fencepost/v1": f.Fingerprint}
	}
	if baseline {
		out.Baseline = "new"
	}
	if s := f.Suppressed; s != nil {
		kind := "external"
		switch s.By {
		case "comment":
			kind = "inSource"
		case "baseline":
			out.Baseline = "unchanged"
		}
		out.Suppressions = []sarifSuppression{{kind, s.Reason}}
	}
	shown := f.inDisplayOrder()
	for i, a := range shown {
		loc := x.sarifLocation(a.Place(), a.told())
		if i == 0 {
			out.Locations = []sarifLocation{loc}
			continue
		}
		loc.ID = i
		out.Related = append(out.Related, loc)
	}
	if len(shown) == 2 {
		out.Message.Text += " The other access is [here](1)."
	}
	if len(shown) > 0 {
		out.Flows = []sarifCodeFlow{x.sarifFlow(f, shown)}
	}
	return out
}

// sarifFlow returns a thread flow for each side: the calls that lead to the place, and the place.
func (x *Export) sarifFlow(f *Finding, shown []*Access) sarifCodeFlow {
	flow := sarifCodeFlow{Message: sarifText{Text: "the sides of " + f.ID}}
	for i, a := range shown {
		thread := sarifThreadFlow{ID: fmt.Sprintf("side %d: %s", i+1, who(a))}
		step := func(frame event.Frame, text, importance string, nesting int) {
			thread.Locations = append(thread.Locations, sarifFlowLocation{Location: x.sarifLocation(frame, text), Importance: importance, Nesting: nesting})
		}
		depth := 0
		for _, c := range slices.Backward(a.Caller) {
			step(c, "on the way to the launch", "unimportant", depth)
			depth++
		}
		at := max(userIndex(a.Frames), 0)
		for _, c := range slices.Backward(a.Frames[min(at+1, len(a.Frames)):]) {
			step(c, "calls", "important", depth)
			depth++
		}
		if a.Sync != nil {
			step(userFrame(a.Sync.Frames), "synchronises: "+a.Sync.What, "important", depth)
		}
		step(a.Place(), a.told(), "essential", depth)
		flow.Threads = append(flow.Threads, thread)
	}
	return flow
}

// told describes an access: "write of 4 bytes by thread (1,0,0) of block (0,0,0)".
func (a *Access) told() string {
	switch {
	case a.Op == detect.Call || a.Host != "":
		return strings.TrimSpace(a.Host + " " + a.Doing)
	case a.Op == OpWait:
		return strings.TrimSpace(who(a) + " " + a.Doing)
	}
	return fmt.Sprintf("%s of %d bytes by %s", a.Op, a.Size, who(a))
}

func (x *Export) sarifLocation(p event.Frame, text string) sarifLocation {
	loc := sarifLocation{}
	if text != "" {
		loc.Message = &sarifText{Text: text}
	}
	if p.Function != "" {
		loc.Logical = []sarifLogical{{Demangle(p.Function), "function"}}
	}
	file, at := p.File, p.Line
	if file == "" {
		file, at = p.PTXFile, p.PTXLine
	}
	if file == "" {
		return loc
	}
	loc.Physical = &sarifPhysical{Artifact: x.artifact(file)}
	if at > 0 {
		loc.Physical.Region = &sarifRegion{Line: at}
		if p.File != "" {
			loc.Physical.Region.Column = p.Column
			if text := strings.TrimRight(line(x.Source, p.File, at), "\r"); text != "" {
				loc.Physical.Region.Snippet = &sarifText{Text: strings.ToValidUTF8(text, "?")}
			}
		}
	}
	return loc
}

// artifact names a file, relative to the folder if it is inside.
func (x *Export) artifact(file string) sarifArtifact {
	rel := x.Relative(file)
	if path.IsAbs(rel) {
		return sarifArtifact{URI: fileURI(rel)}
	}
	base := sarifBase
	if x.Dir == "" {
		base = ""
	}
	return sarifArtifact{URI: (&url.URL{Path: rel}).EscapedPath(), Base: base}
}

// Relative names a file, relative to the folder if it is inside, with slashes.
func (x *Export) Relative(file string) string {
	if x.Dir != "" && filepath.IsAbs(file) {
		if rel, err := filepath.Rel(x.Dir, file); err == nil && filepath.IsLocal(rel) {
			file = rel
		}
	}
	return filepath.ToSlash(filepath.Clean(file))
}

func fileURI(name string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(name)}).String()
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
