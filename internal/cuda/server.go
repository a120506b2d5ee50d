package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/simt"
)

// server lends a device to the processes that connect. Every process is a context; the libraries inside one process
// (a program may hold several runtimes) share it. What arrives is taken as hostile: a malformed request ends its connection.
type server struct {
	dev      *Device
	listener *net.UnixListener

	mu        sync.Mutex
	processes map[int32]*process
	conns     map[*net.UnixConn]bool
	faults    []error // connections that ended with a protocol error
	wg        sync.WaitGroup
}

// process is one connected process.
type process struct {
	pid    int32
	ctx    *Context
	out    output
	users  map[*net.UnixConn]bool // its connections
	mapped chan struct{}          // closed when the first connection has mapped the memory
	once   sync.Once
	alias  uint64
	// handles: the numbers the program knows things by.
	modules map[uint64]*Module
	broken  map[uint64]error // modules that could not be loaded
	kernels map[uint64]*Kernel
	next    uint64
}

// output is what the kernels of a process printed and the process has not fetched yet.
type output struct {
	text bytes.Buffer
}

// outputLimit bounds the kernel output kept for a process; more is dropped, as a device's buffer does.
const outputLimit = 16 << 20

func (o *output) Write(p []byte) (int, error) {
	if room := outputLimit - o.text.Len(); room < len(p) {
		o.text.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return o.text.Write(p)
}

func newServer(d *Device, path string) (*server, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &server{dev: d, listener: l, processes: map[int32]*process{}, conns: map[*net.UnixConn]bool{}}, nil
}

// serve accepts connections until the listener is closed.
func (s *server) serve(ctx context.Context) {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[conn] = true
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			err := s.session(ctx, conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			if err != nil {
				s.faults = append(s.faults, err)
			}
			s.mu.Unlock()
		}()
	}
}

// close ends all connections and waits for them.
func (s *server) close() []error {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
	return s.faults
}

// pids lists the processes that are connected.
func (s *server) pids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var pids []int
	for _, pid := range sortedKeys(s.processes) {
		pids = append(pids, int(pid))
	}
	return pids
}

// session serves one connection. The error is what was wrong with the protocol, nil when the peer just left.
func (s *server) session(ctx context.Context, conn *net.UnixConn) error {
	pid, err := peer(conn)
	if err != nil {
		return err
	}
	req, err := readRequest(conn)
	if err != nil {
		return gone(err)
	}
	if req.op != calls.Hello {
		return fmt.Errorf("process %d began with request %d", pid, req.op)
	}
	if req.args[0] != calls.Version {
		_ = writeReply(conn, reply{code: InitializationError}, nil)
		return fmt.Errorf("process %d holds a runtime library of another version of Fencepost (protocol %d, not %d): link it again",
			pid, req.args[0], calls.Version)
	}
	p, fresh := s.join(pid, conn)
	defer s.part(p, conn)
	r := reply{results: []uint64{simt.GlobalBase, s.dev.arena, s.dev.arena / 2, uint64(len(s.dev.backing)), 0}}
	if !fresh {
		select {
		case <-p.mapped:
			r.results[4] = p.alias
		case <-ctx.Done():
			return nil
		}
	}
	if err := writeReply(conn, r, s.dev.file); err != nil {
		return gone(err)
	}
	for {
		req, err := readRequest(conn)
		if err != nil {
			return gone(err)
		}
		r := p.handle(ctx, req)
		if r.bad != nil {
			return fmt.Errorf("process %d: %w", pid, r.bad)
		}
		if err := writeReply(conn, r, nil); err != nil {
			return gone(err)
		}
	}
}

// gone turns the errors of a peer that left into nil.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// join finds or makes the process of a connection. A process that has just replaced itself (exec) keeps its number:
// its old connections are at their end then, and it begins anew.
func (s *server) join(pid int32, conn *net.UnixConn) (*process, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.processes[pid]; p != nil {
		for other := range p.users {
			if alive(other) {
				p.users[conn] = true
				return p, false
			}
		}
	}
	p := newProcess(pid, s.dev)
	p.users[conn] = true
	s.processes[pid] = p
	return p, true
}

func newProcess(pid int32, d *Device) *process {
	p := &process{pid: pid, ctx: d.NewContext(), users: map[*net.UnixConn]bool{}, mapped: make(chan struct{}),
		modules: map[uint64]*Module{}, broken: map[uint64]error{}, kernels: map[uint64]*Kernel{}}
	p.ctx.printf = &p.out
	return p
}

// part takes a connection from its process; the last one ends the context.
func (s *server) part(p *process, conn *net.UnixConn) {
	s.mu.Lock()
	delete(p.users, conn)
	last := len(p.users) == 0
	if last && s.processes[p.pid] == p {
		delete(s.processes, p.pid)
	}
	s.mu.Unlock()
	p.once.Do(func() { close(p.mapped) })
	if last {
		p.ctx.Close()
	}
}

// alive says whether the other end of a connection is still open.
func alive(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		open = n > 0 || err == unix.EAGAIN
	})
	return err == nil && open
}

// peer gives the process number of the other end.
func peer(conn *net.UnixConn) (int32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = first(err, inner); err != nil {
		return 0, err
	}
	return cred.Pid, nil
}

// request is one decoded request.
type request struct {
	op     calls.Op
	thread uint32
	args   []uint64
	blob   []byte
}

// reply is the answer. bad ends the connection instead.
type reply struct {
	code    Code
	results []uint64
	waiting int // bytes of kernel output
	blob    []byte
	bad     error
}

// blobLimit bounds a blob; the largest are fat binaries of libraries.
const blobLimit = 1 << 30

// readRequest reads one request and checks its shape against the table.
func readRequest(r io.Reader) (*request, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	req := &request{op: calls.Op(le.Uint32(head[0:])), thread: le.Uint32(head[8:])}
	nargs, nblob := le.Uint32(head[4:]), le.Uint32(head[12:])
	if req.op >= calls.NumOps {
		return nil, fmt.Errorf("unknown request %d", req.op)
	}
	spec := calls.Specs[req.op]
	if int64(nargs) != int64(spec.Args) {
		return nil, fmt.Errorf("request %s with %d arguments, not %d", spec.Name, nargs, spec.Args)
	}
	if nblob > blobLimit || nblob > 0 && !spec.Blob {
		return nil, fmt.Errorf("request %s with %d bytes of data", spec.Name, nblob)
	}
	raw := make([]byte, 8*nargs)
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, err
	}
	req.args = make([]uint64, nargs)
	for i := range req.args {
		req.args[i] = le.Uint64(raw[8*i:])
	}
	if nblob > 0 {
		// Grown as the data comes, so that a length alone costs nothing.
		var b bytes.Buffer
		if _, err := io.CopyN(&b, r, int64(nblob)); err != nil {
			return nil, err
		}
		req.blob = b.Bytes()
	}
	return req, nil
}

// writeReply sends a reply, with a file descriptor beside its first bytes when file is not nil.
func writeReply(conn *net.UnixConn, r reply, file *os.File) error {
	le := binary.LittleEndian
	b := make([]byte, 0, 16+8*len(r.results)+len(r.blob))
	b = le.AppendUint32(b, uint32(r.code))
	b = le.AppendUint32(b, uint32(len(r.results)))
	b = le.AppendUint32(b, uint32(r.waiting))
	b = le.AppendUint32(b, uint32(len(r.blob)))
	for _, v := range r.results {
		b = le.AppendUint64(b, v)
	}
	b = append(b, r.blob...)
	if file == nil {
		_, err := conn.Write(b)
		return err
	}
	n, _, err := conn.WriteMsgUnix(b, unix.UnixRights(int(file.Fd())), nil)
	if err == nil && n < len(b) {
		_, err = conn.Write(b[n:])
	}
	return err
}
