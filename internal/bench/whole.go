package bench

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
)

//go:embed program/scale.cu
var programFiles embed.FS

// Whole holds times of the whole tool, on all cores.
type Whole struct {
	Corpus []CorpusTime `json:"corpus"`
	// Run, NVCC and Built are times in seconds: of "fencepost run" of a small program, of nvcc compiling the same
	// program with the same flags, and of "fencepost run" of the compiled program. They are 0 if there is no nvcc or no
	// Go compiler, for the reason Skipped.
	Run     float64 `json:"run_seconds"`
	NVCC    float64 `json:"nvcc_seconds"`
	Built   float64 `json:"built_seconds"`
	Skipped string  `json:"skipped,omitempty"`
}

// CorpusTime is the time to check the whole embedded corpus on an engine.
type CorpusTime struct {
	Engine   string  `json:"engine"`
	Programs int     `json:"programs"`
	Right    int     `json:"right"` // number of programs with exactly the expected findings
	Seconds  float64 `json:"seconds"`
}

// MeasureWhole checks the corpus, and runs a small program.
func (o *Options) MeasureWhole(ctx context.Context) (*Whole, error) {
	programs, err := corpus.All()
	if err != nil {
		return nil, err
	}
	w := &Whole{}
	for _, e := range o.Engines {
		c := CorpusTime{Engine: e.Name, Programs: len(programs)}
		var times []float64
		for range max(o.Rounds, 1) {
			o.say("corpus on %s", e.Name)
			begin := time.Now()
			results := session.CheckCorpus(ctx, &session.Options{Engine: e.New, Jobs: runtime.NumCPU()}, programs)
			times = append(times, time.Since(begin).Seconds())
			c.Right = 0
			for i := range results {
				if results[i].OK() {
					c.Right++
				}
			}
		}
		c.Seconds = median(times)
		w.Corpus = append(w.Corpus, c)
	}
	err = o.measureProgram(ctx, w)
	var missing *toolchain.Missing
	switch {
	case errors.As(err, &missing):
		w.Skipped = "there is no " + missing.What
	case errors.Is(err, exec.ErrNotFound):
		w.Skipped = "there is no go command"
	case err != nil:
		return nil, err
	}
	return w, nil
}

// measureProgram times "fencepost run" and nvcc alternately.
func (o *Options) measureProgram(ctx context.Context, w *Whole) error {
	nvcc, err := new(toolchain.Finder).FindNVCC(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fencepost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text, err := programFiles.ReadFile("program/scale.cu")
	if err != nil {
		return err
	}
	source := filepath.Join(dir, "scale.cu")
	if err := os.WriteFile(source, text, 0o666); err != nil {
		return err
	}
	o.say("building fencepost")
	tool := filepath.Join(dir, "fencepost")
	if _, err := timed(ctx, "go", "build", "-o", tool, "fencepost.dev/fencepost/cmd/fencepost"); err != nil {
		return err
	}
	built := filepath.Join(dir, "scale")
	calls := []struct {
		to   *float64
		args []string
	}{
		{&w.Run, []string{tool, "run", "--nvcc", nvcc.Path, source}},
		{&w.NVCC, []string{nvcc.Path, "-lineinfo", "-Xcicc", "-O0", "-gencode", "arch=compute_80,code=compute_80", source, "-o", filepath.Join(dir, "alone")}},
		{&w.Built, []string{tool, "run", built}},
	}
	// This also builds the stand-in libraries, which later calls use.
	if _, err := timed(ctx, tool, "nvcc", source, "-o", built); err != nil {
		return err
	}
	times := make([][]float64, len(calls))
	for range max(o.Rounds, 1) {
		for i, c := range calls {
			o.say("a small program")
			t, err := timed(ctx, c.args...)
			if err != nil {
				return err
			}
			times[i] = append(times[i], t)
		}
	}
	for i, c := range calls {
		*c.to = median(times[i])
	}
	return nil
}

// timed runs a command and returns its time in seconds.
func timed(ctx context.Context, args ...string) (float64, error) {
	begin := time.Now()
	if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return time.Since(begin).Seconds(), nil
}
