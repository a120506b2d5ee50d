package warp

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/isa"
)

// tensorKernel copies a box between shared memory at tile and the tensor of the map at %out, at the coordinates after
// the map. Before, the words of shared memory are 7 * their number + 1. Afterwards, shared memory is written to %out +
// 512.
func tensorKernel(rank int, out, reduce string) string {
	var coordinates []string
	body := `
	.shared .align 1024 .b8 tile[16384];
	.shared .align 8 .b64 bar;
	setp.eq.u32 %p1, %tx, 0;
	mov.u32 %r1, tile;
	mov.u32 %r2, bar;
	mov.u32 %r3, %tx;
init:
	mad.lo.u32 %r4, %r3, 4, %r1;
	mad.lo.u32 %r5, %r3, 7, 1;
	st.shared.u32 [%r4], %r5;
	add.u32 %r3, %r3, 32;
	setp.lt.u32 %p2, %r3, 4096;
	@%p2 bra init;
	@%p1 mbarrier.init.shared.b64 [%r2], 1;
	fence.proxy.async;
	bar.sync 0;
`
	for d := range rank {
		coordinates = append(coordinates, fmt.Sprint("%r", 10+d))
		body += fmt.Sprintf("\tld.global.u32 %%r%d, [%%out+%d];\n", 10+d, descriptor.TensorMapSize+4*d)
	}
	at := fmt.Sprintf("[%%out, {%s}]", strings.Join(coordinates, ", "))
	if out == "" {
		body += fmt.Sprintf(`
	@!%%p1 bra wait;
	ld.global.u32 %%r5, [%%out+%d];
	mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], %%r5;
	cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%%r1], %s, [%%r2];
wait:
	mbarrier.try_wait.parity.shared.b64 %%p2, [%%r2], 0;
	@!%%p2 bra wait;
`, descriptor.TensorMapSize+20, rank, at)
	} else {
		body += fmt.Sprintf(`
	@%%p1 cp%s.async.bulk.tensor.%dd.global.shared::cta%s.bulk_group %s, [%%r1];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group 0;
`, reduce, rank, out, at)
	}
	return kernel(body + `
	mov.u32 %r3, %tx;
dump:
	mul.wide.u32 %rd1, %r3, 4;
	add.u64 %rd1, %rd1, %out;
	mad.lo.u32 %r4, %r3, 4, %r1;
	ld.shared.u32 %r5, [%r4];
	st.global.u32 [%rd1+512], %r5;
	add.u32 %r3, %r3, 32;
	setp.lt.u32 %p2, %r3, 4096;
	@%p2 bra dump;`)
}

// randomMap returns a random map, without its address, and coordinates. The box has at most 16 KiB, and the tensor at
// most limit bytes.
func randomMap(rng *rand.Rand, rank int, limit uint64) (*descriptor.TensorMap, [descriptor.MaxRank]int32) {
	for {
		t := &descriptor.TensorMap{Rank: rank, Type: uint8(rng.IntN(13)), Swizzle: uint8(rng.IntN(4)), Fill: uint8(rng.IntN(2))}
		var at [descriptor.MaxRank]int32
		size := t.Element()
		stride := size
		for d := range rank {
			t.Dims[d], t.Box[d], t.Steps[d] = uint32(1+rng.IntN(40)), uint32(1+rng.IntN(12)), uint8(1+rng.IntN(8)&rng.IntN(8))
			at[d] = int32(rng.IntN(int(t.Dims[d])+20) - 10)
			if d == 0 {
				t.Box[0] = uint32((16 << rng.IntN(4)) / size)
				at[0] = int32(rng.IntN(int(t.Dims[0])+2*int(t.Box[0]))) - int32(t.Box[0])
			}
			stride = devmem.RoundUp(stride*uint64(t.Dims[d]), 16)
			if d < rank-1 {
				t.Strides[d] = stride
			}
		}
		if stride < limit && t.Bytes() <= 16<<10 && t.Check() == nil {
			return t, at
		}
	}
}

// eachOf calls f for each element of a box with its offset from the box in shared memory, and its address, or 0 if it
// is outside the tensor.
func eachOf(t *descriptor.TensorMap, at [descriptor.MaxRank]int32, f func(shared, global uint64)) {
	n := uint64(1)
	for d := range t.Rank {
		n *= t.Extent(d)
	}
	for i := range n {
		global, inside, rest := t.Address, true, i
		for d := range t.Rank {
			k := int64(rest % t.Extent(d))
			rest /= t.Extent(d)
			stride := int64(t.Element())
			if d > 0 {
				stride = int64(t.Strides[d-1])
				k *= int64(t.Steps[d])
			}
			c := int64(at[d]) + k
			inside = inside && 0 <= c && c < int64(t.Dims[d])
			global += uint64(c * stride)
		}
		if !inside {
			global = 0
		}
		f(i*t.Element(), global)
	}
}

// manualSwizzle returns the place in the pattern of the manual's figures. Chunk c of row r of the pattern, of 8 rows of
// 128 bytes, is at chunk c^r. If 2 or 4 rows of the box are one row of the pattern, only the lower bits of c are
// changed, by r of 2 or 4.
func manualSwizzle(mode uint8, at uint64) uint64 {
	if mode == 0 {
		return at
	}
	row, c, span := at/128%8, at/16%8, uint64(1)<<mode
	return at/128*128 + (c/span*span+(c%span^row%span))*16 + at%16
}

// TestTensor compares random copies in both directions, and reductions, with their definition element by element.
func TestTensor(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for n := range 120 {
		rank := 1 + n%5
		out, reduce := "", ""
		if n/5%2 == 1 {
			if out = ".tile"; n/10%2 == 1 {
				out, reduce = ".add", ".reduce"
			}
		}
		m, at := randomMap(rng, rank, 1<<20)
		if reduce != "" && isa.Reduction(isa.OpAdd, descriptor.TensorTypes[m.Type]) == nil {
			continue
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			g := newRig(t, tensorKernel(rank, out, reduce))
			buffer, tensor := g.buffer(8<<10), g.buffer(1<<18)
			m.Address = tensor
			data, _ := g.mem.Bytes(tensor, 1<<20)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			want := append([]byte(nil), data...)
			head, _ := g.mem.Bytes(buffer, 512)
			copy(head, m.Encode())
			for d := range rank {
				binary.LittleEndian.PutUint32(head[descriptor.TensorMapSize+4*d:], uint32(at[d]))
			}
			binary.LittleEndian.PutUint32(head[descriptor.TensorMapSize+20:], uint32(m.Bytes()))
			g.mustRun(launch{out: buffer})
			shared := make([]byte, 16<<10)
			for i := range len(shared) / 4 {
				binary.LittleEndian.PutUint32(shared[4*i:], uint32(7*i+1))
			}
			size := m.Element()
			add := isa.Reduction(isa.OpAdd, descriptor.TensorTypes[m.Type])
			eachOf(m, at, func(s, global uint64) {
				s = manualSwizzle(m.Swizzle, s)
				cell := shared[s : s+size]
				switch {
				case out == "" && global == 0:
					for i := range cell {
						cell[i] = 0
						if m.Fill == 1 {
							cell[i] = 0xff
						}
					}
					if m.Fill == 1 {
						cell[size-1] = 0x7f
					}
				case out == "":
					copy(cell, want[global-tensor:])
				case global != 0 && reduce != "":
					to := want[global-tensor:][:size]
					devmem.PutUint(to, add(devmem.Uint(to, size), devmem.Uint(cell, size)))
				case global != 0:
					copy(want[global-tensor:], cell)
				}
			})
			got, _ := g.mem.Bytes(buffer+512, 16<<10)
			if string(got) != string(shared) {
				t.Errorf("shared memory differs: %+v at %v", m, at)
			}
			if data, _ = g.mem.Bytes(tensor, 1<<20); string(data) != string(want) {
				t.Errorf("the tensor differs: %+v at %v", m, at)
			}
		})
	}
}

// modeTest is a copy in another mode than tiles.
type modeTest struct {
	m           *descriptor.TensorMap // but for its address
	mode        string
	rank        int
	coordinates []int32
	offsets     []uint16
	out         bool // to global memory
	reduce      bool // by an addition
}

// kernel is tensorKernel with the mode.
func (c *modeTest) kernel() string {
	out, reduce := "", ""
	if c.out {
		out = "." + c.mode
	}
	if c.reduce {
		out, reduce = ".add"+out, ".reduce"
	}
	text := tensorKernel(len(c.coordinates), out, reduce)
	text = strings.ReplaceAll(text, fmt.Sprintf(".tensor.%dd.", len(c.coordinates)), fmt.Sprintf(".tensor.%dd.", c.rank))
	text = strings.ReplaceAll(text, "global.tile.", "global."+c.mode+".")
	if c.offsets != nil {
		list := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.offsets), " ", ", "), "[]")
		text = strings.ReplaceAll(text, "}], [%r2];", "}], [%r2], {"+list+"};")
	}
	return text
}

// run copies. It compares shared memory and the tensor with the elements that each lists: the place in shared memory
// before swizzling, and the coordinates in the tensor, the first before the innermost dimension. ok is false for an
// element outside.
func (c *modeTest) run(t *testing.T, rng *rand.Rand, each func(f func(shared uint64, at [descriptor.MaxRank]int64))) {
	g := newRig(t, c.kernel())
	buffer, tensor := g.buffer(8<<10), g.buffer(1<<18)
	m := c.m
	m.Address = tensor
	data, _ := g.mem.Bytes(tensor, 1<<20)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	want := append([]byte(nil), data...)
	head, _ := g.mem.Bytes(buffer, 512)
	copy(head, m.Encode())
	for d, at := range c.coordinates {
		binary.LittleEndian.PutUint32(head[descriptor.TensorMapSize+4*d:], uint32(at))
	}
	shared := make([]byte, 16<<10)
	for i := range len(shared) / 4 {
		binary.LittleEndian.PutUint32(shared[4*i:], uint32(7*i+1))
	}
	size, bytes, inside := m.Element(), uint64(0), 0
	each(func(s uint64, at [descriptor.MaxRank]int64) {
		bytes += size
		global, in := uint64(0), true
		for d := range m.Rank {
			stride := size
			if d > 0 {
				stride = m.Strides[d-1]
			}
			in = in && 0 <= at[d] && at[d] < int64(m.Dims[d])
			global += uint64(at[d]) * stride
		}
		s = manualSwizzle(m.Swizzle, s)
		switch cell := shared[s : s+size]; {
		case in && c.reduce:
			add, to := isa.Reduction(isa.OpAdd, descriptor.TensorTypes[m.Type]), want[global:][:size]
			devmem.PutUint(to, add(devmem.Uint(to, size), devmem.Uint(cell, size)))
		case in && c.out:
			copy(want[global:], cell)
		case in:
			copy(cell, want[global:])
		case !c.out:
			clear(cell)
		}
		if in {
			inside++
		}
	})
	binary.LittleEndian.PutUint32(head[descriptor.TensorMapSize+20:], uint32(bytes))
	g.mustRun(launch{out: buffer})
	if got, _ := g.mem.Bytes(buffer+512, 16<<10); string(got) != string(shared) {
		t.Errorf("shared memory differs: %+v of %+v, %d elements inside", c, m, inside)
	}
	if data, _ = g.mem.Bytes(tensor, 1<<20); string(data) != string(want) {
		t.Errorf("the tensor differs: %+v of %+v, %d elements inside", c, m, inside)
	}
}

// TestFourRows checks that tile::gather4 and tile::scatter4 copy parts of four rows of a matrix in any order.
func TestFourRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 8))
	for n := range 40 {
		m, _ := randomMap(rng, 2, 1<<20)
		m.Box[1], m.Steps[1], m.Fill = 1, 1, 0
		c := &modeTest{m: m, mode: "tile::gather4", rank: 2, out: n%2 == 1}
		if c.out {
			c.mode = "tile::scatter4"
			c.reduce = n%4 == 1 && isa.Reduction(isa.OpAdd, descriptor.TensorTypes[m.Type]) != nil
		}
		c.coordinates = []int32{int32(rng.IntN(int(m.Dims[0])+2*int(m.Box[0]))) - int32(m.Box[0])}
		rows := rng.Perm(int(m.Dims[1]) + 4)
		for i := range 4 {
			c.coordinates = append(c.coordinates, int32(rows[i])-2)
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c.run(t, rng, func(f func(uint64, [descriptor.MaxRank]int64)) {
				for row := range uint64(4) {
					for i := range uint64(m.Box[0]) {
						f((row*uint64(m.Box[0])+i)*m.Element(), [descriptor.MaxRank]int64{int64(c.coordinates[0]) + int64(i), int64(c.coordinates[1+row])})
					}
				}
			})
		})
	}
}

// TestIm2col checks copies in im2col mode. A copy has the map's number of pixels, from the coordinates on: those of the
// box between its corners, row by row and image by image, moved by the offsets. The test counts them one by one from
// the first of the box.
func TestIm2col(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for n := range 60 {
		rank := 3 + n%3
		m := &descriptor.TensorMap{Rank: rank, Type: []uint8{0, 1, 2, 7, 10}[rng.IntN(5)], Swizzle: uint8(rng.IntN(4)), Im2col: true}
		size := m.Element()
		m.Box[0] = uint32((16 << rng.IntN(int(m.Swizzle)+1)) / size)
		m.Box[1] = uint32(1 + rng.IntN(40))
		m.Dims[0] = m.Box[0] * uint32(1+rng.IntN(3))
		stride := uint64(m.Dims[0]) * size
		for d := range rank {
			m.Steps[d] = 1
			if d > 0 {
				m.Dims[d] = uint32(2 + rng.IntN(5))
				if d < rank-1 {
					m.Steps[d] = uint8(1 + rng.IntN(2))
					m.Lower[d-1] = int16(rng.IntN(3) - 1)
					m.Upper[d-1] = int16(-rng.IntN(3)) + int16(rng.IntN(2))
					if int(m.Lower[d-1]) >= int(m.Dims[d])+int(m.Upper[d-1]) {
						m.Lower[d-1], m.Upper[d-1] = 0, 0
					}
				}
				m.Strides[d-1] = stride
				stride *= uint64(m.Dims[d])
			}
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		// The pixels of the box in their order, of all images and some after them.
		var pixels [][descriptor.MaxRank]int64
		var list func(d int, at [descriptor.MaxRank]int64)
		list = func(d int, at [descriptor.MaxRank]int64) {
			switch {
			case d == 0:
				pixels = append(pixels, at)
			case d == rank-1:
				for at[d] = 0; at[d] < int64(m.Dims[d])+40; at[d]++ {
					list(d-1, at)
				}
			default:
				for at[d] = int64(m.Lower[d-1]); at[d] < int64(m.Dims[d])+int64(m.Upper[d-1]); at[d] += int64(m.Steps[d]) {
					list(d-1, at)
				}
			}
		}
		list(rank-1, [descriptor.MaxRank]int64{})
		first := rng.IntN(min(len(pixels)-int(m.Box[1]), 60))
		c := &modeTest{m: m, mode: "im2col", rank: rank, coordinates: []int32{int32(m.Box[0]) * int32(rng.IntN(3)-1)}}
		for d := 1; d < rank; d++ {
			c.coordinates = append(c.coordinates, int32(pixels[first][d]))
			if d < rank-1 {
				c.offsets = append(c.offsets, uint16(rng.IntN(3)))
			}
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			c.run(t, rng, func(f func(uint64, [descriptor.MaxRank]int64)) {
				for k, at := range pixels[first:][:m.Box[1]] {
					for d, o := range c.offsets {
						at[1+d] += int64(o)
					}
					for i := range uint64(m.Box[0]) {
						at[0] = int64(c.coordinates[0]) + int64(i)
						f((uint64(k)*uint64(m.Box[0])+i)*size, at)
					}
				}
			})
		})
	}
}

// TestTensorFaults checks invalid operands of tensor copies.
func TestTensorFaults(t *testing.T) {
	good := descriptor.TensorMap{Rank: 2, Type: 7, Dims: [5]uint32{64, 8}, Box: [5]uint32{32, 4}, Steps: [5]uint8{1, 1}, Strides: [4]uint64{256}}
	for _, c := range []struct {
		change func(m *descriptor.TensorMap)
		edit   func(text string) string
		kind   engine.FaultKind
		text   string
	}{
		{func(m *descriptor.TensorMap) { *m = descriptor.TensorMap{Rank: 2} }, nil, engine.TensorMisuse, "is given a tensor map that is none: dimension 0 has 0 elements"},
		{func(m *descriptor.TensorMap) { m.Rank, m.Steps[2], m.Dims[2], m.Box[2] = 3, 1, 1, 1 }, nil, engine.TensorMisuse, "is given 2 coordinates and the map of a tensor of 3 dimensions"},
		{func(m *descriptor.TensorMap) { m.Address += 8 }, nil, engine.TensorMisuse, "is not a multiple of 16"},
		{func(m *descriptor.TensorMap) { m.Strides[0] = 1 << 19 }, nil, engine.OutOfBounds, "reads 128 bytes at"},
		{nil, func(s string) string { return strings.ReplaceAll(s, "[%out, {", "[%out+32, {") }, engine.Misaligned, "which is not a multiple of 64"},
		{nil, func(s string) string { return strings.ReplaceAll(s, "bytes [%r1], ", "bytes [%r1+16], ") }, engine.Misaligned, "is given address 0x10 of shared memory, which is not a multiple of 128"},
		{nil, func(s string) string { return strings.ReplaceAll(s, "bytes [%r1], ", "bytes [%r1+16256], ") }, engine.OutOfBounds, "writes 512 bytes at"},
		{nil, func(s string) string { return strings.ReplaceAll(s, ", [%r2];\nwait", ", [%r2+8];\nwait") }, engine.MbarrierEarly, "is given an object as mbarrier"},
	} {
		text := strings.Replace(tensorKernel(2, "", ""), "@!%p2 bra wait;", "", 1)
		if c.edit != nil {
			text = c.edit(text)
		}
		g := newRig(t, text)
		buffer, tensor := g.buffer(8<<10), g.buffer(1<<10)
		m := good
		m.Address = tensor
		if c.change != nil {
			c.change(&m)
		}
		head, _ := g.mem.Bytes(buffer, 512)
		copy(head, m.Encode())
		g.run(launch{out: buffer}).wantFault(t, c.kind, c.text)
	}
}
