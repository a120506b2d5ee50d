package session

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"fencepost.dev/fencepost/corpus/irregular"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// IrregularRun is a kernel of the suite corpus/irregular on a graph.
type IrregularRun struct {
	Kernel *irregular.Kernel
	Graph  *irregular.Graph
}

// IrregularResult is the result of a run.
type IrregularResult struct {
	IrregularRun
	Err error // the run failed; the fields below are invalid
	// Reports are the reports of its executions: one for the detectors for independent threads, one for those for warps
	// in lockstep. Findings of the judge named "definition" are the truth.
	Reports []*report.Report
	Racy    bool      // a race happened in one of the executions
	Judged  []Verdict // of the detectors, in the given order
	// Differs describes how the result of the first execution differs from that of a single thread. It is "" if there
	// is no difference, or if memory faults left no result.
	Differs string
	Faults  bool // there were memory faults
}

// Verdict is the result of a detector on an execution.
type Verdict struct {
	Detector string `json:"name"`
	Racy     bool   `json:"racy"`          // the execution that it saw had a race
	Found    bool   `json:"found"`         // it reported a race
	Missed   int    `json:"missed_places"` // pairs of source places that raced and that it did not report
	False    int    `json:"false_places"`  // pairs that it reported and that did not race
}

// irregularBlock is the shape of the blocks of every run: two warps.
var irregularBlock = event.Dim3{X: 64, Y: 1, Z: 1}

// irregularGrid is a grid in which teams of warps and of blocks have several vertices to work on, and threads one each.
func irregularGrid(g *irregular.Graph) event.Dim3 {
	if g.Vertices() < 10 {
		return event.Dim3{X: 2, Y: 1, Z: 1}
	}
	return event.Dim3{X: 8, Y: 1, Z: 1}
}

// IrregularRuns returns the runs of the suite to which all words apply: patterns, types, units, all bugs of a kernel
// ("atomic+sync", "none"), and graphs. Runs on one graph are adjacent. An unknown word is an error that lists the known
// ones.
func IrregularRuns(words ...string) ([]IrregularRun, error) {
	kernels, err := irregular.Kernels()
	if err != nil {
		return nil, err
	}
	var out []IrregularRun
	known := map[string]bool{}
	for _, g := range irregular.Graphs() {
		for _, k := range kernels {
			r := IrregularRun{k, g}
			for _, w := range r.words() {
				known[w] = true
			}
			if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(r.words(), w) }) {
				out = append(out, r)
			}
		}
	}
	for _, w := range words {
		if !known[w] {
			return nil, &UnknownWord{w, sortedKeys(known)}
		}
	}
	return out, nil
}

// UnknownWord is an error: a word that applies to no run of the suite.
type UnknownWord struct {
	Word  string
	Known []string // sorted
}

func (u *UnknownWord) Error() string {
	return fmt.Sprintf("corpus/irregular has no %q; it has %s", u.Word, strings.Join(u.Known, ", "))
}

func sortedKeys(m map[string]bool) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (r *IrregularRun) words() []string {
	return append(strings.Split(r.Kernel.Name(), "/"), r.Graph.Name)
}

// CompareIrregular makes runs, o.Jobs at a time, and judges detectors (all detectors, if none was chosen) by the
// definition of a race. Results are in the order of the runs.
func CompareIrregular(ctx context.Context, o *Options, runs []IrregularRun) []IrregularResult {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	each := *o
	each.Timeout, each.Printf, each.Progress, each.Jobs = 0, nil, nil, 1
	if len(each.Detectors) == 0 {
		each.Detectors = all.Detectors()
	}
	results := make([]IrregularResult, len(runs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(max(o.Jobs, 1), len(runs)) {
		wg.Go(func() {
			for i := range next {
				results[i] = compareIrregular(ctx, &each, runs[i])
			}
		})
	}
	for i := range runs {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%d of %d runs", i, len(runs)))
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// compareIrregular makes a run and converts a panic to its error.
func compareIrregular(ctx context.Context, o *Options, run IrregularRun) (res IrregularResult) {
	res.IrregularRun = run
	defer func() {
		if bug := recover(); bug != nil {
			res.Err = fmt.Errorf("a defect of Fencepost: %v\n%s", bug, debug.Stack())
		}
	}()
	for _, lockstep := range []bool{false, true} {
		if ctx.Err() != nil {
			res.Err = errors.New(whyStopped(ctx))
			return res
		}
		each := *o
		each.Detectors = nil
		for _, d := range o.Detectors {
			if d.Lockstep == lockstep {
				each.Detectors = append(each.Detectors, d)
			}
		}
		if len(each.Detectors) == 0 {
			continue
		}
		each.Detectors = append(each.Detectors, definitionSpec) // last: a finding is reported in the words of the first detector with it
		in := run.input()
		if len(res.Reports) == 0 {
			in.Look = func(read func(*Buffer) ([]byte, error)) error { return res.look(in, read) }
		}
		r, err := Check(ctx, &each, in)
		if err == nil && len(r.Skipped) > 0 {
			err = fmt.Errorf("%s: %s", r.Skipped[0].What, r.Skipped[0].Reason)
		}
		if err != nil {
			res.Err = err
			return res
		}
		res.Reports = append(res.Reports, r)
		res.judge(r)
	}
	slices.SortStableFunc(res.Judged, func(a, b Verdict) int { return rank(o.Detectors, a.Detector) - rank(o.Detectors, b.Detector) })
	return res
}

// judge compares the findings of detectors in an execution with the truth.
func (res *IrregularResult) judge(r *report.Report) {
	found := racePlaces(r)
	so := found[definitionName]
	res.Racy = res.Racy || len(so) > 0
	res.Faults = res.Faults || slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Class == detect.MemoryFault })
	for i := range r.Detectors {
		name := r.Detectors[i].Name
		if name == definitionName {
			continue
		}
		v := Verdict{Detector: name, Racy: len(so) > 0, Found: len(found[name]) > 0}
		for p := range so {
			v.Missed += one(!found[name][p])
		}
		for p := range found[name] {
			v.False += one(!so[p])
		}
		res.Judged = append(res.Judged, v)
	}
}

// racePlaces returns the pairs of source places that each detector of a report calls a race.
func racePlaces(r *report.Report) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for i := range r.Detectors {
		name := r.Detectors[i].Name
		found[name] = map[string]bool{}
		for j := range r.Findings {
			if f := &r.Findings[j]; f.Class == detect.Race && f.By(name) {
				found[name][sourcePlaces(f)] = true
			}
		}
	}
	return found
}

// sourcePlaces names the places of a race, independent of their order.
func sourcePlaces(f *report.Finding) string {
	var out []string
	for i := range f.Accesses {
		p := f.Accesses[i].Place()
		out = append(out, fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// The parts of a run's input, by their names in reports.
const irregularOut, irregularList = "out", "list"

// input prepares the run for checking. Its sources are called corpus/irregular/push.cu and so on in the report.
func (r *IrregularRun) input() *Input {
	g, k := r.Graph, r.Kernel
	before := k.Before(g)
	var values []int64
	for _, x := range g.Values() {
		values = append(values, int64(x))
	}
	elem := irregularType(k.Type)
	word, _ := elemType("i32")
	buffers := []*Buffer{arrayBuffer("first", word, widen(g.First)), arrayBuffer("edges", word, widen(g.Edges)),
		arrayBuffer("value", elem, values), arrayBuffer(irregularOut, elem, before.Out), arrayBuffer(irregularList, word, widen(before.List))}
	args := []Arg{{Type: word.Name, Value: word.integer(uint64(g.Vertices()))}}
	for _, b := range buffers {
		args = append(args, Arg{Type: "buffer", Buffer: b})
	}
	launch := LaunchSpec{Kernel: k.Call(), Grid: irregularGrid(g), Block: irregularBlock, Args: args}
	in := &Input{Images: []cuda.Image{{Name: "corpus/irregular/" + k.Pattern + ".ptx", Text: k.PTX()}},
		Launch: &LaunchFile{Name: k.Name(), Buffers: buffers, Launches: []LaunchSpec{launch}}}
	sources := irregular.Files()
	in.Rename = func(file string) string {
		if _, ok := sources[file]; ok {
			return path.Join("corpus/irregular", file)
		}
		return file
	}
	return in
}

func irregularType(name string) ElemType {
	t, ok := elemType(map[string]string{"int": "i32", "float": "f32", "long long": "i64"}[name])
	if !ok {
		panic("BUG: kernels on " + name)
	}
	return t
}

func widen(list []int32) []int64 {
	out := make([]int64, len(list))
	for i, x := range list {
		out[i] = int64(x)
	}
	return out
}

// arrayBuffer is a buffer that holds a list.
func arrayBuffer(name string, t ElemType, list []int64) *Buffer {
	return &Buffer{Name: name, Type: t, Count: uint64(len(list)), fill: func(i uint64) []byte {
		if t.Float {
			return t.float(float64(list[i]))
		}
		return t.integer(uint64(list[i]))
	}}
}

// look compares the memory at the end of the run with the result of a single thread.
func (res *IrregularResult) look(in *Input, read func(*Buffer) ([]byte, error)) error {
	var got irregular.Memory
	for _, b := range in.Launch.Buffers {
		data, err := read(b)
		if err != nil {
			return err
		}
		for at := 0; at < len(data); at += b.Type.Size {
			var word [8]byte
			copy(word[:], data[at:at+b.Type.Size])
			u := binary.LittleEndian.Uint64(word[:])
			switch {
			case b.Name == irregularList:
				got.List = append(got.List, int32(u))
			case b.Name == irregularOut && b.Type.Float:
				got.Out = append(got.Out, int64(math.Float32frombits(uint32(u))))
			case b.Name == irregularOut && b.Type.Size == 4:
				got.Out = append(got.Out, int64(int32(u)))
			case b.Name == irregularOut:
				got.Out = append(got.Out, int64(u))
			}
		}
	}
	if err := res.Kernel.Compare(res.Graph, got); err != nil {
		res.Differs = err.Error()
	}
	return nil
}
