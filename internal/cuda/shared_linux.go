package cuda

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/engine/devmem"
)

// newMemory makes a device's memory over a file that programs also map.
func newMemory(size uint64) (*devmem.Memory, *os.File, []byte, error) {
	file, backing, err := sharedMemory(size + registeredRoom + statusSize)
	if err != nil {
		return nil, nil, nil, err
	}
	return devmem.NewOver(backing[:size:size], file), file, backing, nil
}

// closeShared closes the file.
func (d *Device) closeShared() error {
	err := unix.Munmap(d.backing)
	if e := d.file.Close(); err == nil {
		err = e
	}
	d.backing = nil
	return err
}

// memoryName is the name of the memory in /proc/PID/maps of the processes that map it.
const memoryName = "fencepost-device-memory"

// statusSize is the size of the page after registered host memory in which programs count the calls that did not reach
// the server.
const statusSize = 4096

// statusAt is the offset of the status page in the file.
func (d *Device) statusAt() uint64 { return uint64(len(d.backing)) - statusSize }

// undelivered is the number of calls of programs that did not reach the server.
func (d *Device) undelivered() uint32 {
	return binary.LittleEndian.Uint32(d.backing[d.statusAt():])
}

// sharedMemory maps a new anonymous file of size bytes, without pages until they are accessed. It is sealed: a program
// that truncated it would remove memory that kernels use.
func sharedMemory(size uint64) (*os.File, []byte, error) {
	fd, err := unix.MemfdCreate(memoryName, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("device memory: memfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), memoryName)
	if err := grow(fd, size); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory of %d bytes: %w", size, err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory: sealing its size: %w", err)
	}
	backing, err := unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		file.Close()
		return nil, nil, fmt.Errorf("device memory of %d bytes (address space, most of it never used): mmap: %w", size, err)
	}
	return file, backing, nil
}

// grow sets the size of the file. A limit on the size of files (ulimit -f) applies to it too, although it occupies no
// disk.
func grow(fd int, size uint64) error {
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil || old.Cur >= size {
		return unix.Ftruncate(fd, int64(size))
	}
	if old.Max < size {
		return fmt.Errorf("files are limited to %d bytes (ulimit -f)", old.Max)
	}
	raised := unix.Rlimit{Cur: old.Max, Max: old.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &raised); err != nil {
		return err
	}
	err := unix.Ftruncate(fd, int64(size))
	if e := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err == nil {
		err = e
	}
	return err
}
