package programs

// List returns the programs.
func List() []*Program {
	return []*Program{
		{Name: "options", Doc: "prices of options: blocks of inputs that one thread wrote, results of one's own, in rounds with a barrier", prepare: optionsInput, body: options, unit: 8 * optionsN},
		{Name: "sor", Doc: "successive over-relaxation: a red-black grid in strips, a barrier after each colour", body: sor, unit: 6 * sorN * sorN},
		{Name: "lufact", Doc: "LU factorisation: all read the column of the pivot, each changes its own columns", body: lufact, unit: 3 * luN * luN * luN / 3},
		{Name: "montecarlo", Doc: "tasks from an atomic counter, tables that are only read, results under a lock", prepare: monteInput, body: montecarlo, unit: 16 * monteSteps * 7 / 2},
		{Name: "sparsemat", Doc: "sparse matrix times vector: a shared vector read in no order, rows of one's own", prepare: sparseInput, body: sparsemat, unit: sparseRows * 26},
		{Name: "raycast", Doc: "a ray caster: a tree that is only read, tiles from an atomic counter", prepare: rayInput, body: raycast, unit: 64 * 260},
		{Name: "pipeline", Doc: "stages that hand buffers over through queues with a lock each", body: pipeline, unit: 64 * 4 * 80},
		{Name: "btree", Doc: "a search tree: look-ups and inserts from the root with a lock on each node, hand over hand", body: btree, unit: 16 * 64 * 34},
		{Name: "fluid", Doc: "particles in cells: a lock of each cell for every contribution, so that epochs are short", body: fluid, unit: 16 * 64 * 8 * 6},
		{Name: "frames", Doc: "a video encoder: each row of blocks follows the row above, which an atomic counter tells of", body: frames, unit: 16 * 40 * 50},
	}
}

// part returns the range of n items that belongs to the thread.
func (t *thread) part(n int) (from, to int) { return t.id * n / t.threads, (t.id + 1) * n / t.threads }

const optionsN = 16 << 10

func optionsInput(t *thread, _ int) {
	for i := range 6 * optionsN {
		t.write(i)
	}
}

func options(t *thread, size int) {
	from, to := t.part(optionsN)
	for range size {
		for i := from; i < to; i++ {
			for k := range 6 {
				t.read(6*i + k)
			}
			t.write(6*optionsN + i)
		}
		t.barrier()
	}
}

const sorN = 256

func sor(t *thread, size int) {
	from, to := t.part(sorN)
	for y := from; y < to; y++ {
		for x := range sorN {
			t.write(y*sorN + x)
		}
	}
	t.barrier()
	for range size {
		for colour := range 2 {
			for y := max(from, 1); y < min(to, sorN-1); y++ {
				for x := 1 + (y+colour)%2; x < sorN-1; x += 2 {
					at := y*sorN + x
					for _, n := range [...]int{at - sorN, at + sorN, at - 1, at + 1, at} {
						t.read(n)
					}
					t.write(at)
				}
			}
			t.barrier()
		}
	}
}

const luN = 96

func lufact(t *thread, size int) {
	for m := range size {
		a := m % 4 * luN * luN // by columns
		for j := t.id; j < luN; j += t.threads {
			for i := range luN {
				t.write(a + j*luN + i)
			}
		}
		t.barrier()
		for k := range luN - 1 {
			if k%t.threads == t.id {
				for i := k + 1; i < luN; i++ {
					t.read(a + k*luN + i)
					t.write(a + k*luN + i)
				}
			}
			t.barrier()
			for j := k + 1; j < luN; j++ {
				if j%t.threads != t.id {
					continue
				}
				for i := k + 1; i < luN; i++ {
					t.read(a + k*luN + i)
					t.read(a + j*luN + i)
					t.write(a + j*luN + i)
				}
			}
		}
		t.barrier()
	}
}

const monteTable, monteSteps = 4096, 1000

func monteInput(t *thread, _ int) {
	for i := range monteTable {
		t.write(i)
	}
}

func montecarlo(t *thread, size int) {
	own := monteTable + t.id*1024
	sum := monteTable + t.threads*1024
	for t.add(0) < 16*size {
		for i := range monteSteps {
			t.read(t.rand.IntN(monteTable))
			t.read(own + i%64)
			t.write(own + i%64)
			if i%2 == 0 {
				t.write(own + 64 + i%900)
			}
		}
		t.lock(0)
		for i := range 4 {
			t.read(sum + i)
			t.write(sum + i)
		}
		t.unlock(0)
	}
}

const sparseRows, sparseEntries = 8 << 10, 8

func sparseInput(t *thread, _ int) {
	for i := range sparseRows * (2*sparseEntries + 1) {
		t.write(i)
	}
}

func sparsemat(t *thread, size int) {
	const vector, values, result = 0, sparseRows, sparseRows * (2*sparseEntries + 1)
	from, to := t.part(sparseRows)
	for range size {
		for row := from; row < to; row++ {
			for k := range sparseEntries {
				t.read(values + (row*sparseEntries+k)*2)
				t.read(values + (row*sparseEntries+k)*2 + 1)
				t.read(vector + (row*7919+k*104729)%sparseRows)
			}
			t.read(result + row)
			t.write(result + row)
		}
	}
}

const rayNodes = 32 << 10

func rayInput(t *thread, _ int) {
	for i := range 4 * rayNodes {
		t.write(i)
	}
}

func raycast(t *thread, size int) {
	stack := 4*rayNodes + t.id*256
	image := 4*rayNodes + t.threads*256
	for {
		tile := t.add(0)
		if tile >= size*4 {
			return
		}
		for pixel := range 16 {
			node := 1
			for depth := range 14 {
				for k := range 4 {
					t.read(node*4 + k)
				}
				t.write(stack + depth)
				t.read(stack + depth)
				node = node*2 + t.rand.IntN(2)
			}
			t.write(image + tile%1024*16 + pixel)
		}
	}
}

// pipeline passes buffers from thread to thread, through a queue before each thread except the first.
func pipeline(t *thread, size int) {
	const words, slots = 16, 8
	values := t.world.value
	in, out := uint32(t.id), uint32(t.id+1)
	last := t.id == t.threads-1
	for item := range max(1, 64*4*size/t.threads) {
		slot := func(q uint32) int { return (int(q)*slots + item%slots) * words }
		if t.id > 0 {
			for t.lock(in); values[in] == 0; t.lock(in) {
				t.unlock(in)
				t.pause()
			}
			t.unlock(in)
		}
		if !last {
			for t.lock(out); values[out] == slots; t.lock(out) {
				t.unlock(out)
				t.pause()
			}
			t.unlock(out)
		}
		for range 2 {
			for i := range words {
				if t.id > 0 {
					t.read(slot(in) + i)
				}
				t.write(slot(out) + i)
			}
		}
		if t.id > 0 {
			t.lock(in)
			values[in]--
			t.unlock(in)
		}
		if !last {
			t.lock(out)
			values[out]++
			t.unlock(out)
		}
	}
}

func btree(t *thread, size int) {
	const depth, fan, words = 4, 8, 16
	for t.add(0) < 16*64*size {
		insert := t.rand.IntN(8) == 0
		node := 0
		t.lock(uint32(node))
		for level := range depth {
			for k := range 1 + t.rand.IntN(7) {
				t.read(node*words + k)
			}
			if level == depth-1 {
				break
			}
			next := node*fan + 1 + t.rand.IntN(fan)
			t.lock(uint32(next))
			t.unlock(uint32(node))
			node = next
		}
		if insert {
			for k := range words {
				t.write(node*words + k)
			}
		}
		t.unlock(uint32(node))
	}
}

func fluid(t *thread, size int) {
	const cells, words = 4096, 8
	from, to := t.part(cells)
	for range max(1, size/4) {
		for cell := from; cell < to; cell++ {
			for _, n := range [...]int{cell, (cell + 1) % cells, (cell + 64) % cells} {
				t.lock(uint32(n))
				for k := range 3 {
					t.read(n*words + k)
					t.write(n*words + k)
				}
				t.unlock(uint32(n))
			}
		}
		t.barrier()
	}
}

func frames(t *thread, size int) {
	const rows, columns, words = 16, 40, 16
	values := t.world.value
	for frame := range size {
		now, before := frame%2*rows*columns*words, (frame+1)%2*rows*columns*words
		for row := t.id; row < rows; row += t.threads {
			for column := range columns {
				for row > 0 && values[uint32(row-1)] < frame*columns+min(column+2, columns) {
					t.pause()
				}
				if row > 0 {
					t.load(uint32(row - 1))
				}
				at := (row*columns + column) * words
				for k := range words {
					if row > 0 {
						t.read(now + at - columns*words + k)
					}
					t.read(before + at + k)
					t.write(now + at + k)
				}
				t.add(uint32(row))
			}
		}
		t.barrier()
	}
}
