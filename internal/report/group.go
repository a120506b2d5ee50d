package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
)

// Cause is the cause of a finding, if it is certain.
type Cause struct {
	// Key identifies the cause. Findings with one key have one cause, but findings of missing barriers only if they
	// have a point in common.
	Key string
	// Points are the possible places of a missing barrier: before one of these instructions of the function that Key
	// names; ascending. nil for other causes.
	Points []int
	// Access number First comes first in program order, at instruction From. The other one is at instruction To. For a
	// finding that stands for several, From is the last and To the first of them.
	First    int
	From, To int
}

// same is the cause of a finding that combines two with the causes c and d; nil if they have none in common.
func (c *Cause) same(d *Cause) *Cause {
	if c == nil || d == nil || c.Key != d.Key {
		return nil
	}
	out := *c
	out.Points, out.From, out.To = intersect(c.Points, d.Points), max(c.From, d.From), min(c.To, d.To)
	if c.Points != nil && out.Points == nil {
		return nil
	}
	return &out
}

func intersect(a, b []int) []int {
	var out []int
	for _, x := range a {
		if _, ok := slices.BinarySearch(b, x); ok {
			out = append(out, x)
		}
	}
	return out
}

// group assigns each finding the id of the first finding with its cause. A remark is a group of its own.
func group(findings []Finding) {
	of := map[string][]int{} // indices by key
	var keys []string
	for i := range findings {
		f := &findings[i]
		f.Group = f.ID
		if f.Cause == nil || f.Severity == detect.Info {
			continue
		}
		if of[f.Cause.Key] == nil {
			keys = append(keys, f.Cause.Key)
		}
		of[f.Cause.Key] = append(of[f.Cause.Key], i)
	}
	for _, k := range keys {
		members := of[k]
		sets := make([][]int, len(members))
		for j, i := range members {
			sets[j] = findings[i].Cause.Points
			if sets[j] == nil {
				sets[j] = []int{0}
			}
		}
		first := map[int]string{} // by point
		for j, point := range hit(sets) {
			f := &findings[members[j]]
			if first[point] == "" {
				first[point] = f.ID
			}
			f.Group = first[point]
		}
	}
}

// hit selects few points such that each set contains one, and returns that point for each set. It is greedy: the next
// point is the one that most of the remaining sets contain, the least of several. No set is empty.
func hit(sets [][]int) []int {
	out := make([]int, len(sets))
	left := make([]int, len(sets))
	count := map[int]int{}
	for i, s := range sets {
		left[i] = i
		for _, x := range s {
			count[x]++
		}
	}
	for len(left) > 0 {
		best := sets[left[0]][0]
		for x, n := range count {
			if n > count[best] || n == count[best] && x < best {
				best = x
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool {
			if !slices.Contains(sets[i], best) {
				return false
			}
			out[i] = best
			for _, x := range sets[i] {
				count[x]--
			}
			return true
		})
	}
	return out
}

// Groups returns the findings by cause, in the order of the first finding of each.
func Groups(findings []Finding) [][]*Finding {
	at := map[string]int{}
	var out [][]*Finding
	for i := range findings {
		f := &findings[i]
		g, ok := at[f.Group]
		if !ok || f.Group == "" {
			g = len(out)
			at[f.Group] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], f)
	}
	return out
}

// others describes the findings of a group after its first, in a line each.
func (t *Text) others(group []*Finding) (head string, lines []string) {
	if len(group) < 2 {
		return "", nil
	}
	head = fmt.Sprintf("%s of the same cause%s:", plural(len(group)-1, "finding"), oneBarrier(group))
	for i, f := range group[1:] {
		if t.Limit > 0 && i == t.Limit {
			lines = append(lines, fmt.Sprintf("and %s (--limit 0 lists all)", plural(len(group)-1-i, "other")))
			break
		}
		var sides []string
		for _, a := range f.inDisplayOrder() {
			sides = append(sides, t.side(a))
		}
		lines = append(lines, fmt.Sprintf("%s %s [%s]: %s", f.ID, f.Severity, f.Kind, strings.Join(sides, ", ")))
	}
	return head, lines
}

// side describes an access in short: "write of `tile[t]` at reduce.cu:4".
func (t *Text) side(a *Access) string {
	p := a.Place()
	line, n, _ := t.source(p)
	if from, to, ok := t.expression(a, line); ok {
		line = line[from:to]
	}
	what := string(a.Op)
	if line = strings.TrimSpace(line); line != "" {
		what += " of " + short(line)
	}
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s at %s:%d", what, t.file(p.File), n)
	case p.PTXLine > 0:
		return fmt.Sprintf("%s at %s:%d", what, t.file(p.PTXFile), n)
	}
	return what + " at " + t.Where(p)
}

// short shortens source text for a list.
func short(text string) string {
	const width = 40
	if r := []rune(text); len(r) > width {
		text = string(r[:width-3]) + "..."
	}
	return "`" + text + "`"
}

// oneBarrier names the source lines between which one barrier orders all findings of a group; "" if there are none.
func oneBarrier(group []*Finding) string {
	if c := group[0].Cause; c == nil || c.Points == nil {
		return ""
	}
	points := group[0].Cause.Points
	last, next := group[0], group[0] // with the last of the first accesses, and the first of the second ones
	for _, f := range group[1:] {
		points = intersect(points, f.Cause.Points)
		if f.Cause.From > last.Cause.From {
			last = f
		}
		if f.Cause.To < next.Cause.To {
			next = f
		}
	}
	p, q := last.Accesses[last.Cause.First].Place(), next.Accesses[1-next.Cause.First].Place()
	if len(points) == 0 || points[0] <= last.Cause.From || points[len(points)-1] > next.Cause.To ||
		p.File == "" || p.File != q.File || p.Function != q.Function || p.Line >= q.Line {
		return ""
	}
	barrier := barrierName.FindString(last.Fix)
	if barrier == "" {
		barrier = "__syncthreads()"
	}
	return fmt.Sprintf("; one %s between lines %d and %d orders them all", barrier, p.Line, q.Line)
}

// barrierName matches the barrier of a block in a fix; languages of kernels have different names for it.
var barrierName = regexp.MustCompile(`[\w.]*(?:syncthreads|barrier)\(\)`)
