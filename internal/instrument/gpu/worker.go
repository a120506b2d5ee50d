package gpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"fencepost.dev/fencepost/internal/engine/devmem"
)

// Requests, as in internal/cuda/standin/src/gpu.c.
const (
	opOpen = iota
	opRegister
	opUnregister
	opLoad
	opLaunch
	opQuery
	opPrinted
)

// Results of the driver that need special handling. Those from ownError on are the worker's own.
const (
	notReady      = 600
	illegal       = 700
	assertion     = 710
	misaligned    = 716
	wrongSpace    = 717
	launchFailure = 719
	illegalInst   = 715
	ownError      = 1000000
)

// driverError is a failed call of the driver.
type driverError struct {
	result uint32
	text   string
}

func (e *driverError) Error() string {
	if e.result >= ownError {
		return e.text
	}
	return fmt.Sprintf("the driver gives error %d: %s", e.result, e.text)
}

// worker is the process that drives the GPU.
type worker struct {
	cmd  *exec.Cmd
	conn *os.File
	name string // of the GPU
	dead bool
}

// start starts a worker for device memory, given the worker's executable.
func start(file string, m *devmem.Memory) (*worker, error) {
	memory, size := m.File()
	if memory == nil {
		return nil, errors.New("device memory is no file here, which a GPU needs")
	}
	ours, theirs, err := connection()
	if err != nil {
		return nil, err
	}
	w := &worker{cmd: exec.Command(file), conn: ours}
	w.cmd.ExtraFiles = []*os.File{theirs, memory}
	w.cmd.Stderr = os.Stderr // for failed assertions
	err = w.cmd.Start()
	theirs.Close()
	if err != nil {
		w.conn.Close()
		return nil, err
	}
	if w.name, err = w.ask(opOpen, words(devmem.GlobalBase, size)); err != nil {
		w.kill()
		return nil, err
	}
	return w, nil
}

// kill ends the worker and its work on the GPU, if it has not ended.
func (w *worker) kill() {
	if w.dead {
		return
	}
	w.dead = true
	_ = w.conn.Close()
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

func words(list ...uint64) []byte {
	var b []byte
	for _, v := range list {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// ask makes a request and returns the contents of the answer. The error is a *driverError, or tells that the worker has
// died.
func (w *worker) ask(op uint32, data []byte) (string, error) {
	head := binary.LittleEndian.AppendUint32(nil, op)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(data)))
	answer := make([]byte, 8)
	_, err := w.conn.Write(append(head, data...))
	if err == nil {
		_, err = io.ReadFull(w.conn, answer)
	}
	text := make([]byte, binary.LittleEndian.Uint32(answer[4:]))
	if err == nil {
		_, err = io.ReadFull(w.conn, text)
	}
	if err != nil {
		w.kill()
		return "", fmt.Errorf("the process that drives the GPU has ended: %w", err)
	}
	if result := binary.LittleEndian.Uint32(answer); result != 0 {
		return "", &driverError{result, string(bytes.TrimSpace(text))}
	}
	return string(text), nil
}
