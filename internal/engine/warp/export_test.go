package warp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/places"
	"fencepost.dev/fencepost/internal/event"
)

// NewDiff returns an engine that runs every launch on ref and on warp, with the same memory, and compares the final
// memory, the output, the faults and the events of each thread. If the outcome on ref depends on the schedule, as in
// racy launches, it compares only how the launch ends. The launch's owner gets the results of warp.
func NewDiff(t testing.TB, racy bool) engine.Engine { return &diff{t: t, racy: racy} }

type diff struct {
	t      testing.TB
	racy   bool
	exact  bool // compare failed runs completely too
	strict int  // number of launches that were compared completely
}

// account is the recorded results of a run.
type account struct {
	needs   event.Needs
	launch  *event.Launch
	wpb     uint32 // warps of a block
	stats   engine.Stats
	err     error
	faults  []engine.Fault
	text    string
	threads map[uint64][]record
	warps   map[uint32][]string // in lockstep: the events of each warp, as text
	memory  []byte
	mirror  map[cellAddr]cell // memory contents according to the events
	wrong   string            // where the events contradict themselves
	room    []event.Event
}

// cellAddr is the address of a 4-byte word of global memory, or of the shared memory of a block.
type cellAddr struct{ block, addr uint64 }

type cell struct {
	value  uint32
	copied bool // written by asynchronous copies at an unknown time
}

// overwrites compares the overwritten value in the event of a write with the earlier writes.
func (a *account) overwrites(b *event.Batch, e *event.Event, lane int, block uint64) {
	old, value := b.OldOf(e, lane), b.ValueOf(e, lane)
	if len(old) != len(value) || len(old) != event.ValueWords(e.Size) {
		a.wrong = fmt.Sprintf("%v of %d bytes by lane %d: %d words, %d before", e.Kind, e.Size, lane, len(value), len(old))
		return
	}
	addr := b.AddrOf(e, lane)
	if tag := addr >> event.PeerShift; e.Space == event.Shared && tag != 0 { // of another block of the cluster
		cluster, _ := a.launch.ClusterOf(e.Warp / a.wpb)
		block, addr = 1+uint64(a.launch.BlockIn(cluster, uint32(tag)-1)), addr%(1<<event.PeerShift)
	}
	shift := addr % 4 * 8
	mask := ^uint32(0)
	if e.Size < 4 { // OldOf has the word around it
		mask = (1<<(8*e.Size) - 1) << shift
	}
	for i := range uint64(max(e.Size/4, 1)) {
		at := cellAddr{block, addr&^3 + 4*i}
		was, now := uint32(old[i/2]>>(i%2*32)), uint32(value[i/2]>>(i%2*32))<<shift
		c, known := a.mirror[at]
		c.copied = c.copied || e.Flags&event.FlagAsync != 0
		if known && c.value != was && !c.copied {
			a.wrong = fmt.Sprintf("%v of %d bytes at %#x by lane %d of warp %d: word %#x held %#x, and %#x was written before", e.Kind, e.Size, addr, lane, e.Warp, at.addr, was, c.value)
		}
		c.value = was&^mask | now&mask
		a.mirror[at] = c
	}
}

// record is an event as seen by one thread.
type record struct {
	kind    event.Kind
	order   event.Order
	scope   event.Scope
	space   event.Space
	flags   event.Flags
	size    uint8
	barrier uint8
	place   uint32
	aux     uint32
	addr    uint64
	value   [4]uint64
}

func (a *account) Events(b *event.Batch) { b.Plain(&a.room, a.plain) }

func (a *account) plain(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind == event.BarrierDone || e.Kind == event.KernelBegin || e.Kind == event.KernelEnd {
			continue // the last lane to arrive makes it
		}
		if a.warps != nil {
			shown := *e
			if shown.Flags &^= event.FlagOld; e.Kind == event.Atomic { // what it writes depends on earlier ones
				shown.Flags &^= event.FlagValues
			}
			a.warps[e.Warp] = append(a.warps[e.Warp], fmt.Sprintf("%s at %d", eventText(b, &shown), e.Place))
		}
		if e.Kind >= event.Branch && e.Kind <= event.Reconverge {
			continue // an event of the warp
		}
		r := record{kind: e.Kind, order: e.Order, scope: e.Scope, space: e.Space, flags: e.Flags &^ (event.FlagScattered | event.FlagRows), size: e.Size,
			barrier: e.Barrier, place: e.Place, aux: e.Aux}
		for m := e.Mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			if e.Kind <= event.Atomic {
				r.addr = b.AddrOf(e, lane)
				r.value = [4]uint64{}
				if e.Flags&event.FlagWrite != 0 && a.needs&event.NeedOld != 0 {
					block := uint64(0)
					if e.Space == event.Shared {
						block = 1 + uint64(e.Warp/a.wpb)
					}
					a.overwrites(b, e, lane, block)
				}
				if e.Kind == event.Store { // what an atomic writes depends on earlier ones
					copy(r.value[:], b.ValueOf(e, lane))
				}
			}
			thread := uint64(e.Warp)*32 + uint64(lane)
			a.threads[thread] = append(a.threads[thread], r)
		}
	}
}

func (d *diff) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	if l.Places == nil {
		l.Places = places.New()
	}
	mem := l.Program.Memory
	before := mem.Snapshot()
	all := event.NeedGlobal | event.NeedShared | event.NeedSync | event.NeedValues | event.NeedOld
	if l.Schedule == engine.Lockstep {
		all |= event.NeedBranches
	}
	needs := all
	run := func(e engine.Engine, seed uint64, show bool) *account {
		a := &account{needs: needs, launch: &l.Launch, wpb: l.WarpsPerBlock(), threads: map[uint64][]record{}, mirror: map[cellAddr]cell{}}
		if needs&event.NeedBranches != 0 {
			a.warps = map[uint32][]string{}
		}
		copied := *l
		copied.Seed = seed
		if copied.MaxSteps == 0 {
			copied.MaxSteps = 2_000_000
		}
		copied.Sink, copied.Needs = a, needs
		if show && l.Sink != nil {
			user := l.Sink
			if l.Needs&event.NeedAgain == 0 {
				user = &plainly{to: l.Sink}
			}
			copied.Sink, copied.Needs = both{a, user}, l.Needs|copied.Needs
		}
		copied.OnFault = func(f engine.Fault) {
			a.faults = append(a.faults, f)
			if show && l.OnFault != nil {
				l.OnFault(f)
			}
		}
		copied.Printf = func(b []byte) {
			a.text += string(b)
			if show && l.Printf != nil {
				l.Printf(b)
			}
		}
		a.stats, a.err = e.Run(ctx, &copied)
		a.memory = mem.Contents()
		if a.wrong != "" {
			d.t.Errorf("%s on %T: %s", l.Kernel, e, a.wrong)
		}
		return a
	}
	want := run(engine.NewRef(), l.Seed, false)
	stable := (want.err == nil || d.exact) && !d.racy
	for seed := uint64(1); stable && seed < 4; seed++ {
		mem.Restore(before)
		other := run(engine.NewRef(), l.Seed+seed*7, false)
		other.warps = nil // the order of paths differs
		if s := want.differs(other, l); s != "" {
			d.t.Logf("ref by another seed: %s", s)
			stable = false
		}
	}
	if _, err := textOf(l, false); err != nil {
		d.t.Logf("%s runs on ref: %v", l.Kernel, err)
	}
	// Without events, accesses are executed differently.
	for _, needs = range []event.Needs{0, event.NeedGlobal, event.NeedShared} {
		mem.Restore(before)
		if bare := run(runner{raw: needs == event.NeedShared}, l.Seed, false); stable {
			bare.threads, bare.warps = want.threads, nil
			if s := want.differs(bare, l); s != "" {
				d.t.Errorf("%s, of the events only %x: %s", l.Kernel, needs, s)
			}
		}
	}
	needs = all
	mem.Restore(before)
	if raw := run(runner{raw: true}, l.Seed, false); stable {
		if s := want.differs(raw, l); s != "" {
			d.t.Errorf("%s, not optimised: %s", l.Kernel, s)
		}
	}
	mem.Restore(before)
	needs |= event.NeedAgain
	got := run(New(), l.Seed, true)
	if stable {
		d.strict++
		if s := want.differs(got, l); s != "" {
			d.t.Errorf("%s: %s", l.Kernel, s)
		}
	} else if (want.err == nil) != (got.err == nil) && !errors.Is(want.err, engine.ErrStopped) || want.err != nil && got.err != nil && !errors.Is(got.err, want.err) {
		d.t.Errorf("%s: ref ends with %v, warp with %v", l.Kernel, want.err, got.err)
	}
	return got.stats, got.err
}

type both [2]event.Sink

func (s both) Events(b *event.Batch) {
	for _, x := range s {
		x.Events(b)
	}
}

// plainly passes Batch.Plain to a sink.
type plainly struct {
	to   event.Sink
	room []event.Event
}

func (s *plainly) Events(b *event.Batch) { b.Plain(&s.room, s.to.Events) }

// differs describes how two accounts of a launch differ, or returns "" if they do not.
func (a *account) differs(b *account, l *engine.Launch) string {
	if !errors.Is(b.err, a.err) {
		return fmt.Sprintf("ref ends with %v, warp with %v", a.err, b.err)
	}
	if x, y := sortedLines(a.text), sortedLines(b.text); x != y {
		return fmt.Sprintf("ref prints %q, warp %q", x, y)
	}
	if x, y := faultText(l, a.faults), faultText(l, b.faults); x != y {
		return fmt.Sprintf("faults of ref:\n%sof warp:\n%s", x, y)
	}
	for _, thread := range slices.Sorted(maps.Keys(a.threads)) {
		if s := sequences(l, thread, a.threads[thread], b.threads[thread]); s != "" {
			return s
		}
	}
	if len(a.threads) != len(b.threads) {
		return fmt.Sprintf("%d threads have events on ref, %d on warp", len(a.threads), len(b.threads))
	}
	if !bytes.Equal(a.memory, b.memory) {
		at := 0
		for at < len(a.memory) && at < len(b.memory) && a.memory[at] == b.memory[at] {
			at++
		}
		return fmt.Sprintf("the memory differs from byte %d on: % x against % x", at, a.memory[at:min(at+16, len(a.memory))], b.memory[at:min(at+16, len(b.memory))])
	}
	return a.paths(b)
}

// paths describes how the events of warps in lockstep differ.
func (a *account) paths(b *account) string {
	if a.warps == nil || b.warps == nil {
		return ""
	}
	for _, w := range slices.Sorted(maps.Keys(a.warps)) {
		for i := range max(len(a.warps[w]), len(b.warps[w])) {
			x, y := "nothing", "nothing"
			if i < len(a.warps[w]) {
				x = a.warps[w][i]
			}
			if i < len(b.warps[w]) {
				y = b.warps[w][i]
			}
			if x != y {
				return fmt.Sprintf("event %d of warp %d is %s on ref, and %s on warp", i, w, x, y)
			}
		}
	}
	return ""
}

func sequences(l *engine.Launch, thread uint64, a, b []record) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("thread %d: warp has one event more: %s", thread, recordText(l, &b[i]))
		case i >= len(b):
			return fmt.Sprintf("thread %d: warp lacks event %s", thread, recordText(l, &a[i]))
		case a[i] != b[i]:
			return fmt.Sprintf("thread %d: event %d is\n%s on ref, and\n%s on warp", thread, i, recordText(l, &a[i]), recordText(l, &b[i]))
		}
	}
	return ""
}

func recordText(l *engine.Launch, r *record) string {
	place := "?"
	if fs := l.Places.Frames(r.place); len(fs) > 0 {
		place = fmt.Sprintf("%s:%d %s", fs[0].File, fs[0].Line, fs[0].Inst)
	}
	return fmt.Sprintf("%v %x+%d = %x flags %x at %s (%+v)", r.kind, r.addr, r.size, r.value, r.flags, place, *r)
}

func sortedLines(s string) string {
	lines := strings.SplitAfter(s, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func faultText(l *engine.Launch, fs []engine.Fault) string {
	var lines []string
	for _, f := range fs {
		place := uint32(0)
		if len(f.Stands) > 0 {
			place = f.Stands[0].Place
		}
		line := fmt.Sprintf("%s place %d warning %v count %d", f.Kind, place, f.Warning, f.Count)
		if l.WarpsPerBlock() == 1 && l.Grid.Count() == 1 { // otherwise another thread may have been the first
			line += " " + f.Message
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
