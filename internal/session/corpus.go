package session

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/report"
)

// CorpusResult is the result of checking a program of the corpus.
type CorpusResult struct {
	Program    *corpus.Program
	Report     *report.Report // nil when Err is not
	Missing    []corpus.Want
	Unexpected []corpus.Found
	Err        error
}

// OK reports whether the program gave exactly the findings that its source wants, and the results that its launch file
// expects.
func (r *CorpusResult) OK() bool {
	return r.Err == nil && len(r.Missing) == 0 && len(r.Unexpected) == 0 && len(r.Report.Skipped) == 0 && !r.WrongResult()
}

// WrongResult reports whether memory differs from the expectations of the launch file; a note of the report says where.
func (r *CorpusResult) WrongResult() bool {
	return r.Report != nil && r.Report.Program != nil && r.Report.Program.Exit != 0
}

// CorpusInput makes a program of the corpus ready to check. Its source is called corpus/race/tile.cu in the report.
func CorpusInput(p *corpus.Program) (*Input, error) {
	l, err := ReadLaunchFile("corpus/"+p.Path()+".toml", p.Launch)
	if err != nil {
		return nil, err
	}
	in := &Input{Images: []cuda.Image{{Name: "corpus/" + p.Path() + ".ptx", Text: p.PTX}}, Launch: l}
	in.Rename = func(file string) string {
		if file == path.Base(p.File()) {
			return corpusSource(p)
		}
		return file
	}
	return in, nil
}

func corpusSource(p *corpus.Program) string { return path.Join("corpus", p.File()) }

// CheckCorpus checks programs of the corpus, o.Jobs at a time, and compares the findings with the wants of their
// sources. Results are in the order of the programs.
func CheckCorpus(ctx context.Context, o *Options, programs []*corpus.Program) []CorpusResult {
	return eachProgram(ctx, o, programs, func(ctx context.Context, o *Options, p *corpus.Program) (res CorpusResult) {
		in, err := CorpusInput(p)
		if err == nil {
			res.Report, err = Check(ctx, o, in)
		}
		if res.Err = err; err == nil {
			res.Missing, res.Unexpected = MatchCorpus(p, res.Report)
		}
		return res
	})
}

// eachProgram calls work for each program, o.Jobs at a time.
func eachProgram(ctx context.Context, o *Options, programs []*corpus.Program, work func(context.Context, *Options, *corpus.Program) CorpusResult) []CorpusResult {
	ctx, cancel := o.withTimeout(ctx)
	defer cancel()
	each := *o
	each.Timeout, each.Printf, each.Progress, each.Jobs = 0, nil, nil, 1
	results := make([]CorpusResult, len(programs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(max(o.Jobs, 1), len(programs)) {
		wg.Go(func() {
			for i := range next {
				results[i] = guarded(ctx, &each, programs[i], work)
			}
		})
	}
	for i := range programs {
		if o.Progress != nil {
			o.Progress(fmt.Sprintf("%d of %d programs", i, len(programs)))
		}
		next <- i
	}
	close(next)
	wg.Wait()
	return results
}

// guarded calls work for a program and converts a panic to its error.
func guarded(ctx context.Context, o *Options, p *corpus.Program, work func(context.Context, *Options, *corpus.Program) CorpusResult) (res CorpusResult) {
	defer func() {
		if bug := recover(); bug != nil {
			res.Err = fmt.Errorf("a defect of Fencepost: %v\n%s", bug, debug.Stack())
		}
		res.Program = p
	}()
	if ctx.Err() != nil {
		return CorpusResult{Err: errors.New(whyStopped(ctx))}
	}
	return work(ctx, o, p)
}

// MatchCorpus compares a report with the wants of the program's source.
func MatchCorpus(p *corpus.Program, r *report.Report) (missing []corpus.Want, unexpected []corpus.Found) {
	var found []corpus.Found
	for i := range r.Findings {
		f := &r.Findings[i]
		c := corpus.Found{Severity: f.Severity.String(), Kind: string(f.Kind)}
		c.Lines = linesIn(p, f)
		found = append(found, c)
	}
	return p.Match(found)
}

// linesIn returns the lines of a finding's accesses that are in the program's source, sorted.
func linesIn(p *corpus.Program, f *report.Finding) []int {
	var lines []int
	for j := range f.Accesses {
		at := f.Accesses[j].Place()
		if f.Accesses[j].Doing == "exited" {
			continue // no threads are there any more, and the compiler decides which line is the end of a kernel
		}
		if at.File == corpusSource(p) || path.Base(at.File) == path.Base(p.File()) && !strings.HasPrefix(at.File, "corpus/") {
			lines = append(lines, at.Line)
		}
	}
	slices.Sort(lines)
	return lines
}
