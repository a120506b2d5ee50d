package hb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/testsize"
)

// changing makes a launch in which an instruction accesses memory now as before, some lines on, now in another way: other
// lanes, another stride, from within a line, in rows, scattered, in shared memory. Then warps of another block write some of it.
func changing(pick func(int) int) *event.Batch {
	const lines = 24
	s := &stream{}
	s.begin(3, 64)
	masks := []uint32{^uint32(0), ^uint32(0), 0xffff, 0xffff0000, 0xff}
	strides := []int64{4, 4, 8, 32, -4}
	store := pick(4) == 0
	mask, stride, within, kind := masks[pick(len(masks))], strides[pick(len(strides))], uint64(pick(3)*32), 0
	for range 8 + pick(24) {
		if pick(3) == 0 { // one thing at a time, which the others must not hide
			switch pick(4) {
			case 0:
				mask = masks[pick(len(masks))]
			case 1:
				stride = strides[pick(len(strides))]
			case 2:
				within = uint64(pick(3) * 32)
			case 3:
				kind = pick(4)
			}
		}
		e := event.Event{Kind: event.Load, Space: event.Global, Warp: uint32(pick(4)), Place: 1, Mask: mask, Addr: heap + 1024 + uint64(pick(lines))*128 + within,
			Stride: stride, Size: 4}
		if store {
			e.Kind = event.Store
		}
		switch kind {
		case 1:
			if !e.InRows(4, stride, int64(pick(3))*128) {
				continue
			}
			e.Flags |= event.FlagRows
		case 2:
			e.Side = uint32(len(s.Addrs))
			for l := range 32 {
				if mask>>l&1 != 0 {
					s.Addrs = append(s.Addrs, e.Addr+uint64(int64(l)*stride))
				}
			}
			e.Flags, e.Addr, e.Stride = event.FlagScattered, 0, 0
		case 3:
			e.Space = event.Shared
		}
		s.memory(e)
	}
	for range 6 {
		s.memory(event.Event{Kind: event.Store, Space: event.Global, Warp: 4, Place: 2, Mask: ^uint32(0), Addr: heap + uint64(pick(lines+16))*128, Stride: 4, Size: 4})
	}
	s.end()
	return &s.Batch
}

// TestChangingAccess compares hb with the brute-force oracle where what an instruction does changes in one respect: what is known of
// how it accessed memory before must not be taken for what it does.
func TestChangingAccess(t *testing.T) {
	n := 1500
	if !testsize.Long() {
		n = 150
	}
	for seed := range n {
		compareWithOracle(t, changing(rand.New(rand.NewPCG(uint64(seed), 17)).IntN), detect.ModelCUDA, fmt.Sprint("changing access ", seed))
	}
}
