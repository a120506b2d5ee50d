package gwcp

import "testing"

// TestFences checks each half of a fence against the PTX manual ("Memory Consistency Model", Release and Acquire
// Patterns): a release pattern is a fence.release (or .acq_rel, .sc) before a strong write, an acquire pattern a strong
// read before a fence.acquire (or .acq_rel, .sc). A fence of the other half forms no pattern.
func TestFences(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"fence.release, then fence.acquire", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq
			1.0.0 wr a`, ""},
		{"fence.acq_rel on both sides", `
			0.0.0 wr a
			0.0.0 frelacq
			0.0.0 add f
			1.0.0 add f
			1.0.0 frelacq
			1.0.0 wr a`, ""},
		{"fence.acquire releases nothing", `
			0.0.0 wr a
			0.0.0 facq
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq
			1.0.0 wr a`, "1-6"},
		{"fence.release acquires nothing", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 add f
			1.0.0 frel
			1.0.0 wr a`, "1-6"},
		{"both swapped", `
			0.0.0 wr a
			0.0.0 facq
			0.0.0 add f
			1.0.0 add f
			1.0.0 frel
			1.0.0 wr a`, "1-6"},
		{"a release pattern that an acquire operation observes", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 wait f
			1.0.0 wr a`, ""},
		{"a release operation that an acquire pattern observes", `
			0.0.0 wr a
			0.0.0 post f
			1.0.0 vrd f
			1.0.0 facq
			1.0.0 wr a`, "2-3"},
		{"fence.acquire between does not end what was released before", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 facq
			0.0.0 add f
			1.0.0 add f
			1.0.0 frel
			1.0.0 facq
			1.0.0 wr a`, ""},
		{"fence.release of the block, observed in another", `
			0.0.0 wr a
			0.0.0 frel cta
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq
			1.0.0 wr a`, "1-6"},
		{"fence.acquire of the block, of another's release", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq cta
			1.0.0 wr a`, "1-6"},
		{"a wider fence later acquires what the narrow one could not", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq cta
			1.0.0 facq
			1.0.0 wr a`, ""},
		{"halves of the block within it", `
			0.0.0 wr a
			0.0.0 frel cta
			0.0.0 add f cta
			0.1.0 add f cta
			0.1.0 facq cta
			0.1.0 wr a`, ""},
		{"a strong write of the block is not observed in another", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f cta
			1.0.0 vrd f
			1.0.0 facq
			1.0.0 wr a`, "1-6 3-4"},
		{"what comes after the fence is not released", `
			0.0.0 frel
			0.0.0 wr a
			0.0.0 add f
			1.0.0 add f
			1.0.0 facq
			1.0.0 wr a`, "2-6"},
		{"nor what comes between two, by the first of them", `
			0.0.0 fence
			0.0.0 wr a
			0.0.0 fence cta
			0.0.0 add f
			1.0.0 add f
			1.0.0 fence
			1.0.0 wr a`, "2-7"},
		{"what is read after the fence is not acquired", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.0 facq
			1.0.0 add f
			1.0.0 wr a`, "1-6"},
		{"a fence is its lane's", `
			0.0.1 wr a
			0.0.0 frel
			0.0.1 add f
			1.0.0 add f
			1.0.0 facq
			1.0.0 wr a`, "1-6"},
		{"on the other side too", `
			0.0.0 wr a
			0.0.0 frel
			0.0.0 add f
			1.0.1 add f
			1.0.0 facq
			1.0.1 wr a`, "1-6"},
		{"a read-modify-write carries on what was released before it", `
			0.0.0 wr a
			0.0.0 fence
			0.0.0 add f
			1.0.0 add f
			2.0.0 add f
			2.0.0 fence
			2.0.0 wr a`, ""},
		{"a strong write does not", `
			0.0.0 wr a
			0.0.0 fence
			0.0.0 lwr f
			1.0.0 lwr f
			2.0.0 lrd f
			2.0.0 fence
			2.0.0 wr a`, "1-7"},
		{"what was released before is gone with it", `
			0.0.0 wr a
			0.0.0 post f
			1.0.0 post f
			2.0.0 wait f
			2.0.0 wr a`, "1-5"},
		{"what warps have fenced is theirs together after a barrier", `
			0.0.0 wr a
			0.0.0 fence
			0.0.0 sync
			0.1.0 wr b
			0.1.0 fence
			0.1.0 sync
			0.0.0 bar
			0.0.0 add f
			1.0.0 add f
			1.0.0 fence
			1.0.0 wr a
			1.0.0 wr b`, ""},
		{"what they have fenced of the block reaches no other", `
			0.0.0 wr a
			0.0.0 fence cta
			0.0.0 sync
			0.1.0 wr b
			0.1.0 fence
			0.1.0 sync
			0.0.0 bar
			0.0.0 add f
			1.0.0 add f
			1.0.0 fence
			1.0.0 wr a
			1.0.0 wr b`, "1-11"},
		{"what they have observed is theirs together", `
			0.0.0 wr a
			0.0.0 fence
			0.0.0 add f
			1.0.0 add f
			1.0.0 bar
			1.1.0 fence
			1.1.0 wr a`, ""},
		{"but not before a fence", `
			0.0.0 wr a
			0.0.0 fence
			0.0.0 add f
			1.0.0 add f
			1.0.0 bar
			1.1.0 wr a`, "1-6"},
		{"a strong write comes before what follows its strong reader", `
			0.0.0 add f
			1.0.0 lrd f
			1.0.0 wr f`, ""},
		{"a reader of the block does not observe another's", `
			0.0.0 add f
			1.0.0 lrd f cta
			1.0.0 wr f`, "1-3"},
		{"nor a reader of the device what is of a block", `
			0.0.0 add f cta
			1.0.0 lrd f
			1.0.0 wr f`, "1-3"},
		{"both of the block, in it", `
			0.0.0 add f cta
			0.1.0 lrd f cta
			0.1.0 wr f`, ""},
		{"a weak reader observes nothing", `
			0.0.0 add f
			1.0.0 rd f
			1.0.0 wr f`, "1-2 1-3"},
		{"fence.acquire completes the acquire of a lock, fence.release its release", `
			0.0.0 wr a
			0.0.0 cas m
			0.0.0 facq
			0.0.0 frel
			0.0.0 exch m
			1.0.0 cas m
			1.0.0 facq
			1.0.0 frel
			1.0.0 exch m
			1.0.0 wr a`, "1-10?"},
		{"a compare-and-swap and fence.release are no acquire of a lock", `
			0.0.0 cas m
			0.0.0 facq
			0.0.0 wr a
			0.0.0 frel
			0.0.0 exch m
			1.0.0 cas m
			1.0.0 frel
			1.0.0 wr a
			1.0.0 frel
			1.0.0 exch m`, "3-8"},
		{"a second that takes it while the first has it: no lock from then on", `
			0.0.0 cas m
			0.0.0 fence
			1.0.0 wr a
			1.0.0 cas m
			1.0.0 fence
			1.0.0 fence
			1.0.0 exch m
			0.1.0 cas m
			0.1.0 fence
			0.1.0 fence
			0.1.0 exch m
			0.1.0 wr a`, ""},
		{"with the acquire in the operation", `
			0.0.0 casacq m
			1.0.0 wr a
			1.0.0 casacq m
			1.0.0 fence
			1.0.0 exch m
			0.1.0 casacq m
			0.1.0 fence
			0.1.0 exch m
			0.1.0 wr a`, ""},
		{"a section of one at a time is a lock", `
			1.0.0 wr a
			1.0.0 cas m
			1.0.0 fence
			1.0.0 fence
			1.0.0 exch m
			0.1.0 cas m
			0.1.0 fence
			0.1.0 fence
			0.1.0 exch m
			0.1.0 wr a`, "1-10?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, compress := range []string{"on", "off"} {
				if got := found(stream(t, tt.text), map[string]string{"compress": compress}); got != tt.want {
					t.Errorf("compress=%s: found %q, want %q", compress, got, tt.want)
				}
			}
		})
	}
}

// TestSectionsOfAll checks that a section whose owner meets others at a barrier belongs to all of them. It comes after
// the earlier sections of the lock, and before the later ones, by hard edges, which carry all that happens before.
func TestSectionsOfAll(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"the release orders what the owner did since the barrier", `
			1.0.0 acq m
			1.0.0 bar
			1.0.0 wr c
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 rel m
			2.0.0 rd c`, ""},
		{"a section of one thread does not", `
			1.0.0 acq m
			1.0.0 wr c
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 rel m
			2.0.0 rd c`, "2-6?"},
		{"a barrier before the section makes it no section of all", `
			1.0.0 bar
			1.0.0 acq m
			1.0.0 wr c
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 rel m
			2.0.0 rd c`, "3-7?"},
		{"what happens before it comes with the release", `
			0.0.0 wr a
			0.0.0 acq n
			0.0.0 rel n
			1.0.0 acq n
			1.0.0 rel n
			1.0.0 acq m
			1.0.0 bar
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 rd a
			2.0.0 rel m`, ""},
		{"what happens before the earlier section comes to those who meet", `
			0.0.0 wr a
			0.0.0 acq n
			0.0.0 rel n
			1.0.0 acq n
			1.0.0 rel n
			1.0.0 acq m
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 bar
			2.1.0 rd a
			2.0.0 bar
			2.0.0 rel m`, ""},
		{"a barrier of the warp", `
			1.0.0 acq m
			1.0.0 sync
			1.0.0 wr c
			1.0.0 rel m
			2.0.0 acq m
			2.0.0 rel m
			2.0.0 rd c`, ""},
		{"not across scopes that do not overlap", `
			1.0.0 acq m cta
			1.0.0 bar
			1.0.0 wr c
			1.0.0 rel m cta
			2.0.0 acq m cta
			2.0.0 rel m cta
			2.0.0 rd c`, "3-7 4-5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, compress := range []string{"on", "off"} {
				if got := found(stream(t, tt.text), map[string]string{"compress": compress}); got != tt.want {
					t.Errorf("compress=%s: found %q, want %q", compress, got, tt.want)
				}
			}
		})
	}
}
