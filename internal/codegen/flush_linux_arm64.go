package codegen

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clean makes the instruction cache consistent with the data at addresses from from to to.
func clean(from, to uintptr)

// The membarrier commands that make every thread of the process discard prefetched instructions, and that register the
// process for it.
const (
	syncCore         = 1 << 5
	registerSyncCore = 1 << 6
)

var register = sync.OnceFunc(func() { membarrier(registerSyncCore) })

// membarrier calls membarrier(2), which affects every processor that runs this process. Linux before 4.16 and some
// sandboxes refuse the call. The cache maintenance must then suffice: a processor has prefetched other instructions
// only if other code was unmapped from the same addresses an instant before.
func membarrier(command uintptr) { _, _, _ = unix.Syscall(unix.SYS_MEMBARRIER, command, 0, 0) }

// flush makes the bytes written to pages executable on every processor. The data and instruction caches are separate.
// Linux makes them consistent only when it first maps a page for execution, and promises nothing to programs that write
// code.
func flush(pages []byte) {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(pages)))
	clean(from, from+uintptr(len(pages)))
	register()
	membarrier(syncCore)
}
