package cuda

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/fatbin"
)

// fatbinOf makes a fat binary of one entry.
func fatbinOf(kind fatbin.Kind, arch uint32, payload []byte) []byte {
	le := binary.LittleEndian
	entry := make([]byte, 64)
	le.PutUint16(entry[0:], uint16(kind))
	le.PutUint16(entry[2:], 0x101)
	le.PutUint32(entry[4:], uint32(len(entry)))
	le.PutUint64(entry[8:], uint64(len(payload)))
	le.PutUint32(entry[28:], arch)
	head := make([]byte, 16)
	le.PutUint32(head[0:], 0xba55ed50)
	le.PutUint16(head[4:], 1)
	le.PutUint16(head[6:], 16)
	le.PutUint64(head[8:], uint64(len(entry)+len(payload)))
	return slices.Concat(head, entry, payload)
}

// TestLoadFatbins loads PTX out of fat binaries, and says what those hold that have none.
func TestLoadFatbins(t *testing.T) {
	s := newScript(t)
	ptx := append([]byte(addKernel), make([]byte, 8-len(addKernel)%8)...)
	m, err := s.c.LoadFatbins(fatbinOf(fatbin.PTX, 80, ptx))
	s.must(err)
	if got := m.Kernels(); !slices.Equal(got, []string{"add", "odd"}) {
		t.Errorf("kernels %q", got)
	}
	k, err := m.Kernel("odd")
	s.must(err)
	if k.Err() == nil || !strings.Contains(k.Err().Error(), "embedded-1.ptx:18:") {
		t.Errorf("%v", k.Err())
	}
	const advice = "; build it with PTX, for instance with -gencode arch=compute_80,code=compute_80"
	machine := fatbinOf(fatbin.ELF, 70, make([]byte, 64))
	for want, data := range map[string][]byte{
		"cudaErrorNoKernelImageForDevice: the program holds no PTX (only SASS for sm_70)" + advice:                 slices.Concat(machine, machine),
		"cudaErrorNoKernelImageForDevice: the program holds no PTX (only SASS for sm_70, SASS for sm_90)" + advice: slices.Concat(machine, fatbinOf(fatbin.ELF, 90, make([]byte, 64))),
	} {
		if _, err := s.c.LoadFatbins(data); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := s.c.LoadFatbins(bytes.Repeat([]byte{1}, 100)); code(err) != InvalidKernelImage {
		t.Errorf("%v", err)
	}
	if got := holds(nil); got != "" {
		t.Errorf("nothing is %q", got)
	}
	s.c.sticky = fail(IllegalAddress, "lost")
	if _, err := s.c.LoadFatbins(fatbinOf(fatbin.PTX, 80, ptx)); code(err) != IllegalAddress {
		t.Errorf("after a fault: %v", err)
	}
	if _, err := s.c.LoadModule(Image{"k.ptx", emptyKernel}); code(err) != IllegalAddress {
		t.Errorf("after a fault: %v", err)
	}
}

// TestModules loads, finds and unloads.
func TestModules(t *testing.T) {
	s := newScript(t)
	first, err := s.c.LoadModule(Image{"a.ptx", addKernel})
	s.must(err)
	addr, size, err := first.Symbol("step")
	if a, ok := s.c.Find(addr); err != nil || size != 4 || !ok || a.Kind != devmem.ModuleAlloc {
		t.Errorf("symbol at %#x: %+v, %v", addr, a, err)
	}
	k, err := first.Kernel("add")
	s.must(err)
	if again, err := first.Kernel("add"); again != k || err != nil || k.Name() != "add" || k.ParamSize() != 8 || k.Params()[0].Size != 8 {
		t.Errorf("%p, %p, %v", k, again, err)
	}
	if n, err := first.Kernel("none"); n != nil || err == nil || err.Error() != "cudaErrorInvalidDeviceFunction: no kernel none in the module" {
		t.Errorf("%v, %v", n, err)
	}
	if a, n, err := first.Symbol("none"); a != 0 || n != 0 || err == nil || err.Error() != "cudaErrorInvalidSymbol: no variable none in the module" {
		t.Errorf("%#x, %d, %v", a, n, err)
	}
	odd, err := first.Kernel("odd")
	s.must(err)
	if odd.Err() == nil || odd.StaticShared() != 0 {
		t.Errorf("a kernel that cannot be executed: %v", odd.Err())
	}
	second, err := s.c.LoadModule(Image{"b.ptx", addKernel})
	s.must(err)
	if got := s.c.sortedModules(); !slices.Equal(got, []*Module{s.k.module, first, second}) {
		t.Errorf("modules %v", got)
	}
	s.must(first.Unload())
	s.must(first.Unload())
	if _, ok := s.c.Find(addr); ok || len(s.c.modules) != 2 {
		t.Error("the variable is left")
	}
	big := strings.Replace(addKernel, "step = 3", "step[0x10000000]", 1)
	if _, err := s.c.LoadModule(Image{"b.ptx", big}); code(err) != MemoryAllocation {
		t.Errorf("variables of 1 GiB: %v", err)
	}
}
