package gwcp

// This file is the brute-force side: the operations of threads as the definition sees them, and its relations as
// matrices.

type opKind int

const (
	opRead opKind = iota
	opWrite
	opAtomic
	opAcquire
	opRelease
	opArrive // at a barrier: first all participants arrive, then all depart
	opDepart
	opPost // publishes under a name
	opWait // receives what was last posted under it
)

type op struct {
	kind    opKind
	thread  int
	block   int
	device  bool // the scope is the device
	lock    int
	at, n   int // bytes accessed
	barrier int // number of the barrier, or of the post that a wait receives (-1: none)
	place   uint32
}

func (o *op) isAccess() bool { return o.kind <= opAtomic }

type matrix [][]bool

func newMatrix(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make([]bool, n)
	}
	return m
}

func overlapping(a, b *op) bool { return a.device || b.device || a.block == b.block }

// touches reports whether an operation accesses memory. Posts and waits do: they access flags.
func (o *op) touches() bool { return o.n > 0 }

func (o *op) writes() bool { return o.kind != opRead && o.kind != opWait }

func conflicting(a, b *op) bool {
	return a.thread != b.thread && a.touches() && b.touches() && (a.writes() || b.writes()) && a.at < b.at+b.n && b.at < a.at+a.n
}

// crit is a critical section.
type crit struct { // release is len(ops) while the section is open
	acquire, release int // release is len(ops) while open
	members          map[int]bool
}

// brute holds the relations of a trace.
type brute struct {
	ops   []op
	hb    matrix // reflexive
	order matrix // <=GWCP: GWCP, program order, and the order of barriers and posts
	crits []crit
}

func newBrute(ops []op) *brute {
	b := &brute{ops: ops, hb: newMatrix(len(ops))}
	b.happensBefore()
	b.sections()
	b.gwcp()
	return b
}

// hard reports whether a barrier or a post orders i directly before j.
func (b *brute) hard(i, j int) bool {
	x, y := &b.ops[i], &b.ops[j]
	return x.kind == opArrive && y.kind == opDepart && x.barrier == y.barrier || x.kind == opPost && y.kind == opWait && y.barrier == i
}

func (b *brute) happensBefore() {
	n := len(b.ops)
	for i := range b.ops {
		b.hb[i][i] = true
		for j := i + 1; j < n; j++ {
			x, y := &b.ops[i], &b.ops[j]
			b.hb[i][j] = x.thread == y.thread || b.hard(i, j) ||
				x.kind == opRelease && y.kind == opAcquire && x.lock == y.lock && overlapping(x, y)
		}
	}
	for k := range b.hb {
		for i := 0; i < k; i++ {
			if b.hb[i][k] {
				for j := k; j < n; j++ {
					b.hb[i][j] = b.hb[i][j] || b.hb[k][j]
				}
			}
		}
	}
}

// sections finds the critical sections.
func (b *brute) sections() {
	open := map[[2]int]int{} // thread, lock
	for i := range b.ops {
		o := &b.ops[i]
		k := [2]int{o.thread, o.lock}
		switch o.kind {
		case opAcquire:
			open[k] = len(b.crits)
			b.crits = append(b.crits, crit{i, len(b.ops), map[int]bool{}})
		case opRelease:
			if c, ok := open[k]; ok {
				b.crits[c].release = i
				delete(open, k)
			}
		}
	}
	for c := range b.crits {
		x := &b.crits[c]
		for j := x.acquire + 1; j < x.release && j < len(b.ops); j++ {
			if o := &b.ops[j]; o.thread == b.ops[x.acquire].thread && o.touches() {
				x.members[j] = true
			}
		}
	}
}

// gwcp computes definition 1 as algorithm 1 implements it. strict holds the order of rules (i) and (ii), composed with
// happens-before on both sides. soft holds the order of rule (iii), composed with program order before and
// happens-before after.
func (b *brute) gwcp() {
	n := len(b.ops)
	strict, soft := newMatrix(n), newMatrix(n)
	after := func(m matrix, i, j int) { // i precedes j and everything after j
		for k := j; k < n; k++ {
			m[i][k] = m[i][k] || b.hb[j][k]
		}
	}
	for i := range b.ops {
		for j := range b.ops {
			if b.hard(i, j) {
				for k := 0; k <= i; k++ {
					if b.ops[k].thread == b.ops[i].thread {
						after(soft, k, j)
					}
				}
			}
		}
	}
	// By composition, what soft-precedes the first end of a hard edge also soft-precedes the second.
	rule := func(r, e int) bool {
		if strict[r][e] {
			return false
		}
		for k := 0; k <= r; k++ {
			if b.hb[k][r] {
				after(strict, k, e)
			}
		}
		return true
	}
	for i := range b.crits {
		for j := range b.crits {
			x, y := &b.crits[i], &b.crits[j]
			if x.release == n || b.ops[x.acquire].lock != b.ops[y.acquire].lock || x.release > y.release || !overlapping(&b.ops[x.release], &b.ops[y.acquire]) {
				continue
			}
			for e := range y.members {
				for f := range x.members {
					if x.release < e && conflicting(&b.ops[e], &b.ops[f]) {
						rule(x.release, e)
					}
				}
			}
		}
	}
	b.joint(rule)
	for again := true; again; {
		again = false
		for i := range b.crits {
			for j := range b.crits {
				x, y := &b.crits[i], &b.crits[j]
				if i == j || y.release == n || x.release >= y.release || b.ops[x.acquire].lock != b.ops[y.acquire].lock ||
					!overlapping(&b.ops[x.release], &b.ops[y.release]) || b.ops[x.acquire].thread == b.ops[y.acquire].thread {
					continue
				}
				if strict[x.acquire][y.release] || soft[x.acquire][y.release] {
					again = rule(x.release, y.release) || again
				}
			}
		}
	}
	b.order = newMatrix(n)
	for i := range b.ops {
		for j := range b.ops {
			b.order[i][j] = strict[i][j] || soft[i][j] || i <= j && b.ops[i].thread == b.ops[j].thread
		}
	}
}

// joint orders a section whose owner arrives at a barrier after the earlier sections and before the later ones.
func (b *brute) joint(rule func(r, e int) bool) {
	for i := range b.crits {
		x := &b.crits[i]
		for k := x.acquire; k < x.release; k++ {
			if o := &b.ops[k]; o.kind != opArrive || o.thread != b.ops[x.acquire].thread {
				continue
			}
			for j := range b.crits {
				y := &b.crits[j]
				switch n := len(b.ops); {
				case b.ops[x.acquire].lock != b.ops[y.acquire].lock:
				case y.release < k && overlapping(&b.ops[y.release], &b.ops[x.acquire]):
					rule(y.release, k)
				case x.release < n && x.release < y.acquire && overlapping(&b.ops[x.release], &b.ops[y.acquire]):
					rule(x.release, y.acquire)
				}
			}
		}
	}
}

// verdict says how an access races.
type verdict struct{ observed, predicted bool }

// judge says how access i races with the last write of one of its bytes or, if it writes, with a read since then.
func (b *brute) judge(i int) (v verdict) {
	o := &b.ops[i]
	for at := o.at; at < o.at+o.n; at++ {
		for j := i - 1; j >= 0; j-- {
			x := &b.ops[j]
			if !x.isAccess() || at < x.at || at >= x.at+x.n {
				continue
			}
			safe := x.thread == o.thread || b.order[j][i] || x.kind == opAtomic && o.kind == opAtomic && overlapping(x, o) ||
				x.kind == opRead && o.kind == opRead
			if !safe {
				v.observed = v.observed || !b.hb[j][i]
				v.predicted = v.predicted || b.hb[j][i]
			}
			if x.kind != opRead {
				break
			}
		}
	}
	return v
}
