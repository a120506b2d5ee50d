package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/event"
)

// certain is a causality that leaves out what is assumed.
type certain struct{ *causality }

func (c certain) Events(b *event.Batch) {
	out := *b
	out.Events = nil
	for _, e := range b.Events {
		if !b.Hosts[e.Side].Assumed {
			out.Events = append(out.Events, e)
		}
	}
	c.causality.Events(&out)
}

// TestHostThreadOrder lets threads launch kernels in streams of their own, wait for some, and tell each other at random, and compares what comes
// before each launch with sets of launches.
func TestHostThreadOrder(t *testing.T) {
	const threads = 4
	for seed := uint64(0); seed < 300; seed++ {
		rng := rand.New(rand.NewPCG(seed, 18))
		s := newScript(t)
		s.c.dev.cfg.Sink = certain{s.log}
		var streams [threads]StreamID
		for i := range streams {
			streams[i] = s.stream(StreamNonBlocking)
		}
		// What threads do by the model: the launches each has waited for, or knows that others have, and those in its stream.
		var known, queued [threads]map[uint32]bool
		clocks, told, open := [threads][threads]uint64{}, [threads][threads]uint64{}, [threads]bool{}
		for i := range known {
			known[i], queued[i] = map[uint32]bool{}, map[uint32]bool{}
		}
		learned := map[int]map[uint32]bool{} // by object
		objects := [3][threads]uint64{}
		var launched uint32
		join := func(to, from map[uint32]bool) {
			for x := range from {
				to[x] = true
			}
		}
		call := func(i int) { // what the libraries do before a call
			var of []Closed
			for j := range threads {
				if j != i && clocks[i][j] > told[i][j] {
					of = append(of, Closed{uint32(j), clocks[i][j]})
					told[i][j] = clocks[i][j]
				}
			}
			s.c.Learn(uint32(100+i), uint32(i), false, clocks[i][i], of)
			s.c.speak(uint32(100 + i))
			open[i] = true
		}
		for range 60 {
			i, o := rng.IntN(threads), rng.IntN(3)
			switch rng.IntN(5) {
			case 0, 1:
				call(i)
				s.launch(streams[i], uint32(100+i))
				launched++
				join(queued[i], known[i])
				var want []uint32
				for x := range queued[i] {
					want = append(want, x)
				}
				slices.Sort(want)
				if got := sortedKeys(s.log.before[launched]); !slices.Equal(got, want) {
					t.Fatalf("seed %d: launch %d comes after %v, want %v", seed, launched, got, want)
				}
				queued[i][launched] = true
			case 2:
				call(i)
				s.must(s.c.SynchronizeStream(streams[i], uint32(100+i)))
				join(known[i], queued[i])
			case 3: // release
				if open[i] {
					clocks[i][i]++
					open[i] = false
				}
				for j := range threads {
					objects[o][j] = max(objects[o][j], clocks[i][j])
				}
				if learned[o] == nil {
					learned[o] = map[uint32]bool{}
				}
				join(learned[o], known[i])
			case 4: // acquire
				for j := range threads {
					clocks[i][j] = max(clocks[i][j], objects[o][j])
				}
				join(known[i], learned[o])
			}
		}
	}
}

// TestThreadAgain checks that a thread which has the id of one that ended gets a default stream of its own, for which a synchronisation of the
// device still waits, and that a query asks what any thread has waited for.
func TestThreadAgain(t *testing.T) {
	s := newScript(t)
	s.c.dev.cfg.Sink = certain{s.log}
	s.c.Learn(7, 0, false, 0, nil)
	s.c.speak(7)
	s.launch(StreamPerThread, 7)
	s.c.Learn(7, 1, false, 0, nil)
	s.c.speak(7)
	s.launch(StreamPerThread, 7)
	if got := sortedKeys(s.log.before[2]); len(got) > 0 {
		t.Errorf("the launch of the second thread comes after %v", got)
	}
	s.must(s.c.Synchronize())
	s.launch(s.stream(StreamNonBlocking), 7)
	if got := sortedKeys(s.log.before[3]); !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("a launch after a synchronisation comes after %v", got)
	}
	id := s.stream(StreamNonBlocking)
	s.launch(id, 7)
	s.must(s.c.SynchronizeStream(id, 7))
	s.c.Learn(8, 2, false, 0, nil)
	s.c.speak(8)
	s.must(s.c.QueryStream(id, 8)) // another thread has waited: it is ready
	if s.c.unawaited() {
		t.Error("there is work that no thread has waited for")
	}
}
