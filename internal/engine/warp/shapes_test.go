package warp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// shapeAddresses set %r10 to a lane's offset from the address: lines, rows, columns, permutations, and places that
// lanes share.
var shapeAddresses = []string{
	"shl.b32 %r10, %r9, 2;",                                                       // side by side
	"shl.b32 %r10, %r9, 3;",                                                       // by eights
	"shl.b32 %r10, %r9, 4;",                                                       // every second eight
	"sub.u32 %r10, 63, %r9; shl.b32 %r10, %r10, 3;",                               // backwards
	"mov.u32 %r10, 16;",                                                           // all at one place
	"shl.b32 %r10, %r1, 6; mad.lo.u32 %r10, %r0, 8, %r10;",                        // rows of eights with gaps
	"shl.b32 %r10, %r1, 7; mad.lo.u32 %r10, %r0, 4, %r10;",                        // rows of fours with gaps
	"shl.b32 %r10, %r0, 6; mad.lo.u32 %r10, %r1, 8, %r10;",                        // columns
	"shl.b32 %r10, %r0, 3;",                                                       // rows at one place
	"shl.b32 %r10, %r0, 2;",                                                       // and of fours
	"shl.b32 %r10, %r1, 3;",                                                       // a place for each row
	"shl.b32 %r10, %r1, 2;",                                                       //
	"xor.b32 %r10, %r9, 5; shl.b32 %r10, %r10, 3;",                                // a permutation
	"mul.lo.u32 %r10, %r9, %r9; and.b32 %r10, %r10, 7; shl.b32 %r10, %r10, 3;",    // places that some share
	"sub.u32 %r10, 7, %r1; shl.b32 %r10, %r10, 6; mad.lo.u32 %r10, %r0, 4, %r10;", // rows upwards
	"shr.u32 %r10, %r9, 1; shl.b32 %r10, %r10, 3;",                                // pairs
}

// shapeAccesses are accesses at address A in space S. %r20 to %r27 and %rd20 to %rd23 differ between lanes; %r28 and
// %rd28 do not.
var shapeAccesses = []string{
	"ld.S.u32 %r11, [A];", "ld.S.u32 %r11, [A+4];", "ld.S.s8 %r11, [A+1];", "ld.S.u8 %r11, [A];", "ld.S.u16 %r11, [A+2];", "ld.S.s16 %r11, [A];",
	"ld.S.u64 %rd11, [A];", "ld.S.v2.u32 {%r11, %r12}, [A];", "ld.S.s32 %rd11, [A];", "ld.volatile.S.u32 %r11, [A];",
	"st.S.u32 [A], %r20;", "st.S.u32 [A+4], %r28;", "st.S.u8 [A+3], %r21;", "st.S.u16 [A+2], %r22;", "st.S.u64 [A], %rd20;", "st.S.u64 [A], %rd28;",
	"st.S.v2.u32 [A], {%r23, %r28};", "st.S.u32 [A], %rd21;", "st.volatile.S.u32 [A+4], %r24;",
	"atom.S.add.u32 %r11, [A], %r20;", "atom.S.add.u64 %rd11, [A], %rd20;", "red.S.max.u32 [A+4], %r21;", "atom.S.exch.b32 %r11, [A], %r28;",
	"atom.S.cas.b32 %r11, [A], %r22, %r23;", "atom.S.cas.b64 %rd11, [A], %rd28, %rd20;", "atom.S.cas.b16 %rs1, [A+2], %rs2, %rs3;",
	"atom.S.min.s32 %r11, [A], %r24;", "red.S.add.f32 [A], %f1;", "red.S.inc.u32 [A], 5;",
}

// shapeKernel makes the accesses of one address by all lanes, by lanes that a guard selects, and in a branch. It makes
// them twice, so that the second time the contents of memory are known.
func shapeKernel(address, space string) string {
	var b strings.Builder
	b.WriteString(`	mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ntid.x; mad.lo.u32 %r9, %r1, %r2, %r0;
	mad.lo.u32 %r20, %r9, 7, 3; mul.lo.u32 %r21, %r20, %r20; xor.b32 %r22, %r21, 77; and.b32 %r22, %r22, 3; mov.u32 %r23, %r9; not.b32 %r24, %r21;
	cvt.u64.u32 %rd20, %r21; shl.b64 %rd20, %rd20, 21; not.b64 %rd21, %rd20; mov.u32 %r28, %n; cvt.u64.u32 %rd28, %n; cvt.u16.u32 %rs2, %r22; cvt.u16.u32 %rs3, %r9;
	cvt.rn.f32.u32 %f1, %r9; and.b32 %r3, %r9, 5; setp.eq.u32 %p1, %r3, 1; setp.lt.u32 %p2, %r9, 11;
	mov.u32 %r8, 0;
`)
	fmt.Fprintf(&b, "%s\n", address)
	a := "%rd10"
	if space == "shared" {
		b.WriteString("mov.u32 %r4, box; add.u32 %r10, %r10, %r4;\n")
		a = "%r10"
	} else {
		b.WriteString("cvt.u64.u32 %rd10, %r10; add.u64 %rd10, %rd10, %out;\n")
	}
	accesses := func(guard string) {
		for _, x := range shapeAccesses {
			b.WriteString(guard + strings.NewReplacer("S", space, "A", a).Replace(x) + "\n")
		}
	}
	b.WriteString("again:\n")
	accesses("")
	accesses("@!%p1 ")
	b.WriteString("@%p1 bra over;\n")
	accesses("")
	b.WriteString("over:\n@!%p2 bra on;\n")
	accesses("")
	b.WriteString("on:\nadd.u32 %r8, %r8, 1; setp.lt.u32 %p3, %r8, 3; @%p3 bra again;\n")
	return ".shared .align 16 .b8 box[2048];\n" + b.String()
}

// exactly records events as text, with all their fields and with series expanded.
type exactly struct {
	lines []string
	room  []event.Event
}

func (x *exactly) Events(b *event.Batch) {
	b.Plain(&x.room, func(b *event.Batch) {
		for i := range b.Events {
			e := &b.Events[i]
			x.lines = append(x.lines, fmt.Sprintf("%s flags %x at %d", eventText(b, e), e.Flags, e.Place))
		}
	})
}

// TestShapes checks that the events of the two engines are identical for one warp: whether addresses are a line, rows
// or scattered, which values are written, and which are overwritten.
func TestShapes(t *testing.T) {
	const all = event.NeedGlobal | event.NeedShared | event.NeedSync
	for i, address := range shapeAddresses {
		for j, space := range []string{"global", "shared"} {
			g := newRig(t, kernel(shapeKernel(address, space)))
			out := g.buffer(512)
			data, err := g.mem.Bytes(out, 2048)
			if err != nil {
				t.Fatal(err)
			}
			for k, block := range []event.Dim3{{X: 32, Y: 1, Z: 1}, {X: 16, Y: 2, Z: 1}, {X: 8, Y: 4, Z: 1}, {X: 5, Y: 5, Z: 1}} {
				if (i+j+k)%testsize.Of(4, 3, 1) != 0 {
					continue
				}
				for n, needs := range []event.Needs{all, all | event.NeedValues, all | event.NeedValues | event.NeedOld, event.NeedGlobal, event.NeedShared} {
					run := func(e engine.Engine, needs event.Needs) ([]string, []byte) {
						for at := 0; at < len(data); at += 4 {
							binary.LittleEndian.PutUint32(data[at:], uint32(at*at)&3)
						}
						l := g.prepare(launch{out: out, n: 2})
						l.ID, l.Block = 1, block
						x := &exactly{}
						l.Sink, l.Needs = x, needs
						l.OnFault = func(f engine.Fault) { x.lines = append(x.lines, fmt.Sprintf("%s %s", f.Kind, f.Message)) }
						if _, err := e.Run(t.Context(), l); err != nil {
							t.Fatal(err)
						}
						return x.lines, slices.Clone(data)
					}
					want, left := run(engine.NewRef(), needs)
					for _, e := range []struct {
						engine.Engine
						needs event.Needs
					}{{New(), needs}, {runner{raw: true}, needs | event.NeedAgain}, {New(), needs | event.NeedAgain}} {
						if (n == 0 || n > 2) && e.needs != needs {
							continue
						}
						got, after := run(e.Engine, e.needs)
						for i := range max(len(got), len(want)) {
							if i >= len(got) || i >= len(want) || got[i] != want[i] {
								t.Fatalf("%s of %s, block %v, needs %x: of %d and %d events number %d is\n%s on ref, and\n%s on warp", space, address, block, e.needs, len(want), len(got), i,
									slices.Concat(want[min(i, len(want)):], []string{"none"})[0], slices.Concat(got[min(i, len(got)):], []string{"none"})[0])
							}
						}
						if !slices.Equal(left, after) {
							t.Errorf("%s of %s, block %v, needs %x: the memory differs", space, address, block, e.needs)
						}
					}
				}
			}
		}
	}
}
