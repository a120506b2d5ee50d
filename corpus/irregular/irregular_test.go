package irregular

import (
	"slices"
	"strings"
	"testing"
)

// TestKernels checks that names are unique, that each kernel has its own PTX, and that every pattern has correct
// kernels for every unit.
func TestKernels(t *testing.T) {
	kernels, err := Kernels()
	if err != nil {
		t.Fatal(err)
	}
	if len(kernels) < 200 {
		t.Errorf("%d kernels; the suite has at least 200", len(kernels))
	}
	seen, right, bugs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range kernels {
		if seen[k.Name()] {
			t.Errorf("two kernels are called %s", k.Name())
		}
		seen[k.Name()] = true
		if len(k.Bugs) == 0 {
			right[k.Pattern+"/"+k.Unit] = true
		}
		for _, b := range k.Bugs {
			bugs[b] = true
		}
		ptx := k.PTX()
		if n := strings.Count(ptx, ".entry "); n != 1 || !strings.Contains(ptx, ".entry "+k.symbol()) {
			t.Errorf("%s: its PTX has %d kernels, want %s alone", k.Name(), n, k.symbol())
		}
		if whole := strings.Join(k.pattern.parts, ""); strings.Count(ptx, "\n") != strings.Count(whole, "\n") {
			t.Errorf("%s: lines of its PTX are not those of the pattern's", k.Name())
		}
	}
	if len(right) != 6*len(unitNames) {
		t.Errorf("right kernels: %v", right)
	}
	for _, b := range bugNames {
		if !bugs[b] {
			t.Errorf("no kernel has bug %s", b)
		}
	}
}

// TestGraphs checks that graphs have the properties of their kinds and the sizes in their names.
func TestGraphs(t *testing.T) {
	for _, g := range Graphs() {
		n := g.Vertices()
		if n < 5 || n > 200 || int(g.First[n]) != len(g.Edges) || g.First[0] != 0 {
			t.Errorf("%s: %d vertices, %d edges", g.Name, n, len(g.Edges))
		}
		kind, _, _ := strings.Cut(g.Name, "-")
		for v := range n {
			if !slices.IsSorted(g.Of(v)) {
				t.Errorf("%s: edges of %d: %v", g.Name, v, g.Of(v))
			}
			for i, w := range g.Of(v) {
				up, down := int(w) > v, int(w) < v
				switch {
				case !up && !down, i > 0 && g.Of(v)[i-1] == w, kind == "dag" && !up, kind == "counterdag" && !down,
					kind == "grid" && !slices.Contains(g.Of(int(w)), int32(v)):
					t.Errorf("%s: edge from %d to %d", g.Name, v, w)
				}
			}
		}
		values := g.Values()
		slices.Sort(values)
		for i, x := range values {
			if int(x) != i+1 {
				t.Fatalf("%s: values %v", g.Name, values)
			}
		}
	}
	if a, b := PowerLaw("powerlaw-200", 200, 1000), Graphs()[7]; !slices.Equal(a.Edges, b.Edges) {
		t.Error("equal calls give other graphs")
	}
}

// TestPowerLaw checks that a few vertices have most edges.
func TestPowerLaw(t *testing.T) {
	g := PowerLaw("powerlaw-200", 200, 1000)
	var ends []int
	degree := make([]int, g.Vertices())
	for _, w := range g.Edges {
		degree[w]++
	}
	ends = append(ends, degree...)
	slices.Sort(ends)
	top := 0
	for _, d := range ends[len(ends)-20:] {
		top += d
	}
	if top < len(g.Edges)/3 {
		t.Errorf("a tenth of the vertices has %d of %d ends of edges", top, len(g.Edges))
	}
}

// TestCompare checks that results that one thread would compute are accepted, and others are not.
func TestCompare(t *testing.T) {
	kernels, err := Kernels()
	if err != nil {
		t.Fatal(err)
	}
	g := &Graph{Name: "small", First: []int32{0, 2, 3, 3, 3}, Edges: []int32{1, 2, 3}} // 0 to 1 and 2, 1 to 3
	values := g.Values()
	for _, k := range kernels {
		if k.Unit != "thread" || k.Planted() != "none" {
			continue
		}
		m := k.Before(g)
		switch k.Pattern {
		case "conditional_edge":
			m.Out[0] = conditionalEdge(g, values)
		case "conditional_vertex":
			m.Out[0] = conditionalVertex(g, values)
		case "pull":
			copy(m.Out[4:], pull(g, values))
		case "push":
			copy(m.Out, push(g, values))
		case "populate_worklist":
			for v := range worklist(g, values) {
				m.List[0]++
				m.List[m.List[0]] = v
			}
		case "path_compression":
			copy(m.Out, []int64{0, 0, 0, 1})
		}
		if err := k.Compare(g, m); err != nil {
			t.Errorf("%s: %v", k.Name(), err)
		}
		m.Out[0], m.Out[len(m.Out)-1] = m.Out[0]+1, 3
		m.List[0]++
		if k.Compare(g, m) == nil {
			t.Errorf("%s: %v is taken for right", k.Name(), m)
		}
	}
}
