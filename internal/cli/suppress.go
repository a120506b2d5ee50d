package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/report"
)

const suppressLong = `
fencepost suppress --reason "ticket 12" report.json [ID...] >> fencepost.suppress
  prints an entry for each finding of a JSON report that is not suppressed yet, or only for the given ids. An entry
  matches the text of the lines, wherever they move in the file. Edit it to match more findings: docs/suppressions.md.

  fencepost run --suppress fencepost.suppress prog.cu does not report them.`

func suppressCommand() *command {
	return &command{name: "suppress", args: "REPORT.json [ID...]", doc: "write suppressions for findings of a report", long: suppressLong,
		anywhere: true, run: runSuppress, flags: []*flag{
			{"reason", "TEXT", "why these findings are suppressed; required",
				func(o *options, v string) error { o.reason = v; return nil }},
			{"expires", "DATE", "the last day on which the entries apply, as in 2030-12-31",
				func(o *options, v string) error {
					if _, err := time.Parse(time.DateOnly, v); err != nil {
						return usagef("%q is no date; write 2030-12-31", v)
					}
					o.expires = v
					return nil
				}},
		}}
}

func runSuppress(ctx context.Context, e *env, o *options, args []string) (int, error) {
	switch {
	case len(args) == 0:
		return 0, usagef("suppress what? Name a JSON report: fencepost run --json report.json prog.cu writes one")
	case strings.TrimSpace(o.reason) == "":
		return 0, usagef("suppress for what reason? --reason TEXT says it to whoever reads the file")
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		return 0, err
	}
	findings, err := report.ReadFindings(args[0], text)
	if err != nil {
		return 0, err
	}
	ids := args[1:]
	for _, id := range ids {
		if !slices.ContainsFunc(findings, func(f report.OldFinding) bool { return f.ID == id }) {
			return 0, usagef("%s has no finding %s", args[0], id)
		}
	}
	for i := range findings {
		f := &findings[i]
		if f.Suppressed != nil || len(ids) > 0 && !slices.Contains(ids, f.ID) {
			continue
		}
		fmt.Fprintf(e.stdout, "%s\n", report.WriteEntry(f, o.reason, o.expires))
	}
	return exitClean, nil
}
