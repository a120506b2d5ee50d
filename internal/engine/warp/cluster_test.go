package warp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// clusterSync is cluster.sync().
const clusterSync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

// inClusters returns a function that gives the launches of a test clusters.
func inClusters(set func(l *engine.Launch), x, y uint32) func(l *engine.Launch) {
	return func(l *engine.Launch) {
		if set(l); y > 1 {
			l.Grid = event.Dim3{X: l.Grid.X / y, Y: y, Z: 1}
		}
		l.Cluster = event.Dim3{X: x, Y: y, Z: 1}
	}
}

// TestClusterRegisters compares the special registers of clusters with their definitions in the manual.
func TestClusterRegisters(t *testing.T) {
	names := []string{"%ctaid.x", "%ctaid.y", "%clusterid.x", "%clusterid.y", "%nclusterid.x", "%nclusterid.y", "%cluster_ctaid.x", "%cluster_ctaid.y",
		"%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_ctarank", "%cluster_nctarank"}
	var body strings.Builder
	for i, n := range names {
		fmt.Fprintf(&body, "mov.u32 %%r1, %s; st.global.u32 [%%rd1+%d], %%r1;\n", n, 4*i)
	}
	g := newRig(t, kernel("mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r2, %r2, %r3, %r4;\n"+
		"mul.wide.u32 %rd1, %r2, 128; add.u64 %rd1, %rd1, %out;\n"+
		"mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%rd1+64], %r1;\n"+body.String()))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		out := g.buffer(8 * 32)
		g.mustRun(launch{grid: 8, out: out, set: inClusters(set, 2, 2)})
		for i, block := range g.words(out, 8*32) {
			if i%32 != 0 {
				continue
			}
			w := g.words(out+uint64(4*i), 17)
			x, y := uint32(i/32%4), uint32(i/32/4)
			want := []uint32{x, y, x / 2, 0, 2, 1, x % 2, y, 2, 2, 1, x%2 + 2*y, 4}
			if !slices.Equal(w[:len(want)], want) || w[16] != 1 {
				t.Errorf("block %d (%d): %v, want %v", i/32, block, w, want)
			}
		}
	})
}

// TestClusterShared reads and updates the shared memory of peers by addresses of every kind.
func TestClusterShared(t *testing.T) {
	const from = ".shared .align 8 .b32 box[32];\n" +
		"mov.u32 %r1, box; mad.lo.u32 %r1, %tx, 4, %r1;\n" +
		"mov.u32 %r2, %cluster_ctarank; mad.lo.u32 %r3, %r2, 100, %tx; st.shared.u32 [%r1], %r3;\n" + clusterSync +
		"add.u32 %r4, %r2, 1; and.b32 %r4, %r4, 3;\n" // the next one's rank
	for _, c := range []struct {
		name, body string
		want       func(rank, lane uint32) uint32
	}{
		{"ld", "mapa.shared::cluster.u32 %r5, %r1, %r4; ld.shared::cluster.u32 %r6, [%r5];", func(k, l uint32) uint32 { return (k+1)%4*100 + l }},
		{"generic", "cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r4; ld.u32 %r6, [%rd2];", func(k, l uint32) uint32 { return (k+1)%4*100 + l }},
		{"itself", "mapa.shared::cluster.u32 %r5, %r1, %r2; ld.shared::cluster.u32 %r6, [%r5];", func(k, l uint32) uint32 { return k*100 + l }},
		{"rank", "mapa.shared::cluster.u32 %r5, %r1, %r4; getctarank.shared::cluster.u32 %r6, %r5; getctarank.shared::cluster.u32 %r5, %r1; mad.lo.u32 %r6, %r5, 10, %r6;",
			func(k, l uint32) uint32 { return k*10 + (k+1)%4 }},
		{"a rank for each lane", "and.b32 %r4, %tx, 3; mapa.shared::cluster.u32 %r5, %r1, %r4; ld.shared::cluster.u32 %r6, [%r5];", func(k, l uint32) uint32 { return l%4*100 + l }},
		{"atom", "mapa.shared::cluster.u32 %r5, %r1, %r4; atom.shared::cluster.add.u32 %r6, [%r5], 5;\n" + clusterSync + "ld.shared.u32 %r6, [%r1];",
			func(k, l uint32) uint32 { return k*100 + l + 5 }},
		{"st", "mapa.shared::cluster.u32 %r5, %r1, %r4; st.shared::cluster.u8 [%r5+1], 7;\n" + clusterSync + "ld.shared.u32 %r6, [%r1];",
			func(k, l uint32) uint32 { return (k*100+l)&^0xff00 | 0x700 }},
		{"isspacep", "cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1; mapa.u64 %rd2, %rd1, %r4; isspacep.shared::cta %p1, %rd2; isspacep.shared::cluster %p2, %rd2; isspacep.shared %p3, %rd1;" +
			"selp.u32 %r6, 1, 0, %p1; @%p2 add.u32 %r6, %r6, 2; @%p3 add.u32 %r6, %r6, 4; mapa.u64 %rd2, %rd1, %r2; isspacep.shared %p1, %rd2; @%p1 add.u32 %r6, %r6, 8;",
			func(k, l uint32) uint32 { return 14 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(from+c.body+"\n"+clusterSync+
				"mov.u32 %r7, %ctaid.x; mad.lo.u32 %r7, %r7, 32, %tx; mul.wide.u32 %rd4, %r7, 4; add.u64 %rd4, %rd4, %out; st.global.u32 [%rd4], %r6;"))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				out := g.buffer(8 * 32)
				g.mustRun(launch{grid: 8, out: out, set: inClusters(set, 4, 1)})
				for i, got := range g.words(out, 8*32) {
					if want := c.want(uint32(i)/32%4, uint32(i)%32); got != want {
						t.Fatalf("block %d, lane %d: %d, want %d", i/32, i%32, got, want)
					}
				}
			})
		})
	}
}

// TestClusterFaults checks the reports of errors with clusters.
func TestClusterFaults(t *testing.T) {
	const rank = ".shared .align 8 .b32 box[32]; mov.u32 %r1, box; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 0; mapa.shared::cluster.u32 %r3, %r1, 1;\n"
	for _, c := range []struct {
		name, body string
		kind       engine.FaultKind
		message    string
	}{
		{"gone", "@!%p1 ret; barrier.cluster.arrive; barrier.cluster.wait; ld.shared::cluster.u32 %r6, [%r3+4];", engine.PeerGone, "the shared memory of block (1,0,0) (box + 4), which has ended"},
		{"not started", "@%p1 st.shared::cluster.u32 [%r3+4], 1; barrier.cluster.arrive; barrier.cluster.wait;", engine.PeerEarly, "of block (1,0,0) of its cluster, which may not have started"},
		{"no such rank", "mapa.shared::cluster.u32 %r3, %r1, 2; ld.shared::cluster.u32 %r6, [%r3];", engine.OutOfBounds, "of rank 2 of the cluster, which has 2 blocks"},
		{"deadlock", "@%p1 bra L; barrier.cluster.arrive; barrier.cluster.wait; ret; L: bar.sync 0, 64;", engine.Deadlock, ""},
		{"no arrival", "barrier.cluster.wait;", engine.ClusterMisuse, "without barrier.cluster.arrive"},
		{"two arrivals", "barrier.cluster.arrive; barrier.cluster.arrive; barrier.cluster.wait;", engine.ClusterMisuse, "arrives at the barrier of its cluster again"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, kernel(rank+c.body))
			everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
				o := g.run(launch{grid: 2, out: g.buffer(64), set: inClusters(set, 2, 1)})
				if len(o.faults) == 0 || o.faults[0].Kind != c.kind || !strings.Contains(o.faults[0].Message, c.message) {
					t.Fatalf("%v, %+v", o.err, o.faults)
				}
				if c.kind == engine.Deadlock && !slices.ContainsFunc(o.faults[0].Stands, func(s engine.Stand) bool { return strings.Contains(s.Doing, "it lacks 32 of block (0,0,0)") }) {
					t.Errorf("%+v", o.faults[0].Stands)
				}
			})
		})
	}
}

// TestClusterPhases checks that a block that has exited is not waited for, and that phases follow each other.
func TestClusterPhases(t *testing.T) {
	g := newRig(t, kernel(".shared .align 8 .b32 box[4]; mov.u32 %r1, box; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r2, 3; @%p1 ret;\n"+
		"mov.u32 %r4, 0; mov.u32 %r9, 0; mapa.shared::cluster.u32 %r5, %r1, 0; setp.eq.u32 %p3, %tx, 0;\n"+
		"L: barrier.cluster.arrive.release; barrier.cluster.wait.acquire; @%p3 red.shared::cluster.add.u32 [%r5], 1; barrier.cluster.arrive; barrier.cluster.wait;\n"+
		"ld.shared::cluster.u32 %r6, [%r5]; add.u32 %r4, %r4, 1; mul.lo.u32 %r7, %r4, 3; setp.ne.u32 %p2, %r6, %r7; @%p2 add.u32 %r9, %r9, 1;\n"+
		"setp.lt.u32 %p2, %r4, 20; @%p2 bra L; "+clusterSync+"st.global.u32 [%mine], %r9;"))
	everySchedule(t, func(t *testing.T, set func(l *engine.Launch)) {
		out := g.buffer(8 * 64)
		g.mustRun(launch{grid: 8, block: 64, out: out, set: inClusters(set, 4, 1)})
		for i, got := range g.words(out, 64) {
			if got != 0 {
				t.Fatalf("thread %d saw %d wrong counts", i, got)
			}
		}
	})
}

// TestClusterShapes checks that shapes that the device does not support are refused.
func TestClusterShapes(t *testing.T) {
	g := newRig(t, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() { ret; }\n.visible .entry r() .explicitcluster .reqnctapercluster 2 { ret; }\n.visible .entry m() .maxclusterrank 4 { ret; }")
	for _, c := range []struct {
		kernel  string
		grid    int
		cluster event.Dim3
		wide    bool
		want    string
	}{
		{"k", 8, event.Dim3{}, false, ""},
		{"k", 8, event.Dim3{X: 8, Y: 1, Z: 1}, false, ""},
		{"k", 9, event.Dim3{X: 2, Y: 1, Z: 1}, false, "cudaErrorInvalidConfiguration: grid (9,1,1) is not a multiple"},
		{"k", 16, event.Dim3{X: 16, Y: 1, Z: 1}, false, "cudaErrorInvalidClusterSize: a cluster of (16,1,1) has 16 blocks, the device allows 1 to 8"},
		{"k", 16, event.Dim3{X: 16, Y: 1, Z: 1}, true, ""},
		{"k", 32, event.Dim3{X: 32, Y: 1, Z: 1}, true, "allows 1 to 16"},
		{"k", 8, event.Dim3{X: 2}, false, "cudaErrorInvalidClusterSize"},
		{"r", 8, event.Dim3{}, false, "cudaErrorInvalidConfiguration: the kernel is compiled for clusters of (2,1,1)"},
		{"r", 8, event.Dim3{X: 2, Y: 1, Z: 1}, false, ""},
		{"m", 8, event.Dim3{X: 8, Y: 1, Z: 1}, false, "cudaErrorInvalidClusterSize: a cluster of (8,1,1) has 8 blocks, the kernel is compiled for 4"},
	} {
		l := g.prepare(launch{kernel: c.kernel, grid: c.grid})
		l.Cluster, l.NonPortableCluster = c.cluster, c.wide
		err := engine.Check(l, engine.DefaultLimits())
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
