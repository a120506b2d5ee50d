package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify"
)

// randomKernel writes a kernel whose threads make random accesses to x, y and z, and its launch. Each accessing
// instruction has a line of its own. There is no fence.sc, whose order hb does not know.
func randomKernel(r *rand.Rand) (text, launch string) {
	blocks, block := 2, 1+r.IntN(2)
	if r.IntN(4) == 0 {
		blocks, block = 1+r.IntN(3), 1
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	var b strings.Builder
	b.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<32>;\n.reg .b64 %rd<2>;\n" +
		".reg .pred %p<4>;\nld.param.u64 %rd0, [p];\nmov.u32 %r30, %ctaid.x;\nmov.u32 %r31, %tid.x;\n")
	barriers := block > 1 && r.IntN(2) == 0
	for t := range blocks * block {
		fmt.Fprintf(&b, "setp.ne.u32 %%p0, %%r30, %d;\nsetp.ne.or.u32 %%p0, %%r31, %d, %%p0;\n@%%p0 bra T%d;\n", t/block, t%block, t)
		n := 1 + r.IntN(8/(blocks*block))
		at := r.IntN(n)
		for i := range n {
			if barriers && i == at {
				b.WriteString("barrier.sync 0;\n")
			}
			v, scope := pick("%rd0", "%rd0", "%rd0+4", "%rd0+8"), pick("cta", "gpu", "gpu", "sys")
			switch r.IntN(9) {
			case 0:
				fmt.Fprintf(&b, "ld.global.u32 %%r0, [%s];\n", v)
			case 1:
				fmt.Fprintf(&b, "st.global.u32 [%s], %d;\n", v, 1+r.IntN(2))
			case 2, 3:
				fmt.Fprintf(&b, "ld.%s.%s.global.u32 %%r0, [%s];\n", pick("relaxed", "acquire"), scope, v)
			case 4, 5:
				fmt.Fprintf(&b, "st.%s.%s.global.u32 [%s], %d;\n", pick("relaxed", "release"), scope, v, 1+r.IntN(2))
			case 6:
				fmt.Fprintf(&b, "atom.%s.%s.global.%s.u32 %%r0, [%s], 1;\n", pick("relaxed", "acquire", "release", "acq_rel"), scope, pick("add", "max"), v)
			case 7: // only the thread that has taken the lock executes what follows
				fmt.Fprintf(&b, "atom.acquire.%s.global.cas.b32 %%r1, [%%rd0+12], 0, 1;\nsetp.ne.u32 %%p1, %%r1, 0;\n@%%p1 bra E%d_%d;\nst.global.u32 [%s], 3;\n"+
					"st.release.%s.global.u32 [%%rd0+12], 0;\nE%d_%d:\n", scope, t, i, v, scope, t, i)
			default:
				fmt.Fprintf(&b, "fence.acq_rel.%s;\n", scope)
			}
		}
		fmt.Fprintf(&b, "ret;\nT%d:\n", t)
	}
	b.WriteString("ret;\n}\n")
	return b.String(), fmt.Sprintf("grid = %d\nblock = %d\nargs = [{ buffer = \"x\", type = \"i32\", shape = [4] }]\n", blocks, block)
}

// TestVerifyRandom explores random kernels under the model PTX. The findings of hb in some schedules must be among
// those of verify, the predictions of gwcp must be confirmed, and the schedules that verify writes must replay to races
// that hb finds too.
func TestVerifyRandom(t *testing.T) {
	n := 150
	if testsize.Long() {
		n = 2000
	}
	r := rand.New(rand.NewPCG(15, 15))
	pairs, predictions, replayed, weak, observed := 0, 0, 0, 0, 0
	for range n {
		text, launch := randomKernel(r)
		input := func() *session.Input {
			f, err := session.ReadLaunchFile("k.toml", []byte(launch))
			if err != nil {
				t.Fatal(err)
			}
			return &session.Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: f}
		}
		check := func(replay *session.ScheduleFile, seeds int) []report.Finding {
			rep, err := session.Check(context.Background(), &session.Options{Model: detect.ModelPTX, Replay: replay, Seeds: seeds, Jobs: 1}, input())
			if err != nil || len(rep.Skipped) > 0 {
				t.Fatalf("%v %+v\n%s", err, rep, text)
			}
			return rep.Findings
		}
		x, _, err := exploreLaunch(context.Background(), session.Options{Timeout: 5 * time.Second}, input(), verify.Options{Model: verify.PTX, Unroll: 8, Schedules: true})
		if err != nil || x.Refusal != "" {
			t.Fatalf("%v %v\n%s", err, x, text)
		}
		if x.Stopped {
			continue
		}
		explored := exploredPairs(x)
		found := check(nil, 4)
		for pair := range racePairs(found, false) {
			if pairs++; !explored[pair] {
				t.Errorf("hb finds the race %s and verify %v\n%s%s", pair, explored, launch, text)
			}
		}
		for pair := range racePairs(found, true) {
			if predictions++; !explored[pair] {
				t.Errorf("gwcp predicts the race %s, which verify refutes: %v\n%s%s", pair, explored, launch, text)
			}
		}
		for i := range x.Findings {
			f := &x.Findings[i]
			if f.Class != detect.Race {
				continue
			}
			if f.Schedule == nil {
				weak++
				continue
			}
			file, err := session.ReadScheduleFile("schedule", []byte(scheduleFile(f, 1).String()))
			if err != nil {
				t.Fatal(err)
			}
			replayed++
			again := check(file, 1)
			switch {
			case replaysTo(f, again):
			case strings.Contains(f.Sides[0].What+f.Sides[1].What, "read-modify-write"):
				// To verify the read of an update is an operation of its own, which whoever observes the update does not follow; to
				// hb an update is one operation, which observation orders.
				observed++
			default:
				t.Errorf("the schedule of %s comes to %v\n%s%s%s", f.Title, racePairs(again, false), file, launch, text)
			}
		}
	}
	t.Logf("%d races, %d predictions, %d schedules, %d findings without, %d updates that are observed", pairs, predictions, replayed, weak, observed)
	if pairs < n || replayed < n || observed > replayed/20 {
		t.Errorf("too few races, or too many that hb does not confirm")
	}
}
