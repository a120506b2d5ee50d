package lanes

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// TestGuard loads and stores some lanes of memory that ends at an inaccessible page.
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
			Load32(&a, end(4), mask)
			Store32(end(4), &a, mask)
			Store64(end(8), &b, mask)
			off := b
			off[last], off[last/2] = uint64(page-8), 0
			Load64(&b, end(8), mask)
			guardLists(mask, func(size int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(end(size))) })
			Scatter32(all[4:page:page], &off, &a, mask)
			Scatter64(all[:page:page], &off, &b, mask)
			Gather32(&a, all[4:page:page], &off, mask)
			Gather64(&b, all[:page:page], &off, mask)
		}
	})
}

// guardLists makes the loads and stores of lists for adjacent lanes. The valid range contains all lanes, but the page
// ends at the last lane of the mask. The other lanes must not be accessed.
func guardLists(mask uint32, end func(size int) unsafe.Pointer) {
	for c := OpLoad8ULine; c < OpLoad32Rows; c++ {
		a := accessOps[c-OpLoad8ULine]
		if a.how != line {
			continue
		}
		base := end(int(a.size))
		f := &files{}
		x := f.regs()
		x.Reach = &Access{Room: 1, Base: &base}
		runList([]Op{Make(c, 0, 1, 1, 0), {}}, x, mask)
	}
}
