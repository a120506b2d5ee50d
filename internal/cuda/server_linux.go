package cuda

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
)

// server provides a device to the processes that connect. Every process is a context. The libraries inside one process
// (a program may contain several runtimes) share it. Input is treated as hostile: a malformed request ends its
// connection.
type server struct {
	dev      *Device
	listener *net.UnixListener
	name     string // of the socket, as passed to programs

	mu        sync.Mutex
	processes map[int32]*process
	conns     map[*net.UnixConn]int32 // with the process that made it
	programs  map[fileID]bool         // executables that have connected: other processes that run them may use the device too
	faults    []error                 // connections that ended with a protocol error
	unchecked map[Unheard]bool
	refused   bool         // a process that was considered ended has come back
	last      string       // the newest call; "" before the first
	busy      int          // number of requests in progress
	active    time.Time    // the end of the newest request
	unprinted bytes.Buffer // output of kernels that nobody has fetched
	wg        sync.WaitGroup
}

func newServer(d *Device) (*server, error) {
	name := fmt.Sprintf("%s%d-%s", calls.SocketPrefix, os.Getpid(), rand.Text())
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	return &server{dev: d, listener: l, name: name, processes: map[int32]*process{}, conns: map[*net.UnixConn]int32{},
		programs: map[fileID]bool{}, unchecked: map[Unheard]bool{}, active: time.Now()}, nil
}

// serve accepts connections of descendants of this process until the listener is closed. Any process of the machine can
// connect to an abstract address.
func (s *server) serve(ctx context.Context) {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // temporarily too many open files
			time.Sleep(10 * time.Millisecond)
			continue
		}
		pid, err := peer(conn)
		if err != nil || !ours(int(pid)) {
			conn.Close()
			continue
		}
		program, known := executable(int(pid))
		s.mu.Lock()
		s.conns[conn] = pid
		if known {
			s.programs[program] = true
		}
		s.wg.Add(1)
		s.mu.Unlock()
		go func() {
			defer s.wg.Done()
			err := s.session(ctx, conn, pid)
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

// close ends all connections and contexts and waits for them.
func (s *server) close() []error {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	for _, p := range s.processes {
		p.end(ErrEnded)
	}
	s.mu.Unlock()
	s.wg.Wait()
	for _, pid := range sortedKeys(s.processes) {
		s.finish(s.processes[pid])
	}
	return s.faults
}

// begin and end enclose a request.
func (s *server) begin(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy++
	if call != "" {
		s.last = call
	}
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
	s.active = time.Now()
}

// idle is the time since the newest request; 0 during a request.
func (s *server) idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		return 0
	}
	return time.Since(s.active)
}

// users are the processes with connections, and the executables that have had one.
func (s *server) users() (pids map[int]bool, programs map[fileID]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pids = map[int]bool{}
	for _, pid := range s.conns {
		pids[int(pid)] = true
	}
	return pids, maps.Clone(s.programs)
}

// session serves one connection. It returns a violation of the protocol, and nil if the peer has just left.
func (s *server) session(ctx context.Context, conn *net.UnixConn, pid int32) error {
	in := bufio.NewReader(conn)
	req, err := readRequest(in)
	if err != nil {
		return gone(err)
	}
	switch {
	case req.op == calls.NotChecked:
		s.noteUnchecked(req)
		return gone(writeReply(conn, reply{}, nil))
	case req.op != calls.Hello:
		return fmt.Errorf("process %d began with request %d", pid, req.op)
	case req.args[0] != calls.Version:
		_ = writeReply(conn, reply{code: InitializationError}, nil)
		return fmt.Errorf("process %d holds a runtime library of another version of Fencepost (protocol %d, not %d): link it again",
			pid, req.args[0], calls.Version)
	}
	p, fresh := s.join(ctx, pid, conn, req.args[1])
	if p == nil {
		return gone(writeReply(conn, reply{code: InitializationError}, nil))
	}
	defer s.part(p, conn)
	r := reply{results: []uint64{devmem.GlobalBase, s.dev.arena, s.dev.arena / 2, s.dev.statusAt(), 0, 0}}
	if s.dev.cfg.Pinned {
		r.results[5] = 1
	}
	if fresh {
		p.open(s.dev)
		p.ctx.alone = func() bool { return threads(int(pid)) == 1 }
	} else {
		select {
		case <-p.mapped:
			r.results[4] = p.alias
		case <-p.life.Done():
			return nil
		}
	}
	if err := writeReply(conn, r, s.dev.file); err != nil {
		return gone(err)
	}
	return s.requests(ctx, p, conn, in)
}

func (s *server) requests(ctx context.Context, p *process, conn *net.UnixConn, in *bufio.Reader) error {
	for {
		req, err := readRequest(in)
		if err != nil {
			return gone(err)
		}
		if req.op == calls.NotChecked {
			s.noteUnchecked(req)
			if err := writeReply(conn, reply{}, nil); err != nil {
				return gone(err)
			}
			continue
		}
		if err := s.empty(p); err != nil {
			return err
		}
		if req.op == calls.Posted && req.args[0] == 0 {
			continue
		}
		s.begin(hostCall(req.op))
		r := p.handle(p.life, req)
		if ctx.Err() != nil {
			// The run was stopped within the request: this is where the host was. Without an answer the host stays
			// there until it is killed.
			_, err := io.Copy(io.Discard, in)
			return gone(err)
		}
		s.end()
		if r.bad != nil {
			return fmt.Errorf("process %d: %w", p.pid, r.bad)
		}
		if r.err != nil {
			p.tellClosed()
		}
		if err := writeReply(conn, r, nil); err != nil {
			return gone(err)
		}
	}
}

// empty executes the requests that the process has posted. It returns an error if they are malformed.
func (s *server) empty(p *process) error {
	b := &p.mail
	b.reading.Lock()
	defer b.reading.Unlock()
	bytes := b.shared()
	if bytes == nil {
		return nil
	}
	for written := atomic.LoadUint64(word(bytes, calls.MailWritten)); b.read != written; {
		if written-b.read > calls.MailRing {
			b.drop()
			return fmt.Errorf("process %d: %d bytes in a mailbox of %d", p.pid, written-b.read, calls.MailRing)
		}
		req, err := readRequest(&mailReader{bytes[calls.MailHead:], &b.read, written})
		if err == nil && !slices.Contains(calls.Postable, req.op) {
			err = fmt.Errorf("request %s was posted", calls.Specs[req.op].Name)
		}
		if err == nil {
			s.begin(hostCall(req.op))
			err = p.posted(p.handle(p.life, req).err)
			s.end()
		}
		if err != nil {
			b.drop()
			return fmt.Errorf("process %d: the mailbox: %w", p.pid, err)
		}
		atomic.StoreUint64(word(bytes, calls.MailDone), b.read)
	}
	return nil
}

// emptyAll executes the requests that all processes have posted.
func (s *server) emptyAll() {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.processes))
	s.mu.Unlock()
	for _, p := range all {
		if err := s.empty(p); err != nil {
			s.fault(err)
		}
	}
}

func (s *server) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, err)
}

// gone turns the errors of a peer that left into nil.
func gone(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil
	}
	return err
}

// peer returns the process number of the other end.
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

// writeReply sends a reply. If file is not nil, its descriptor accompanies the first bytes.
func writeReply(conn *net.UnixConn, r reply, file *os.File) error {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(r.code))
	b = le.AppendUint32(b, uint32(len(r.results)))
	waiting := uint32(r.waiting)
	if r.unawaited {
		waiting |= calls.Unawaited
	}
	b = le.AppendUint32(b, waiting)
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

// mailReader reads the ring up to a total number of bytes written.
type mailReader struct {
	ring    []byte
	read    *uint64
	written uint64
}

func (r *mailReader) Read(to []byte) (int, error) {
	at := *r.read % calls.MailRing
	n := copy(to, r.ring[at:min(calls.MailRing, at+r.written-*r.read)])
	*r.read += uint64(n)
	if n == 0 && len(to) > 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return n, nil
}
