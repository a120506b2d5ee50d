package clock

import (
	"iter"
	"sort"
)

// Foreign is what is known outside of the own launch: of the agents of the host (host threads and streams), and of
// threads of other launches. A nil Foreign knows nothing.
type Foreign struct {
	agents []Agent // by ID
	parts  []Part  // by Launch
}

// Agent is the known epoch of an agent.
type Agent struct{ ID, Epoch uint32 }

// Part is what is known of another launch.
type Part struct {
	Launch uint32
	Grid   *Grid
}

// Agent returns the known epoch of an agent.
func (f *Foreign) Agent(id uint32) uint32 {
	if f == nil {
		return 0
	}
	for i := range f.agents {
		if f.agents[i].ID == id {
			return f.agents[i].Epoch
		}
	}
	return 0
}

// Part returns what is known of a launch through its threads, not through its agent.
func (f *Foreign) Part(launch uint32) *Grid {
	if f == nil {
		return nil
	}
	for i := range f.parts {
		if f.parts[i].Launch == launch {
			return f.parts[i].Grid
		}
	}
	return nil
}

// WithAgent returns f with an agent known at least up to an epoch.
func (f *Foreign) WithAgent(id, epoch uint32) *Foreign {
	return f.Join(&Foreign{agents: []Agent{{id, epoch}}})
}

// Agents returns the part of f about agents.
func (f *Foreign) Agents() *Foreign {
	if f == nil || len(f.parts) == 0 {
		return f
	}
	return &Foreign{agents: f.agents}
}

// Before returns f without the agents with IDs from id on.
func (f *Foreign) Before(id uint32) *Foreign {
	if f == nil || len(f.agents) == 0 || f.agents[len(f.agents)-1].ID < id {
		return f
	}
	n := sort.Search(len(f.agents), func(i int) bool { return f.agents[i].ID >= id })
	if n == 0 && len(f.parts) == 0 {
		return nil
	}
	return &Foreign{f.agents[:n:n], f.parts}
}

// AgentsFrom yields what f knows of the agents with IDs from id on.
func (f *Foreign) AgentsFrom(id uint32) iter.Seq2[uint32, uint32] {
	return func(yield func(id, epoch uint32) bool) {
		if f == nil {
			return
		}
		for i := len(f.agents) - 1; i >= 0 && f.agents[i].ID >= id; i-- {
			if !yield(f.agents[i].ID, f.agents[i].Epoch) {
				return
			}
		}
	}
}

// WithPart returns f joined with knowledge of a launch.
func (f *Foreign) WithPart(launch uint32, g *Grid) *Foreign {
	if g == nil {
		return f
	}
	return f.Join(&Foreign{parts: []Part{{launch, g}}})
}

// Without returns f without the parts of launches for which drop returns true.
func (f *Foreign) Without(drop func(launch uint32) bool) *Foreign {
	if f == nil {
		return nil
	}
	for _, p := range f.parts {
		if !drop(p.Launch) {
			continue
		}
		out := &Foreign{agents: f.agents}
		for _, p := range f.parts {
			if !drop(p.Launch) {
				out.parts = append(out.parts, p)
			}
		}
		return out
	}
	return f
}

// Join returns what f or g knows. The result is f or g itself if it knows all that the other knows.
func (f *Foreign) Join(g *Foreign) *Foreign {
	switch {
	case f == g || g == nil:
		return f
	case f == nil:
		return g
	case f.covers(g):
		return f
	case g.covers(f):
		return g
	}
	out := &Foreign{}
	out.agents = append(append(out.agents, f.agents...), g.agents...)
	sort.Slice(out.agents, func(i, j int) bool {
		a, b := out.agents[i], out.agents[j]
		return a.ID < b.ID || a.ID == b.ID && a.Epoch > b.Epoch
	})
	n := 0
	for i, a := range out.agents {
		if i == 0 || a.ID != out.agents[n-1].ID {
			out.agents[n] = a
			n++
		}
	}
	out.agents = out.agents[:n]
	i, j := 0, 0
	for i < len(f.parts) || j < len(g.parts) {
		switch {
		case j == len(g.parts) || i < len(f.parts) && f.parts[i].Launch < g.parts[j].Launch:
			out.parts = append(out.parts, f.parts[i])
			i++
		case i == len(f.parts) || g.parts[j].Launch < f.parts[i].Launch:
			out.parts = append(out.parts, g.parts[j])
			j++
		default:
			out.parts = append(out.parts, Part{f.parts[i].Launch, f.parts[i].Grid.Join(g.parts[j].Grid)})
			i, j = i+1, j+1
		}
	}
	return out
}

// covers reports whether f knows all that g knows. It may return false if that is not cheap to see.
func (f *Foreign) covers(g *Foreign) bool {
	for _, a := range g.agents {
		if f.Agent(a.ID) < a.Epoch {
			return false
		}
	}
	for _, p := range g.parts {
		if h := f.Part(p.Launch); !h.Covers(p.Grid) {
			return false
		}
	}
	return true
}
