package hirace

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// labels calls f for every label.
func labels(f func(a action, y synced, r relation)) {
	for a := read; a <= deviceAtomic; a++ {
		for y := unsynced; y <= blockSynced; y++ {
			for r := self; r <= sameGrid; r++ {
				f(a, y, r)
			}
		}
	}
}

// inTable returns the published state after a state and label.
func inTable(s state, a action, y synced, r relation) state {
	return state(published[s][13*int(a)+4*int(y)+int(r)] - 'a')
}

// TestPublished checks that the derived machine equals the published table except for the entries listed in the
// package's documentation, and that the machine of option machine=published equals the table.
func TestPublished(t *testing.T) {
	derived, changed, all := derive(), derive(), meanings()
	changed.asPublished()
	var differences []string
	for s := range all {
		labels(func(a action, y synced, r relation) {
			l, want := labelOf(a, y, r), inTable(state(s), a, y, r)
			if got := derived.at(state(s), l).state(); got != want {
				differences = append(differences, fmt.Sprintf("%s %s%s %s %s, published %s", all[s].name,
					[]string{"R", "W", "BA", "GA"}[a], []string{"U", "W", "B"}[y], []string{"S", "W", "B", "G"}[r], all[got].name, all[want].name))
			}
			if got := changed.at(state(s), l).state(); got != want {
				t.Errorf("%s %v: as published %s, want %s", all[s].name, l, all[got].name, all[want].name)
			}
		})
	}
	want := []string{
		"READ BAW S WSYNC_ATOM, published WRITE", "READ BAW W WSYNC_ATOM, published WRITE",
		"READ BAB S BSYNC_ATOM, published WRITE", "READ BAB W BSYNC_ATOM, published WRITE", "READ BAB B BSYNC_ATOM, published WRITE",
		"READ GAW S WSYNC_ATOM, published WRITE", "READ GAW W WSYNC_ATOM, published WRITE",
		"READ GAB S BSYNC_ATOM, published WRITE", "READ GAB W BSYNC_ATOM, published WRITE", "READ GAB B BSYNC_ATOM, published WRITE",
		"BATOM_B BAB S BATOM, published BATOM_B", "BATOM_B BAB W BATOM, published BATOM_B",
		"BATOM_B GAB S BATOM, published BATOM_B", "BATOM_B GAB W BATOM, published BATOM_B",
		"WSYNC_ATOM GAU W WSYNC_ATOM_M, published WSYNC_ATOM",
	}
	if !slices.Equal(differences, want) {
		t.Errorf("differences:\n%q\nwant\n%q", differences, want)
	}
}

// TestMinimal checks that every state is reachable, and which states have the same future.
func TestMinimal(t *testing.T) {
	m, all := derive(), meanings()
	reached := map[state]bool{0: true}
	for todo := []state{0}; len(todo) > 0; todo = todo[1:] {
		labels(func(a action, y synced, r relation) {
			if n := m.at(todo[0], labelOf(a, y, r)).state(); !reached[n] {
				reached[n] = true
				todo = append(todo, n)
			}
		})
	}
	if len(reached) != numStates {
		t.Errorf("%d states are reachable", len(reached))
	}
	class := [numStates]string{raced: "race"} // states of one class have the same future as far as computed
	for range numStates {
		var next [numStates]string
		names := map[string]string{}
		for s := range next {
			key := class[s]
			labels(func(a action, y synced, r relation) { key += "," + class[m.at(state(s), labelOf(a, y, r)).state()] })
			if names[key] == "" {
				names[key] = all[s].name
			}
			next[s] = names[key]
		}
		class = next
	}
	for s := range class {
		want := map[string]string{"BWSYNC": "BSYNC", "BATOM": "BSYNC_ATOM", "BSYNC_ATOM_W": "BATOM_W", "BSYNC_ATOM_B": "BATOM_B"}[all[s].name]
		if class[s] != cmp.Or(want, all[s].name) {
			t.Errorf("%s has the future of %s", all[s].name, class[s])
		}
	}
}

// TestIrrelevant checks that the machine ignores meaningless clocks: those of different blocks, and warp clocks of
// different warps.
func TestIrrelevant(t *testing.T) {
	m := derive()
	for s := range state(numStates) {
		labels(func(a action, y synced, r relation) {
			if r == sameGrid && m.at(s, labelOf(a, y, r)) != m.at(s, labelOf(a, unsynced, r)) ||
				r == sameBlock && y == warpSynced && m.at(s, labelOf(a, y, r)) != m.at(s, labelOf(a, unsynced, r)) {
				t.Errorf("state %d, label %d %d %d", s, a, y, r)
			}
		})
	}
}

// made is accesses by threads of a block. ordered are exactly the threads that are ordered after all of them.
type made struct {
	act     action
	block   uint8
	ordered uint8
}

// config is a history of eight threads as happens-before sees it, and what the detector keeps of it. Threads are
// numbered by block, warp and lane, one bit each.
type config struct {
	all         string // made, sorted, 3 bytes each
	state       state
	last        uint8
	block, warp bool // the clocks of its block and its warp have advanced since; others are irrelevant (TestIrrelevant)
}

func (c *config) made() (out []made) {
	for i := 0; i < len(c.all); i += 3 {
		out = append(out, made{action(c.all[i]), c.all[i+1], c.all[i+2]})
	}
	return out
}

// put keeps those accesses that are ordered before fewer threads than others of their kind and block: whoever races
// with another access races with one of those.
func (c *config) put(all []made) {
	c.all = ""
	var keep []string
	for i, x := range all {
		if !slices.ContainsFunc(all, func(y made) bool {
			return y != x && y.act == x.act && y.block == x.block && y.ordered&^x.ordered == 0
		}) && !slices.Contains(all[:i], x) {
			keep = append(keep, string([]byte{byte(x.act), x.block, x.ordered}))
		}
	}
	slices.Sort(keep)
	for _, k := range keep {
		c.all += k
	}
}

// barrier makes the threads of a group wait for each other.
func (c config) barrier(group uint8) config {
	all := c.made()
	for i := range all {
		if all[i].ordered&group != 0 {
			all[i].ordered |= group
		}
	}
	c.put(all)
	return c
}

// races is happens-before: it says whether the access races with an earlier one.
func (c *config) races(a action, thread uint8) bool {
	for _, x := range c.made() {
		switch {
		case x.ordered>>thread&1 != 0, x.act == read && a == read:
		case x.act >= blockAtomic && a >= blockAtomic && (x.block == thread>>2 || x.act == deviceAtomic && a == deviceAtomic):
		default:
			return true
		}
	}
	return false
}

// access adds an access that does not race.
func (c config) access(a action, thread uint8, to state) config {
	c.put(append(c.made(), made{a, thread >> 2, 1 << thread}))
	return config{all: c.all, state: to, last: thread}
}

// label returns the label from clocks and thread numbers.
func (c *config) label(a action, thread uint8) label {
	y, r := unsynced, sameGrid
	switch {
	case thread == c.last:
		r = self
	case thread>>1 == c.last>>1:
		r = sameWarp
	case thread>>2 == c.last>>2:
		r = sameBlock
	}
	switch {
	case c.block:
		y = blockSynced
	case c.warp:
		y = warpSynced
	}
	return labelOf(a, y, r)
}

// TestExhaustive compares the machine with happens-before on every history, of any length, of accesses of all kinds and
// barriers of blocks and warps, by eight threads in two blocks of two warps of two lanes. Histories that happens-before
// does not distinguish are explored once.
func TestExhaustive(t *testing.T) {
	wrong, n := explore(derive())
	if len(wrong) != 0 {
		t.Errorf("wrong: %q", wrong)
	}
	if n < 1000 {
		t.Errorf("only %d histories", n)
	}
	t.Logf("%d histories", n)
	changed := derive()
	changed.asPublished()
	wrong, _ = explore(changed)
	for _, w := range wrong {
		t.Logf("as published: %s", w)
	}
	if len(wrong) == 0 {
		t.Error("nothing is found wrong with the published table")
	}
}

func explore(m *machine) (wrong []string, histories int) {
	names := meanings()
	seen := map[config]bool{{}: true}
	todo := []config{{}}
	add := func(c config) {
		if !seen[c] {
			seen[c] = true
			todo = append(todo, c)
		}
	}
	for ; len(todo) > 0; todo = todo[1:] {
		c := todo[0]
		for thread := range uint8(8) {
			if c.state == 0 && thread > 0 {
				break // by symmetry, thread 0 comes first
			}
			for a := read; a <= deviceAtomic; a++ {
				next := m.at(c.state, c.label(a, thread)).state()
				switch race := c.races(a, thread); {
				case race != (next == raced):
					if w := fmt.Sprintf("%s: happens-before says %t", names[c.state].name, race); !slices.Contains(wrong, w) {
						wrong = append(wrong, w)
					}
				case !race:
					add(c.access(a, thread, next))
				}
			}
		}
		for warp := range uint8(4) {
			x := c.barrier(3 << (2 * warp))
			x.warp = x.warp || c.last>>1 == warp
			add(x)
		}
		for block := range uint8(2) {
			x := c.barrier(15 << (4 * block))
			x.block = x.block || c.last>>2 == block
			add(x)
		}
	}
	return wrong, len(seen)
}
