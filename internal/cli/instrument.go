package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/instrument"
)

func instrumentCommand() *command {
	out := &flag{"out", "FILE", "the instrumented PTX to write (also -o)", setOut}
	return &command{name: "instrument", args: "IN.ptx", doc: "rewrite PTX so that it logs or checks its accesses (docs/gpu.md)",
		flags: []*flag{out, modeFlag(), pruneFlag()}, anywhere: true, run: runInstrument,
		long: `
fencepost instrument in.ptx -o out.ptx
  adds calls to every access of global and shared memory, atomic, fence, barrier and exit. The result needs no other file. It
  computes what in.ptx does, and logs only if the host has set the variable __fencepost_log; with --instrument hirace, it checks
  only if the host has set __fencepost_state.`}
}

// modeFlag is the flag that says what instrumented programs do.
func modeFlag() *flag {
	return &flag{"instrument", "MODE", "log (default): instrumented code logs its accesses; hirace: it detects races itself (docs/gpu.md)",
		func(o *options, v string) error {
			return choose(v, map[string]instrument.Mode{"log": instrument.Log, "hirace": instrument.HiRace}, "mode", &o.session.Mode)
		}}
}

// pruneFlag is the flag of those who instrument.
func pruneFlag() *flag {
	return &flag{"prune", "", "do not instrument an access that an earlier one of its basic block covers (docs/gpu.md)",
		func(o *options, _ string) error { o.session.Prune = true; return nil }}
}

func runInstrument(_ context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("instrument takes one PTX file: fencepost instrument in.ptx -o out.ptx")
	}
	if o.out == "" {
		return 0, usagef("instrument: name the file to write: -o FILE")
	}
	name := args[0]
	if !strings.EqualFold(filepath.Ext(name), ".ptx") {
		return 0, usagef("%s is no .ptx file", name)
	}
	if err := readable(name); err != nil {
		return 0, err
	}
	text, err := readAll(name)
	if err != nil {
		return 0, err
	}
	out, p, err := instrument.Text(name, text, instrument.Options{Mode: o.session.Mode, Prune: o.session.Prune})
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(o.out, []byte(out), 0o666); err != nil {
		return 0, err
	}
	pruned := ""
	if o.session.Prune {
		pruned = fmt.Sprintf(", %d are pruned", p.Pruned)
	}
	fmt.Fprintf(e.stdout, "%s: %d of %d instructions log%s\n", name, p.Logged, p.Static, pruned)
	return exitClean, nil
}
