package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/cpu"
	cpus "fencepost.dev/fencepost/internal/cpu/all"
	"fencepost.dev/fencepost/internal/cpu/judge"
	cputrace "fencepost.dev/fencepost/internal/cpu/trace"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// isCPUTrace reports whether a file is the trace of a CPU program. It checks the contents and, so that errors refer to
// the right format, the name.
func isCPUTrace(f *os.File) bool {
	var begin [4096]byte
	n, _ := f.ReadAt(begin[:], 0)
	ext := strings.ToLower(filepath.Ext(f.Name()))
	return n > 0 && (ext == ".std" || ext == ".csv") || cputrace.Looks(begin[:n])
}

// cpuDetector returns the detector of CPU traces of that name.
func cpuDetector(name string) (cpu.Spec, bool) {
	for _, spec := range cpus.Detectors() {
		if spec.Name == name {
			return spec, true
		}
	}
	return cpu.Spec{}, false
}

// onlyTraces refuses detectors of CPU traces for anything else.
func (o *options) onlyTraces(what string) error {
	if len(o.cpuDetectors) == 0 {
		return nil
	}
	return usagef("--detector: %s judges traces of CPU programs (docs/cpu.md), and %s", o.cpuDetectors[0].Name, what)
}

// analyzeCPU judges the trace of a CPU program.
func analyzeCPU(ctx context.Context, e *env, o *options, name string) (int, error) {
	switch {
	case o.session.Bare:
		return 0, usagef("--detector none: a trace of a CPU program has nothing to tell but races")
	case len(o.session.Detectors) > 0:
		return 0, usagef("--detector: %s judges kernels, and %s is a trace of a CPU program", o.session.Detectors[0].Name, name)
	case o.session.Model != detect.ModelCUDA:
		return 0, usagef("--model: %s is a trace of a CPU program, which has no scopes", name)
	}
	if len(o.cpuDetectors) == 0 {
		o.cpuDetectors = cpus.Default()
	}
	if o.session.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.session.Timeout)
		defer cancel()
	}
	stop := showProgress(e, &o.session)
	r, err := judge.Trace(ctx, name, func() (io.ReadCloser, error) { return os.Open(name) },
		judge.Options{Detectors: o.cpuDetectors, MaxFindings: o.session.MaxFindings, FailOn: o.session.FailOn, Progress: o.session.Progress})
	stop()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return tell(e, o.reportWriter(e, e.stdout), o, r, sourceOfTrace(name))
}

// mostSource is the greatest size of a text trace whose lines are shown.
const mostSource = 64 << 20

// sourceOfTrace reads the sources that a trace names, and the trace itself if it is a text of moderate size.
func sourceOfTrace(trace string) func(string) []string {
	beside := sourceBeside(trace)
	return func(name string) []string {
		if name != trace {
			return beside(name)
		}
		f, err := os.Open(trace)
		if err != nil {
			return nil
		}
		defer f.Close()
		magic := make([]byte, len(cputrace.Magic))
		if st, err := f.Stat(); err != nil || st.Size() > mostSource {
			return nil
		}
		if _, err := io.ReadFull(f, magic); err == nil && string(magic) == cputrace.Magic {
			return nil
		}
		return report.ReadSource(trace)
	}
}

// exportCPU writes the trace of a CPU program in the binary format, or as CSV if the name of the file says so.
func exportCPU(ctx context.Context, e *env, o *options, name string, from io.ReadSeeker) (code int, err error) {
	if strings.HasSuffix(o.out, ".parquet") {
		return 0, usagef("%s is a trace of a CPU program, of which export makes a binary trace or, for a name in .csv, a text, and no Parquet: name another file", name)
	}
	in, err := cputrace.NewReader(from)
	var names *cputrace.Names
	if err == nil && strings.HasSuffix(o.out, ".csv") {
		in, names, err = named(ctx, in, from)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	to, err := os.Create(o.out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	buffered := bufio.NewWriterSize(to, 1<<20)
	var write func([]cpu.Event) error
	var finish func() error
	if names != nil {
		write, finish = csvTrace(buffered, names)
	} else {
		write, finish = binaryTrace(buffered, in)
	}
	if err := eachEvent(ctx, in, write); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if err := errors.Join(finish(), buffered.Flush()); err != nil {
		return 0, fmt.Errorf("%s is not whole: %w", o.out, err)
	}
	fmt.Fprintf(e.stdout, "fencepost: %s written to %s\n", count(int(in.Events()), "event"), o.out)
	return exitClean, nil
}

// named returns the names of a trace, which a binary one has at its end, and a reader from its start.
func named(ctx context.Context, in *cputrace.Reader, from io.ReadSeeker) (*cputrace.Reader, *cputrace.Names, error) {
	if err := eachEvent(ctx, in, func([]cpu.Event) error { return nil }); err != nil {
		return nil, nil, err
	}
	names := in.Names.Distinct(in.Count)
	if _, err := from.Seek(0, io.SeekStart); err != nil {
		return nil, nil, err
	}
	in, err := cputrace.NewReader(from)
	return in, names, err
}

// binaryTrace and csvTrace write the events of a trace, and its end.
func binaryTrace(to io.Writer, in *cputrace.Reader) (write func([]cpu.Event) error, finish func() error) {
	w := cputrace.NewWriter(to)
	return func(events []cpu.Event) error { w.Events(events); return nil }, func() error { return w.Close(&in.Names) }
}

func csvTrace(to io.Writer, names *cputrace.Names) (write func([]cpu.Event) error, finish func() error) {
	w := csv.NewWriter(to)
	begun := w.Write(cputrace.CSVHeader)
	return func(events []cpu.Event) error { return cputrace.WriteCSV(w, names, events) },
		func() error { w.Flush(); return errors.Join(begun, w.Error()) }
}

// eachEvent reads a trace to its end.
func eachEvent(ctx context.Context, in *cputrace.Reader, take func([]cpu.Event) error) error {
	events := make([]cpu.Event, 1<<12)
	for {
		n, err := in.Next(events)
		if err := take(events[:n]); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
	}
}
