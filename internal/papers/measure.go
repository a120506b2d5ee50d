package papers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/bench"
	"fencepost.dev/fencepost/internal/cpu/evaluate"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/hw/gpu"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/toolchain"
)

// granularities counts the reports of ScoRD in race-free applications when locations share metadata.
func granularities(bool) (string, error) {
	programs, err := corpus.All()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s%8s%8s%8s\n", "", "4", "8", "16")
	for _, p := range programs {
		if p.Dir != "scopedapps" || p.Plant != 0 {
			continue
		}
		fmt.Fprintf(&b, "%-14s", p.Name)
		for _, n := range []int{4, 8, 16} {
			spec, err := detect.Choose(all.Detectors(), fmt.Sprintf("scord:granularity=%d", n))
			if err != nil {
				return "", err
			}
			in, err := session.CorpusInput(p)
			if err != nil {
				return "", err
			}
			rep, err := session.Check(context.Background(), &session.Options{Detectors: []detect.Spec{spec}, Seeds: 1, Jobs: 1}, in)
			if err != nil {
				return "", err
			}
			if len(rep.Skipped) > 0 {
				return "", errors.New(rep.Skipped[0].Reason)
			}
			fmt.Fprintf(&b, "%8d", len(rep.Findings))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

// kernels runs the kernels of the benchmarks on the GPU of table V. Their size is the normal one if full is set,
// otherwise a smaller one.
func kernels(full bool) (string, error) {
	size := 1
	if full {
		size = 2
	}
	var results []*gpu.Result
	for _, k := range bench.Kernels() {
		p := k.New(k.Sizes[size])
		r, err := gpu.Run(k.Name, gpu.Fermi(), gpu.Detectors(), true, func(g *gpu.Engine, _ string) (int, error) {
			_, err := k.Execute(context.Background(), p, bench.Setup{Engine: func() engine.Engine { return g }})
			return 0, err
		})
		if err != nil {
			return "", err
		}
		results = append(results, r)
	}
	var b strings.Builder
	err := gpu.Write(&b, results)
	return b.String(), err
}

// slimFast measures the detectors of CPU programs on the larger programs of corpus/cpu.
func slimFast(full bool) (string, error) {
	sources, err := filepath.Glob("corpus/cpu/kernels/*.c")
	if err == nil && len(sources) == 0 {
		err = errors.New("corpus/cpu/kernels is not here: run this in the folder of the module")
	}
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "slimfast")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	finder := toolchain.Finder{CC: os.Getenv("FENCEPOST_CC")}
	cc, err := finder.FindCC(context.Background())
	if err != nil {
		return "", err
	}
	rounds := 3
	if full {
		rounds = 15 // as in the thesis
	}
	var b strings.Builder
	err = evaluate.Write(context.Background(), &b, evaluate.Options{Sources: sources, CC: cc.Path, Dir: dir, Threads: 16, Rounds: rounds})
	return b.String(), err
}
