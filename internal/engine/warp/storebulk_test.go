package warp

import (
	"slices"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// storeBulkBody begins kernels of one thread with 64 words of shared memory, all 7, at %r1 and at the generic address
// %rd1.
const storeBulkBody = `
	.shared .align 32 .b8 tile[256];
	mov.u32 %r1, tile; mov.u32 %r2, 0; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;
fill:
	add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], 7; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, 256;
	@%p1 bra fill;
`

// storedBytes counts the bytes that stores to shared memory write, after the words of storeBulkBody.
type storedBytes struct{ n int }

func (s *storedBytes) Events(b *event.Batch) {
	for i := range b.Events {
		if e := &b.Events[i]; e.Kind == event.Store && e.Space == event.Shared {
			s.n += int(e.Size)
		}
	}
}

// TestStoreBulk checks that the bytes become zero, that other bytes do not change, and that each byte is in one event.
func TestStoreBulk(t *testing.T) {
	for _, c := range []struct {
		body     string
		from, to int // words
	}{
		{"st.bulk.weak.shared::cta [%r1], 64, 0;", 0, 16},
		{"st.bulk [%rd1+8], 72, 0;", 2, 20},
		{"mov.u64 %rd2, 256; st.bulk.weak [%rd1], %rd2, 0;", 0, 64},
		{"st.bulk.shared::cta [tile+248], 8, 0;", 62, 64},
		{"st.bulk.shared::cta [tile+8], 0, 0;", 2, 2},
	} {
		g := newRig(t, kernel(storeBulkBody+c.body+`
	mov.u32 %r2, 0; mov.u64 %rd3, %out;
copy:
	add.u32 %r3, %r1, %r2; ld.shared.u32 %r4, [%r3]; st.global.u32 [%rd3], %r4; add.u64 %rd3, %rd3, 4; add.u32 %r2, %r2, 4; setp.lt.u32 %p1, %r2, 256;
	@%p1 bra copy;`))
		out, stored := g.buffer(64), &storedBytes{}
		o := g.run(launch{block: 1, out: out, set: func(l *engine.Launch) { l.Sink = stored }})
		if o.err != nil || len(o.faults) > 0 {
			t.Fatal(c.body, o.err, o.faults)
		}
		want := slices.Repeat([]uint32{7}, 64)
		clear(want[c.from:c.to])
		if got := g.words(out, 64); !slices.Equal(got, want) {
			t.Errorf("%s: %d, want %d", c.body, got, want)
		}
		if n := 4 * (64 + c.to - c.from); stored.n != n {
			t.Errorf("%s: events of %d bytes, want %d", c.body, stored.n, n)
		}
	}
}

func TestStoreBulkFaults(t *testing.T) {
	for _, c := range []struct {
		body string
		kind engine.FaultKind
		text string
	}{
		{"st.bulk [%rd1], 12, 0;", engine.Misaligned, "is told to write 12 bytes at address 0x0: both must be multiples of 8"},
		{"st.bulk.shared::cta [%r1+4], 8, 0;", engine.Misaligned, "is told to write 8 bytes at address 0x4"},
		{"st.bulk.shared::cta [%r1+8], 256, 0;", engine.OutOfBounds, "writes 256 bytes at offset 0x8 of shared memory"},
		{"st.bulk [%out], 8, 0;", engine.OutOfBounds, "st.bulk writes shared memory alone"},
	} {
		g := newRig(t, kernel(storeBulkBody+c.body))
		g.run(launch{block: 1, out: g.buffer(64)}).wantFault(t, c.kind, c.text)
	}
}

// TestRestrictedFences checks that a fence with sync_restrict is the same as one without.
func TestRestrictedFences(t *testing.T) {
	events := func(body string) []string { return newRig(t, kernel(body)).mustRun(launch{}).rec.lines }
	for restricted, plain := range map[string]string{
		"fence.acquire.sync_restrict::shared::cluster.cluster;":                      "fence.acquire.cluster;",
		"fence.release.sync_restrict::shared::cta.cluster;":                          "fence.release.cluster;",
		"fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;": "fence.proxy.async;",
		"fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;":     "fence.proxy.async;",
	} {
		got, want := events(restricted), events(plain)
		if !slices.Equal(got, want) || slices.Equal(got, events("")) {
			t.Errorf("%s: %q, want %q", restricted, got, want)
		}
	}
}
