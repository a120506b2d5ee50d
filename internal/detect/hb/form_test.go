package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/oracle"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// regular makes a program whose warps do the same few things, each with a line of its own or of others, so that what
// was made of one line is made of others too, with barriers that order some of it.
func regular(pick func(n int) int) *event.Batch {
	s := &stream{}
	threads := uint32(32 << pick(3))
	blocks := uint32(1 + pick(3))
	s.begin(blocks, threads)
	warps := int(blocks * threads / 32)
	space := event.Global
	if pick(4) == 0 {
		space = event.Shared
	}
	access := func(place, warp, line int) {
		e := event.Event{Kind: event.Load, Flags: event.FlagRead, Space: space, Warp: uint32(warp), Place: uint32(1 + place), Mask: ^uint32(0),
			Addr: uint64(line%8) * 128, Stride: 4, Size: 4}
		switch place {
		case 1:
			e.Addr += 4
		case 2, 3, 4, 5:
			e.Kind, e.Flags = event.Store, event.FlagWrite
		}
		switch {
		case place == 5:
			e.Size, e.Mask = 8, 0xffff
			e.Stride = 8
		case pick(10) == 0:
			e.Mask = []uint32{0xffff, 0xffff0000, 0x55555555, 1, 1 << 31}[pick(5)]
			e.Addr += uint64(firstLane(e.Mask)) * 4
		}
		if e.Kind == event.Store {
			e.Flags |= event.FlagValues
			e.Val = uint32(len(s.Values))
			odd, kind := pick(32), pick(4)
			for l := 0; l < 32; l++ {
				if e.Mask>>uint(l)&1 != 0 {
					v := []uint64{0, 1, uint64(l), 0}[kind]
					if kind == 3 && l == odd {
						v = 1 << uint(8*pick(4))
					}
					s.Values = append(s.Values, v)
				}
			}
		}
		s.add(e)
	}
	for n := 4 + pick(24); n > 0; n-- {
		place, by, off := pick(6), []int{1, 1, 1, 1, 0, 2}[pick(6)], []int{0, 0, 0, 1, pick(8)}[pick(5)]
		switch pick(8) {
		case 0, 1, 2:
			if skip := uint32(pick(12)); true {
				for b := uint32(0); b < blocks; b++ {
					if b != skip {
						s.barrier(b, 10)
					}
				}
			}
		case 3:
			access(place, pick(warps), pick(8))
		default:
			skip := pick(12)
			for w := 0; w < warps; w++ {
				if w != skip {
					access(place, w, w*by+off)
				}
			}
		}
	}
	return &s.Batch
}

func firstLane(mask uint32) (n int) {
	for ; mask&1 == 0; mask >>= 1 {
		n++
	}
	return n
}

// TestForms compares lines that share forms with cells, and with the oracle where that is quick.
func TestForms(t *testing.T) {
	n := 6000
	if !testsize.Long() {
		n = 1500
	}
	clean, recalled, swept := 0, 0, 0
	for seed := 0; seed < n; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		plain := regular(rng.IntN)
		b := oracle.Remember(plain)
		differs := func(b *event.Batch) bool { return races(b, detect.ModelCUDA) != byCells(b, detect.ModelCUDA) }
		if differs(b) {
			b := oracle.Remember(oracle.Shrink(plain, func(b *event.Batch) bool { return differs(oracle.Remember(b)) }))
			t.Fatalf("seed %d: forms differ from cells\n%s\nforms:\n%s\n\ncells:\n%s", seed, oracle.Print(b), races(b, detect.ModelCUDA), byCells(b, detect.ModelCUDA))
		}
		if seed%50 == 0 && oracle.Size(b) < 1200 {
			compareWithOracle(t, b, detect.ModelCUDA, fmt.Sprint("regular ", seed))
		}
		if seed%4 != 0 {
			continue
		}
		d := New(detect.Config{})
		d.mem.forms.few = 1
		d.Events(b)
		swept += len(d.mem.forms.free)
		recalled += int(d.mem.words.used)
		if len(d.findings.Totals()) == 0 {
			clean++
		}
	}
	n /= 4 // of which this was counted
	t.Logf("%d programs, %d without a race, values of %d packs recalled, %d forms of no line", n, clean, recalled, swept)
	if clean < n/20 || recalled < n/20 || swept < n/20 {
		t.Error("nothing was tested")
	}
}

// TestFormsAndValues checks that what two stores of one line wrote does not decide about another line.
func TestFormsAndValues(t *testing.T) {
	s := &stream{}
	s.begin(4, 32)
	store := func(warp, place, line uint32, value uint64) {
		e := event.Event{Kind: event.Store, Flags: event.FlagWrite | event.FlagValues, Space: event.Global, Warp: warp, Place: place,
			Mask: ^uint32(0), Addr: heap + uint64(line)*128, Stride: 4, Size: 4, Val: uint32(len(s.Values))}
		for range 32 {
			s.Values = append(s.Values, value)
		}
		s.add(e)
	}
	store(0, 1, 0, 1)
	store(1, 1, 1, 2)
	store(2, 1, 2, 3)
	store(0, 1, 0, 1) // no change
	store(1, 1, 1, 1)
	store(2, 1, 2, 3)
	store(3, 2, 2, 3)
	b := oracle.Remember(&s.Batch)
	if got := compareWithOracle(t, b, detect.ModelCUDA, "no change"); got != "p1-p2 same-value count 32 bytes 128" {
		t.Error(got)
	}
	store(3, 3, 1, 1)
	b = oracle.Remember(&s.Batch)
	if got := compareWithOracle(t, b, detect.ModelCUDA, "change"); got != "p1-p2 same-value count 32 bytes 128\np1-p3 cross-block count 32 bytes 128" {
		t.Error(got)
	}
}

// TestStepsAreForgotten wants no step to outlive the classes and forms that it names, however many there were.
func TestStepsAreForgotten(t *testing.T) {
	for _, n := range []int{1, minSteps, minSteps + 1, minSteps + 2, 5*minSteps + 1, 5*minSteps + 2} {
		f := forms{steps: make([]step, minSteps)}
		for i := range n {
			f.remember(step{stepKey: stepKey{what: uint64(i)}, to: 1})
		}
		f.forget()
		for _, s := range f.steps {
			if s.to != 0 {
				t.Fatalf("of %d steps one is remembered", n)
			}
		}
	}
}

// TestWideInstructions has warps do the same, each in lines of its own, with an instruction that reaches few lines or many. Another warp
// then writes all these words: each races.
func TestWideInstructions(t *testing.T) {
	for _, stride := range []int64{4, 8, 16, 32, 64, 100} {
		s := &stream{}
		s.begin(5, 32)
		for warp := range uint32(4) {
			s.access(event.Store, event.Global, warp, 1, heap+uint64(warp)*128*uint64(stride/4), stride)
		}
		for warp := range uint64(4) {
			s.access(event.Store, event.Global, 4, 2, heap+warp*128*uint64(stride/4), stride)
		}
		s.end()
		got := compareWithOracle(t, &s.Batch, detect.ModelCUDA, fmt.Sprint("stride ", stride))
		if want := "p1-p2 cross-block count 128 bytes 512"; got != want {
			t.Errorf("stride %d: got %q, want %q", stride, got, want)
		}
	}
}

// TestHabitsAndFreedMemory checks that an instruction goes on in the new pages of memory that was freed and allocated again
// while its launch ran.
func TestHabitsAndFreedMemory(t *testing.T) {
	s := &stream{}
	s.begin(1, 128)
	reuse := func(kind event.HostKind) {
		s.Hosts = append(s.Hosts, event.HostOp{Kind: kind, Agent: 1, Addr: heap, Size: 4096})
		s.Events = append(s.Events, event.Event{Kind: event.Host, Side: uint32(len(s.Hosts) - 1)})
	}
	for line := range uint64(4) {
		s.access(event.Load, event.Global, 0, 1, heap+128*line, 4)
	}
	reuse(event.HostFree)
	reuse(event.HostAlloc)
	for line := range uint64(4) {
		s.access(event.Load, event.Global, 1, 1, heap+128*line, 4)
	}
	for line := range uint64(4) {
		s.access(event.Store, event.Global, 2, 2, heap+128*line, 4)
	}
	if got := races(&s.Batch, detect.ModelCUDA); got != byCells(&s.Batch, detect.ModelCUDA) || got == "" {
		t.Errorf("got %q, want %q", got, byCells(&s.Batch, detect.ModelCUDA))
	}
}
