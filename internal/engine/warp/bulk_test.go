package warp

import (
	"fmt"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// bulkBody begins kernels with 128 bytes of global memory at %rd1, words 100 + l, and 128 bytes of shared memory at
// %r1, words 200 + l. Each is followed by as many words 7. Lane 0 (%p1) has initialised a barrier for one arrival at
// %r6.
const bulkBody = `
	.shared .align 128 .b8 tile[256];
	.shared .align 8 .b64 bar;
	mov.u32 %r1, tile;
	mov.u32 %r6, bar;
	mov.u64 %rd1, %out;
	add.u64 %rd1, %rd1, 512;
	setp.eq.u32 %p1, %tx, 0;
	mad.lo.u32 %r2, %tx, 4, %r1;
	add.u32 %r3, %tx, 200; st.shared.u32 [%r2], %r3;
	mov.u32 %r4, 7; st.shared.u32 [%r2+128], %r4;
	add.u32 %r3, %tx, 100; st.global.u32 [%mine+512], %r3; st.global.u32 [%mine+640], %r4;
	@%p1 mbarrier.init.shared.b64 [%r6], 1;
	bar.sync 0;
`

// bulkWords are the operations in the tests of bulk copies.
var bulkWords = strings.NewReplacer(
	"IN ", "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+128], [%rd1], ",
	"OUT ", "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+128], [%r1], ",
	"BAR", ", [%r6];",
	"EXPECT ", "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r6], ",
	"TEST", "mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 0;",
	"COMMIT", "cp.async.bulk.commit_group;",
	"WAIT ", "cp.async.bulk.wait_group ",
	"READ ", "cp.async.bulk.wait_group.read ",
	"CHANGE", "st.shared.u32 [%r2], 9;",
)

// TestBulk checks that with seed 0 bulk copies are performed when their barrier is tested, or when their group is
// waited for.
func TestBulk(t *testing.T) {
	const seven = 7
	for _, c := range []struct {
		name, body    string
		shared, other uint32 // base of the words after the source, in shared and global memory; 7 for words 7
		words         int    // number of copied words
		outlives      string // what a copy may do when the block ends
	}{
		{"no wait", "IN 128 BAR EXPECT 128;", seven, seven, 0, "write"},
		{"tested", "EXPECT 128; IN 128 BAR TEST", 100, seven, 32, ""},
		{"tested before it is expected", "IN 64 BAR TEST", 100, seven, 16, ""},
		{"in the same block", "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1+128], [%r1], 128 BAR TEST", 200, seven, 32, ""},
		{"to shared::cta", "@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1+128], [%rd1], 32, [%r6], 0; TEST", 100, seven, 8, ""},
		{"out, no wait", "OUT 128; COMMIT", seven, 200, 32, "read"},
		{"out, not even committed", "OUT 128;", seven, 200, 32, "read"},
		{"out", "OUT 128; COMMIT WAIT 0;", seven, 200, 32, ""},
		{"wait before commit", "OUT 128; WAIT 0; COMMIT CHANGE", seven, 0xffff, 32, "read"},
		{"the last group", "OUT 128; COMMIT WAIT 1; CHANGE", seven, 0xffff, 32, "read"},
		{"the group before the last", "OUT 16; COMMIT @%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd1+256], [%r1+64], 64; COMMIT WAIT 1; CHANGE", seven, 200, 4, "read"},
		{"groups of copies are others", "OUT 128; COMMIT cp.async.wait_all; cp.async.wait_group 0;", seven, 200, 32, "read"},
		{"read", "OUT 128; COMMIT READ 0; CHANGE", seven, 200, 32, ""},
		{"the source changes too early", "OUT 128; COMMIT CHANGE WAIT 0;", seven, 0xffff, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(bulkBody+bulkWords.Replace(c.body)+`
	bar.warp.sync -1;
	ld.shared.u32 %r5, [%r2+128];
	st.global.u32 [%mine], %r5;`))
			out := g.buffer(512)
			o := g.run(launch{out: out, set: func(l *engine.Launch) { l.Needs |= event.NeedValues | event.NeedOld }})
			outlives := ""
			for _, f := range o.faults {
				if outlives = f.Message; f.Kind != engine.CopyOutlives || !f.Warning || len(f.Stands) != 1 {
					t.Errorf("fault: %+v", f)
				}
			}
			if o.err != nil || len(o.faults) > 1 || !strings.Contains(outlives, c.outlives) || (outlives == "") != (c.outlives == "") {
				t.Fatalf("%v; faults %v, want one of a copy that may still %q", o.err, o.faults, c.outlives)
			}
			got := g.words(out, 512)
			for l := range 32 {
				wants := func(base uint32) uint32 {
					switch {
					case base == 0xffff:
						return 9
					case base == seven || l >= c.words:
						return seven
					}
					return base + uint32(l)
				}
				if v := wants(c.shared); got[l] != v {
					t.Fatalf("lane %d reads %d from shared memory, want %d", l, got[l], v)
				}
				if v := wants(c.other); got[160+l] != v {
					t.Fatalf("word %d of global memory is %d, want %d", l, got[160+l], v)
				}
			}
		})
	}
}

// TestBulkPhase checks that the phase of the barrier is complete when all its bytes have arrived, under every schedule,
// whoever waits.
func TestBulkPhase(t *testing.T) {
	g := newRig(t, kernel(bulkBody+bulkWords.Replace("EXPECT 192; IN 64 BAR IN 128 BAR\nagain: TEST\n@!%p2 bra again;")+`
	ld.shared.u32 %r5, [%r2+128];
	mbarrier.try_wait.parity.shared.b64 %p2, [%r6], 1;
	@%p2 add.u32 %r5, %r5, 1000;
	st.global.u32 [%mine], %r5;`))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		g.t = t
		out := g.buffer(512)
		g.mustRun(launch{out: out, set: set})
		for l, v := range g.words(out, 32) {
			if v != uint32(100+l) {
				t.Errorf("lane %d: %d", l, v)
			}
		}
	})
}

// TestBulkEvents checks the events of the two halves of a copy and of its completion.
func TestBulkEvents(t *testing.T) {
	g := newRig(t, kernel(bulkBody+bulkWords.Replace("fence.proxy.async.shared::cta; OUT 64; COMMIT READ 0; WAIT 0; IN 48 BAR EXPECT 48; TEST")))
	k := &kinds{}
	g.mustRun(launch{out: g.buffer(512), set: func(l *engine.Launch) { l.Sink = k }})
	want := "proxy-fence 0 0 0, bulk 0 64 0, bulk 640 64 0, bulk-commit 0 0 0, bulk-wait 0 0 0, bulk-wait 0 0 0, bulk 512 48 1, bulk 128 48 1, bulk-done 256 0 1, mbarrier-done 256 0 0"
	if got := strings.Join(k.list, ", "); got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
}

// TestBulkFaults checks invalid operands of bulk copies.
func TestBulkFaults(t *testing.T) {
	for _, c := range []struct {
		body string
		kind engine.FaultKind
		text string
	}{
		{"IN 24 BAR", engine.Misaligned, "is told to copy 24 bytes: the number must be a multiple of 16"},
		{"IN 0 BAR", engine.Misaligned, "is told to copy 0 bytes"},
		{"add.u32 %r1, %r1, 8; IN 16 BAR", engine.Misaligned, "is given address 0x88 of shared memory, which is not a multiple of 16"},
		{"add.u64 %rd1, %rd1, 4; OUT 16;", engine.Misaligned, "of global memory, which is not a multiple of 16"},
		{"IN 256 BAR", engine.OutOfBounds, "writes 256 bytes at offset 0x80 of shared memory"},
		{"OUT 4096;", engine.OutOfBounds, "reads 4096 bytes at offset 0x0 of shared memory"},
		{"add.u64 %rd1, %rd1, 1472; IN 128 BAR", engine.OutOfBounds, "reads 128 bytes at"},
		{"add.u32 %r6, %r6, 8; IN 16 BAR", engine.MbarrierEarly, "is given an object as mbarrier that was not initialised"},
		{"@%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1+128], [%rd1], 16, 0, 16, [%r6];", engine.Misaligned,
			"is told to ignore 16 bytes: up to 15 can be, at each end"},
		{"add.u64 %rd1, %rd1, 4; @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1+128], [%rd1], 16, 4, 0, [%r6];", engine.Misaligned,
			"of global memory, which is not a multiple of 16"},
	} {
		g := newRig(t, kernel(bulkBody+bulkWords.Replace(c.body)))
		if f := g.run(launch{out: g.buffer(512)}).wantFault(t, c.kind, c.text); f.Stands[0].Thread.X != 0 {
			t.Errorf("%s: %+v", c.body, f)
		}
	}
}

// kinds records the events of copies: kind, address in the buffer or in shared memory, bytes, and whether a barrier
// tracks them.
type kinds struct{ list []string }

func (k *kinds) Events(b *event.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		if e.Kind >= event.CopyCommit && e.Kind <= event.ProxyFence {
			number := e.Barrier
			if e.Kind == event.BulkDone {
				number = uint8(e.Stride)
			}
			k.list = append(k.list, fmt.Sprintf("%s %d %d %d", e.Kind, e.Addr%4096, e.Aux, number))
		}
	}
}

// TestBulkPieces checks that bytes that a copy omits are not copied, and may be inaccessible for the thread.
func TestBulkPieces(t *testing.T) {
	const ignore = "EXPECT 32; @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob"
	for _, c := range []struct {
		name, body    string
		shared, other string // the words of lanes 0 to 7; 7 if nothing is copied
	}{
		{"ends", ignore + " [%r1+128], [%rd1], 32, 4, 9, [%r6]; TEST", "[7 101 102 103 104 105 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"ends, with a policy", ignore + ".L2::cache_hint [%r1+128], [%rd1], 32, 0, 12, [%r6], %rd1; TEST", "[100 101 102 103 104 7 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"ends outside", ignore + " [%r1+224], [%rd2], 32, 0, 12, [%r6]; TEST", "[7 7 7 7 7 7 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"nothing is left", "EXPECT 16; @%p1 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.ignore_oob [%r1+128], [%rd1], 16, 8, 8, [%r6]; TEST",
			"[7 7 7 7 7 7 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"mask", "@%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd1+128], [%r1], 32, %rs1; COMMIT WAIT 0;",
			"[7 7 7 7 7 7 7 7]", "[7 201 202 7 7 205 206 7]"},
		{"mask, with a policy", "@%p1 cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%rd1+128], [%r1], 16, %rd1, %rs1; COMMIT WAIT 0;",
			"[7 7 7 7 7 7 7 7]", "[7 201 202 7 7 7 7 7]"},
		{"mask, the rest outside", "@%p1 cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2+16], [%r1], 16, 15; COMMIT WAIT 0;",
			"[7 7 7 7 7 7 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"reduction", "EXPECT 16; @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r1+128], [%r1], 16, [%r6]; TEST",
			"[207 208 209 210 7 7 7 7]", "[7 7 7 7 7 7 7 7]"},
		{"reduction to the least", "EXPECT 16; @%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.s32 [%r1+144], [%r1], 16, [%r6]; TEST",
			"[7 7 7 7 7 7 7 7]", "[7 7 7 7 7 7 7 7]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(bulkBody+"mov.b16 %rs1, 0x0ff0; add.u64 %rd2, %rd1, 1504;"+bulkWords.Replace(c.body)+`
	bar.warp.sync -1;
	ld.shared.u32 %r5, [%r2+128];
	st.global.u32 [%mine], %r5;`))
			out := g.buffer(509) // 2036 bytes: %rd2 is 20 bytes before the end
			o := g.run(launch{out: out})
			if o.err != nil || len(o.faults) > 0 {
				t.Fatal(o.err, o.faults)
			}
			got := g.words(out, 200)
			if s := fmt.Sprint(got[:8]); s != c.shared {
				t.Errorf("shared memory has %s, want %s", s, c.shared)
			}
			if s := fmt.Sprint(got[160:168]); s != c.other {
				t.Errorf("global memory has %s, want %s", s, c.other)
			}
		})
	}
}
