package lanes

import (
	"os"
	"syscall"
	"testing"
)

// TestGuard loads and stores some lanes of memory that ends at a page nobody may touch.
func TestGuard(t *testing.T) {
	page := os.Getpagesize()
	all, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	defer func() {
		if err := syscall.Munmap(all); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Mprotect(all[page:], syscall.PROT_NONE); err != nil {
		t.Skip(err)
	}
	bothWays(t, func(t *testing.T) {
		for last := range 32 {
			mask := uint32(1)<<last | 1<<(last/2)
			end := func(size int) []byte { return all[page-size*(last+1) : page : page] }
			var a V32
			var b V64
			for l := range 32 {
				a[l], b[l] = 1<<31, 1<<63 // offsets nobody may use
			}
			Load8U(&a, end(1), mask)
			Load8S(&a, end(1), mask)
			Load16U(&a, end(2), mask)
			Load16S(&a, end(2), mask)
			Load32(&a, end(4), mask)
			Store8(end(1), &a, mask)
			Store16(end(2), &a, mask)
			Store32(end(4), &a, mask)
			Store64(end(8), &b, mask)
			off := b
			off[last], off[last/2] = uint64(page-8), 0
			Load64(&b, end(8), mask)
			Scatter32(all[4:page:page], &off, &a, mask)
			Scatter64(all[:page:page], &off, &b, mask)
			Gather32(&a, all[4:page:page], &off, mask)
			Gather64(&b, all[:page:page], &off, mask)
		}
	})
}
