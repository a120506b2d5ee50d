package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/cputime"
	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// racing is a kernel with n stores in each of two blocks, to one word or each to its own. n(n+1)/2 or n pairs of places
// race.
func racing(t testing.TB, n int, apart bool) *Input {
	var b strings.Builder
	b.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n" +
		".reg .b64 %a; .reg .b32 %r; ld.param.u64 %a,[p]; mov.u32 %r, %ctaid.x;\n")
	at := 0
	for i := range n {
		if apart {
			at = 4 * i
		}
		fmt.Fprintf(&b, "st.global.u32 [%%a+%d], %%r;\n", at)
	}
	b.WriteString("ret;\n}\n")
	l, err := ReadLaunchFile("l.toml", fmt.Appendf(nil, "grid = 2\nblock = 1\nargs = [{ buffer = \"p\", type = \"u32\", shape = [%d] }]\n", n))
	if err != nil {
		t.Fatal(err)
	}
	return &Input{Images: []cuda.Image{{Name: "k.ptx", Text: b.String()}}, Launch: l}
}

// TestManyFindings checks the limit on findings for a kernel in which tens of thousands of pairs of instructions race:
// errors come first, each kind occurs, all are counted, and both engines and all seeds report the same ones.
func TestManyFindings(t *testing.T) {
	const n, most = 320, 500
	for _, apart := range []bool{false, true} {
		in := racing(t, n, apart)
		pairs := n * (n + 1) / 2
		if apart {
			pairs = n
		}
		var first []string
		for name, engine := range Engines() {
			for seed := range uint64(2) {
				r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, MaxFindings: most, Engine: engine, Seed: seed}, in)
				if err != nil {
					t.Fatal(err)
				}
				if want := min(most, pairs); len(r.Findings) != want || r.More != pairs-want {
					t.Errorf("%s, seed %d: %d findings and %d more, want %d and %d", name, seed, len(r.Findings), r.More, want, pairs-want)
				}
				if r.Verdict != report.Found || r.More > 0 && len(r.Notes) == 0 {
					t.Errorf("verdict %s, notes %q", r.Verdict, r.Notes)
				}
				var ids []string
				for _, f := range r.Findings {
					ids = append(ids, f.ID)
				}
				if first == nil {
					first = ids
				}
				if !slices.Equal(ids, first) {
					t.Errorf("%s, seed %d: other findings are kept than before", name, seed)
				}
			}
		}
	}
}

// TestCapKeepsKinds has many errors of one kind before an error of another kind and a warning.
func TestCapKeepsKinds(t *testing.T) {
	in := racing(t, 100, false)
	text := in.Images[0].Text
	in.Images[0].Text = strings.Replace(text, "ret;", "atom.global.add.u32 %r, [%a+8], 1;\nst.global.u32 [%a+8], 5;\nst.volatile.global.u32 [%a+16], 5;\nret;", 1)
	r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, MaxFindings: 10}, in)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[detect.Kind]bool{}
	for _, f := range r.Findings {
		kinds[f.Kind] = true
	}
	for _, k := range []detect.Kind{detect.Unordered, detect.MixedAtomic, detect.VolatileOnly, detect.SameValue} {
		if !kinds[k] {
			t.Errorf("no finding of kind %s is kept: %v", k, kinds)
		}
	}
	if len(r.Findings) > 20 {
		t.Errorf("%d findings are kept", len(r.Findings))
	}
}

// TestTimeoutWhileJudging gives detectors far more work than the time limit allows. The report must come soon after the
// limit, with the findings so far.
func TestTimeoutWhileJudging(t *testing.T) {
	in := racing(t, 6000, false) // 18 million pairs
	for _, jobs := range []int{1, 2} {
		for _, d := range all.Detectors() {
			if testing.Short() && (jobs > 1 || d.Name != "hb") {
				continue
			}
			const timeout = 1500 * time.Millisecond
			start := cputime.Used()
			r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: jobs, Timeout: timeout, Detectors: []detect.Spec{d}}, in)
			if err != nil {
				t.Fatal(err)
			}
			if took := cputime.Used() - start; took > 2*slower*(timeout+time.Second) {
				t.Errorf("%s, %d jobs: took %s with a timeout of %s", d.Name, jobs, took, timeout)
			}
			if d.Needs&event.NeedGlobal != 0 && len(r.Findings) == 0 && len(r.Skipped) == 0 {
				t.Errorf("%s, %d jobs: verdict %s, nothing found and nothing skipped", d.Name, jobs, r.Verdict)
			}
		}
	}
}

// TestTimeoutIsOfAllRuns checks that a comparison, which executes several times, and programs of the corpus share one
// time limit.
func TestTimeoutIsOfAllRuns(t *testing.T) {
	in := racing(t, 3000, false)
	const timeout = time.Second
	start := cputime.Used()
	o := &Options{FailOn: detect.Error, Jobs: 1, Timeout: timeout}
	r, err := Compare(context.Background(), o, func(_ int, o *Options) (*report.Report, error) { return Check(context.Background(), o, in) })
	if err != nil {
		t.Fatal(err)
	}
	if took := cputime.Used() - start; took > 2*slower*(timeout+time.Second) {
		t.Errorf("compare took %s with a timeout of %s", took, timeout)
	}
	if len(r.Skipped) == 0 {
		t.Error("nothing is skipped")
	}
	programs, err := corpus.Core()
	if err != nil {
		t.Fatal(err)
	}
	start = cputime.Used()
	o.Timeout = 1
	for _, c := range CheckCorpus(context.Background(), o, programs) {
		if c.OK() {
			t.Errorf("%s is checked in no time", c.Program.Path())
		}
	}
	if took := cputime.Used() - start; took > slower*time.Second {
		t.Errorf("the corpus took %s with a timeout of %s", took, o.Timeout)
	}
}

// TestLargeLaunchFiles checks that the largest allowed launch files are read in time proportional to their size.
func TestLargeLaunchFiles(t *testing.T) {
	var launches, values strings.Builder
	for range maxLaunches {
		launches.WriteString("[[launch]]\nkernel = \"k\"\ngrid = 1\nblock = 1\n")
	}
	values.WriteString("grid = 1\nblock = 1\nargs = [{ buffer = \"p\", type = \"u32\", shape = 400000, fill = [\n")
	for range 200000 {
		values.WriteString("1,2,\n")
	}
	values.WriteString("] }]\n")
	for name, text := range map[string]string{"launches": launches.String(), "values": values.String()} {
		start := cputime.Used()
		f, err := ReadLaunchFile(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if name == "launches" && len(f.Launches) != maxLaunches {
			t.Errorf("%d launches", len(f.Launches))
		}
		if took := cputime.Used() - start; took > slower*time.Second {
			t.Errorf("%s: %d bytes take %s", name, len(text), took)
		} else {
			t.Logf("%s: %d bytes take %s", name, len(text), took)
		}
	}
}

// TestTimeoutWhileReading checks that the time limit ends the reading of a long module.
func TestTimeoutWhileReading(t *testing.T) {
	in := racing(t, 200000, false)
	const timeout = 50 * time.Millisecond
	r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, Timeout: timeout}, in)
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != report.NotChecked || len(r.Skipped) == 0 || !strings.Contains(r.Skipped[0].Reason, "while it was read") {
		t.Errorf("verdict %s, %+v", r.Verdict, r.Skipped)
	}
}
