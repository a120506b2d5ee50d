package cli

import (
	"context"
	"fmt"
	"path"
	"time"

	"fencepost.dev/fencepost/check"
)

// demoPrograms are programs of the corpus with one finding each: of one block, of several blocks, and no race at all.
var demoPrograms = []string{"corpus/race/stencil", "corpus/race/lock", "corpus/fault/barrier_in_branch"}

const demoLong = `
fencepost demo
  executes three small built-in kernels, each with one defect, and shows a finding of each. It needs no compiler and no
  file. "fencepost check" and the name of a kernel shows the finding in full. The exit code is 0 if the three defects
  were found.`

func demoCommand() *command {
	return &command{name: "demo", doc: "find the defects of three built-in kernels", long: demoLong, flags: []*flag{colorFlag}, run: runDemo}
}

func runDemo(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if len(args) > 0 {
		return 0, usagef("demo takes no arguments; \"fencepost check\" takes the name of one program: fencepost check %s", demoPrograms[0])
	}
	begin, found := time.Now(), 0
	for _, name := range demoPrograms {
		chosen, _, err := corpusPrograms(name)
		if err != nil {
			return 0, err
		}
		p := chosen[0]
		r, err := check.Kernels(ctx, []check.Module{{Name: name + ".ptx", PTX: p.PTX}}, check.Launch{Name: name + ".toml", TOML: p.Launch},
			&check.Options{Source: corpusLines(p), Rename: func(file string) string { return path.Join("corpus", p.Dir, file) }})
		if err != nil {
			return 0, err
		}
		if len(r.Findings) == 0 {
			return 0, fmt.Errorf("%s: the defect was not found; please report this", name)
		}
		r.Explain(e.stdout, &r.Findings[0], true, color(e.stdout))
		found++
	}
	fmt.Fprintf(e.stdout, "In full: fencepost check %s. Your program: fencepost run prog.cu\n", demoPrograms[0])
	fmt.Fprintf(e.stdout, "fencepost: %s in %s, in %.2f s\n", count(found, "defect"), count(len(demoPrograms), "kernel"), time.Since(begin).Seconds())
	return exitClean, nil
}
