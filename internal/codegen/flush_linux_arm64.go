package codegen

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clean makes the instructions at addresses those that were written there.
func clean(from, to uintptr)

// Of membarrier: that every thread of the process forgets the instructions that it fetched ahead, and that the process will ask for it.
const (
	syncCore         = 1 << 5
	registerSyncCore = 1 << 6
)

var register = sync.OnceFunc(func() { membarrier(registerSyncCore) })

// membarrier tells every processor that runs this process. Linux before 4.16 and some sandboxes refuse that. Then the rest must do: a
// processor has fetched something else ahead only if other code was unmapped from the same addresses an instant before.
func membarrier(command uintptr) { _, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0) }

// flush lets every processor execute what was written to pages. Caches of data and of instructions are apart, and Linux makes them agree
// only when it maps a page for execution the first time; it promises nothing to those that write code.
func flush(pages []byte) {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	clean(from, from+uintptr(len(pages)))
	register()
	membarrier(syncCore)
}
