package bench

// bfs returns a breadth-first search from vertex 0 in a graph of n vertices. Each vertex has an edge to the next one,
// and 1 to 12 other edges.
func bfs(n int) *Problem {
	r := random()
	first, edges := make([]uint32, 0, n+1), []uint32{}
	for v := range n {
		first = append(first, uint32(len(edges)))
		edges = append(edges, uint32((v+1)%n))
		for range 1 + r.IntN(12) {
			edges = append(edges, uint32(r.IntN(n)))
		}
	}
	first = append(first, uint32(len(edges)))
	dist := make([]uint32, n)
	for v := 1; v < n; v++ {
		dist[v] = ^uint32(0)
	}
	const firstRef, edgesRef, queueRef, distRef, nextRef, countRef = Ref(0), Ref(1), Ref(2), Ref(3), Ref(4), Ref(5)
	return &Problem{
		Buffers: []Buffer{{Input, bytesOf(first)}, {Input, bytesOf(edges)}, {Scratch, make([]byte, 4*n)}, {Result, bytesOf(dist)},
			{Scratch, make([]byte, 4*n)}, {Scratch, make([]byte, 4)}},
		Host: func(m Machine) error {
			frontier, next := queueRef, nextRef
			for size, level := uint32(1), int32(1); size > 0; level++ {
				if err := m.SetWord(countRef, 0); err != nil {
					return err
				}
				err := m.Launch("bfs", line(over(int(size), blockSize)), line(blockSize), int32(size), level,
					firstRef, edgesRef, frontier, distRef, next, countRef)
				if err != nil {
					return err
				}
				if size, err = m.Word(countRef); err != nil {
					return err
				}
				frontier, next = next, frontier
			}
			return nil
		},
	}
}

// bucketWords is the size of a bucket of the hash table: the lock, the number of keys, the keys and the counts.
const (
	bucketKeys  = 7
	bucketWords = 2 + 2*bucketKeys
)

// hashtable inserts n keys, most of them several times, into n/4 buckets. No bucket overflows, because the counts would
// then depend on the order of the threads.
func hashtable(n int) *Problem {
	r := random()
	buckets := uint32(max(n/4, 1))
	used := make([]int, buckets)
	var pool []uint32
	for seen := map[uint32]bool{}; len(pool) < n/3; {
		key := r.Uint32()
		b := bucketOf(key, buckets)
		if seen[key] || used[b] == bucketKeys {
			continue
		}
		seen[key] = true
		used[b]++
		pool = append(pool, key)
	}
	keys := make([]uint32, n)
	for i := range keys {
		keys[i] = pool[r.IntN(len(pool))]
	}
	return &Problem{
		Buffers: []Buffer{{Input, bytesOf(keys)}, {Scratch, make([]byte, 4*bucketWords*buckets)}, {Result, make([]byte, 4*n)}},
		Args:    []uint64{uint64(n), uint64(buckets)},
		Host: func(m Machine) error {
			grid := line(over(n, blockSize))
			if err := m.Launch("insert", grid, line(blockSize), int32(n), buckets, Ref(0), Ref(1)); err != nil {
				return err
			}
			return m.Launch("lookup", grid, line(blockSize), int32(n), buckets, Ref(0), Ref(1), Ref(2))
		},
	}
}

func bucketOf(key, buckets uint32) uint32 { return (key * 2654435761 >> 7) % buckets }
