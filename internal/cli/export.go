package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"

	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/event/table"
	"fencepost.dev/fencepost/internal/event/trace"
	"fencepost.dev/fencepost/internal/session"
)

const exportLong = `
fencepost export --out events.parquet FILE
  writes the events of a trace of "fencepost record" as a Parquet table, one row for each event, for DuckDB, pandas and
  others. docs/trace.md explains the columns. If the trace is truncated, the existing part is written (exit code 3).

fencepost export --out trace.fpc trace.std
  writes the trace of a CPU program in a binary format that is read many times faster (docs/cpu.md). If the name ends in
  .csv, it writes CSV.`

func exportCommand() *command {
	out := &flag{"out", "TABLE", "the table to write (also -o)", setOut}
	return &command{name: "export", args: "--out TABLE FILE", long: exportLong, doc: "write the events of a recorded run as Parquet",
		flags: []*flag{out}, run: runExport, anywhere: true}
}

func runExport(ctx context.Context, e *env, o *options, args []string) (code int, err error) {
	switch {
	case len(args) != 1:
		return 0, usagef("export takes one file: what \"fencepost record\" wrote, or a trace of a CPU program")
	case o.out == "":
		return 0, usagef("export to where? Give --out TABLE.parquet")
	}
	if err := readable(args[0]); err != nil {
		return 0, err
	}
	from, err := os.Open(args[0])
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if isCPUTrace(from) {
		return exportCPU(ctx, e, o, args[0], from)
	}
	in, err := trace.NewReader(bufio.NewReaderSize(from, 1<<20))
	if err != nil {
		return 0, traceError(args[0], err)
	}
	to, err := os.Create(o.out)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	stop := showProgress(e, &o.session)
	rows, err := table.Write(ctx, to, &shownStream{in, &o.session})
	stop()
	if we := (*table.WriteError)(nil); errors.As(err, &we) {
		return 0, fmt.Errorf("%s is not whole: %w", o.out, err)
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	if err != nil {
		return 0, fmt.Errorf("%w\nonly what stands before is in %s: %s", traceError(args[0], err), o.out, count(int(rows), "event"))
	}
	fmt.Fprintf(e.stdout, "fencepost: %s written to %s\n", count(int(rows), "event"), o.out)
	return exitClean, nil
}

// shownStream is a trace that tells how far one has read it.
type shownStream struct {
	*trace.Reader
	o *session.Options
}

// Next implements table.Stream.
func (s *shownStream) Next(b *event.Batch) error {
	if s.o.Progress != nil {
		s.o.Progress(fmt.Sprintf("%d M events", s.Events()/1e6))
	}
	return s.Reader.Next(b)
}

// traceError names the trace that could not be read, or not to its end.
func traceError(name string, err error) error {
	if corrupt := (*trace.CorruptError)(nil); errors.As(err, &corrupt) {
		return fmt.Errorf("%s: %w; is it a trace that \"fencepost record\" wrote?", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
