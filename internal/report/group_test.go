package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
)

func TestHit(t *testing.T) {
	for _, c := range []struct {
		sets [][]int
		want []int
	}{
		{nil, []int{}},
		{[][]int{{5}}, []int{5}},
		{[][]int{{1, 2, 3}, {2, 3, 4}, {3, 4, 5}}, []int{3, 3, 3}},
		{[][]int{{1, 2, 3}, {2, 3}}, []int{2, 2}},                             // the least
		{[][]int{{1, 2}, {3, 4}}, []int{1, 3}},                                // none in common
		{[][]int{{1, 2, 3}, {3, 4, 5}, {5, 6, 7}}, []int{3, 3, 5}},            // one of two points, and the first one
		{[][]int{{1, 4}, {2, 4}, {1, 3}, {4, 9}}, []int{4, 4, 1, 4}},          // sets need not be intervals
		{[][]int{{1, 3, 4, 7}, {2, 4, 5}, {1, 6}, {2, 6}}, []int{1, 2, 1, 2}}, // the first of the best, again
		{[][]int{{9}, {1, 9}, {1, 2}, {2, 3}, {2, 8}}, []int{9, 9, 2, 2, 2}},  // the best, not the least
		{[][]int{{30, 40}, {10, 20}, {20, 30}}, []int{30, 20, 20}},
	} {
		got := hit(c.sets)
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.sets, got, c.want)
		}
	}
}

// barrierRace returns a race between two lines that a barrier before one of the instructions from point from to point
// to would order.
func barrierRace(write, read, from, to int) Finding {
	f := race()
	f.Accesses = []Access{access(detect.Write, 128, 512, frame(write, 2, write*10, "st")), access(detect.Read, 0, 512, frame(read, 2, read*10, "ld"))}
	f.Cause = &Cause{Key: "barrier", From: from - 1, To: to}
	for i := from; i <= to; i++ {
		f.Cause.Points = append(f.Cause.Points, i)
	}
	return f
}

// TestBarrierName checks that a group and its findings name the same barrier.
func TestBarrierName(t *testing.T) {
	for fix, want := range map[string]string{
		"":                                       "; one __syncthreads() between lines 4 and 7 orders them all",
		"put __syncthreads() between the two":    "; one __syncthreads() between lines 4 and 7 orders them all",
		"put cuda.syncthreads() between the two": "; one cuda.syncthreads() between lines 4 and 7 orders them all",
		"put gl.barrier() between the two; between partitions, mbarrier.wait": "; one gl.barrier() between lines 4 and 7 orders them all",
	} {
		f := barrierRace(4, 7, 50, 70)
		f.Fix = fix
		if got := oneBarrier([]*Finding{&f}); got != want {
			t.Errorf("after %q: %q, want %q", fix, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	flag := func(line int, key string) Finding {
		f := race()
		f.Kind, f.Cause = detect.MissingFence, &Cause{Key: key}
		f.Accesses = []Access{access(detect.Write, 128, 512, frame(line, 7, 7, "st")), access(detect.Read, 0, 512, frame(line, 8, 8, "ld"))}
		return f
	}
	remark := flag(6, "flag")
	remark.Severity = detect.Info
	later := barrierRace(6, 7, 60, 70)
	later.Severity = detect.Warning
	unknown := barrierRace(1, 7, 1, 70)
	unknown.Cause = nil
	findings := Merge([]Finding{barrierRace(4, 5, 40, 50), barrierRace(4, 6, 40, 60), barrierRace(3, 5, 30, 50), later, unknown,
		flag(3, "flag"), flag(4, "flag"), flag(5, "another"), remark})
	var b bytes.Buffer
	text := &Text{Dir: "/home/ada/proj", Source: testSource}
	for _, g := range Groups(findings) {
		text.Group(&b, g)
	}
	golden(t, "groups.txt", b.Bytes())

	sizes := map[string]int{}
	for i := range findings {
		sizes[findings[i].Group]++
	}
	var list []string
	for _, g := range Groups(findings) {
		if g[0].ID != g[0].Group || sizes[g[0].Group] != len(g) {
			t.Errorf("%s of %d stands in the place of %s", g[0].ID, len(g), g[0].Group)
		}
		list = append(list, fmt.Sprint(len(g)))
	}
	if got := strings.Join(list, " "); got != "1 3 2 1 1 1" {
		t.Errorf("groups of %s", got)
	}
}

// TestMergedCause checks that a finding for races with two causes has no certain cause.
func TestMergedCause(t *testing.T) {
	x, y, z := barrierRace(4, 5, 40, 50), barrierRace(4, 5, 45, 55), barrierRace(4, 5, 60, 70)
	other := barrierRace(4, 5, 40, 50)
	other.Cause.Key = "elsewhere"
	unknown := barrierRace(4, 5, 40, 50)
	unknown.Cause = nil
	if got := Merge([]Finding{x, y})[0].Cause; got == nil || !slices.Equal(got.Points, []int{45, 46, 47, 48, 49, 50}) || got.From != 44 || got.To != 50 {
		t.Errorf("of two barriers: %+v", got)
	}
	swapped := barrierRace(4, 5, 45, 55) // not predicted, and with its accesses in the other order
	predicted := x
	predicted.Predicted = true
	swapped.Accesses[0], swapped.Accesses[1] = swapped.Accesses[1], swapped.Accesses[0]
	swapped.Cause.First = 1
	for _, list := range [][]Finding{{predicted, swapped}, {swapped, predicted}} {
		if got := Merge(list)[0]; got.Cause == nil || got.Accesses[got.Cause.First].Op != detect.Write {
			t.Errorf("of two orders: %+v", got.Cause)
		}
	}
	milder := barrierRace(4, 5, 60, 70)
	milder.Severity = detect.Warning
	for _, list := range [][]Finding{{x, milder}, {milder, x}} {
		if got := Merge(list)[0].Cause; got == nil || !slices.Equal(got.Points, x.Cause.Points) {
			t.Errorf("of an error and a warning: %+v", got)
		}
	}
	for _, f := range []Finding{z, other, unknown} {
		if got := Merge([]Finding{x, f})[0].Cause; got != nil {
			t.Errorf("%+v", got)
		}
	}
	many := []Finding{barrierRace(4, 5, 40, 50)}
	for i := range 30 {
		many = append(many, barrierRace(4, 100+i, 40, 50))
	}
	var b bytes.Buffer
	group := Groups(Merge(many))[0]
	(&Text{Limit: 20}).Group(&b, group)
	if got := b.String(); !strings.Contains(got, "30 findings of the same cause") ||
		!strings.Contains(got, "  and 10 others (--limit 0 lists all)\n") || strings.Count(got, " [missing-barrier]: ") != 20 {
		t.Error(got)
	}
	b.Reset()
	(&Text{}).Group(&b, group)
	if got := b.String(); strings.Contains(got, " others") || strings.Count(got, " [missing-barrier]: ") != 30 {
		t.Error(got)
	}
}

// TestListedGroups checks that in a part of the findings, each group is under its first finding there.
func TestListedGroups(t *testing.T) {
	single := barrierRace(3, 3, 1, 2)
	last := barrierRace(4, 6, 40, 50)
	last.Severity = detect.Warning
	r := &Report{Findings: Merge([]Finding{single, barrierRace(4, 5, 40, 50), last})}
	members := func() string {
		var b bytes.Buffer
		if err := JSON(&b, r, false); err != nil {
			t.Fatal(err)
		}
		var out struct {
			Findings []struct {
				ID, Group string
				Members   []string
			}
		}
		if err := json.Unmarshal(b.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, f := range out.Findings {
			list = append(list, fmt.Sprint(f.ID == f.Group, f.Members))
		}
		return strings.Join(list, "; ")
	}
	if got, want := members(), fmt.Sprintf("true []; true [%s]; false []", r.Findings[2].ID); got != want {
		t.Errorf("all: %s, want %s", got, want)
	}
	r.Cut(1) // keeps the only warning too
	if got, want := members(), "true []; true []"; got != want {
		t.Errorf("after Cut: %s, want %s", got, want)
	}
}
