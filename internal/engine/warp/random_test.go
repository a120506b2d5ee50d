package warp

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
)

// A random program is structured control flow over four registers of a thread. It is written as PTX, and executed in Go
// thread by thread for comparison.
type stmt interface {
	ptx(p *printer)
	run(r *[4]uint32)
}

type printer struct {
	strings.Builder
	labels int
}

func (p *printer) label() string {
	p.labels++
	return fmt.Sprintf("L%d", p.labels)
}

// assign is d = a*m + b.
type assign struct {
	d, a, b int
	m       uint32
}

func (s assign) ptx(p *printer) {
	fmt.Fprintf(p, "mad.lo.u32 %%r%d, %%r%d, %d, %%r%d;\n", s.d, s.a, s.m, s.b)
}
func (s assign) run(r *[4]uint32) { r[s.d] = r[s.a]*s.m + r[s.b] }

// choice executes one of two bodies by a bit of a register.
type choice struct {
	reg, bit  int
	then, alt []stmt
}

func (s choice) ptx(p *printer) {
	alt, end := p.label(), p.label()
	fmt.Fprintf(p, "and.b32 %%r9, %%r%d, %d;\nsetp.eq.u32 %%p1, %%r9, 0;\n@%%p1 bra %s;\n", s.reg, 1<<s.bit, alt)
	for _, x := range s.then {
		x.ptx(p)
	}
	fmt.Fprintf(p, "bra %s;\n%s:\n", end, alt)
	for _, x := range s.alt {
		x.ptx(p)
	}
	fmt.Fprintf(p, "%s:\n", end)
}

func (s choice) run(r *[4]uint32) {
	body := s.then
	if r[s.reg]&(1<<s.bit) == 0 {
		body = s.alt
	}
	for _, x := range body {
		x.run(r)
	}
}

// loop executes its body up to 7 times, as three bits of a register say before the loop.
type loop struct {
	reg, depth int
	body       []stmt
}

func (s loop) ptx(p *printer) {
	head, end := p.label(), p.label()
	count := 10 + s.depth
	fmt.Fprintf(p, "and.b32 %%r%d, %%r%d, 7;\n%s:\nsetp.eq.u32 %%p1, %%r%d, 0;\n@%%p1 bra %s;\n", count, s.reg, head, count, end)
	for _, x := range s.body {
		x.ptx(p)
	}
	fmt.Fprintf(p, "sub.u32 %%r%d, %%r%d, 1;\nbra %s;\n%s:\n", count, count, head, end)
}

func (s loop) run(r *[4]uint32) {
	for n := r[s.reg] & 7; n > 0; n-- {
		for _, x := range s.body {
			x.run(r)
		}
	}
}

func randomBody(g *rand.Rand, depth int) []stmt {
	var body []stmt
	for range 1 + g.IntN(3) {
		switch k := g.IntN(6); {
		case k == 0 && depth < 4:
			body = append(body, loop{g.IntN(4), depth, randomBody(g, depth+1)})
		case k <= 2 && depth < 4:
			body = append(body, choice{g.IntN(4), g.IntN(8), randomBody(g, depth+1), randomBody(g, depth+1)})
		default:
			body = append(body, assign{g.IntN(4), g.IntN(4), g.IntN(4), g.Uint32()})
		}
	}
	return body
}

// TestRandomControlFlow compares every schedule with the program executed thread by thread. Without a seed the lanes
// must have reconverged at the end: the last store is one event for each warp.
func TestRandomControlFlow(t *testing.T) {
	const threads = 45
	for n := range uint64(60) {
		gen := rand.New(rand.NewPCG(n, 7))
		body := randomBody(gen, 0)
		p := &printer{}
		p.WriteString("mov.u32 %r0, %tx;\nmul.lo.u32 %r1, %tx, 40503;\nxor.b32 %r2, %tx, 0x155;\nmov.u32 %r3, 1;\n")
		for _, s := range body {
			s.ptx(p)
		}
		p.WriteString("xor.b32 %r0, %r0, %r1;\nadd.u32 %r0, %r0, %r2;\nxor.b32 %r0, %r0, %r3;\nst.global.u32 [%mine], %r0;\n")
		g := newRig(t, kernel(p.String()))
		for _, s := range []struct {
			schedule engine.Schedule
			seed     uint64
		}{{engine.Fair, 0}, {engine.Fair, 3}, {engine.PCT, 3}, {engine.Lockstep, 0}, {engine.Lockstep, 1}} {
			out := g.buffer(threads)
			o := g.mustRun(launch{block: threads, out: out, set: func(l *engine.Launch) { l.Schedule, l.Seed = s.schedule, s.seed }})
			for i, got := range g.words(out, threads) {
				r := [4]uint32{uint32(i), uint32(i) * 40503, uint32(i) ^ 0x155, 1}
				for _, x := range body {
					x.run(&r)
				}
				if want := (r[0] ^ r[1]) + r[2] ^ r[3]; got != want {
					t.Fatalf("program %d, schedule %v, thread %d: got %#x, want %#x\n%s", n, s, i, got, want, p.String())
				}
			}
			if stores := o.rec.count - 4; (s.seed == 0 || s.schedule == engine.Lockstep) && stores != 2 {
				t.Errorf("program %d, schedule %v: the last store took %d events\n%s", n, s, stores, p.String())
			}
		}
	}
}
