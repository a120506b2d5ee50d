package cuda

import (
	"cmp"
	"context"
	"maps"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/cuda/calls"
)

// finish ends a process's context. Kernel output that the process did not fetch is kept for a run that is stopped.
func (s *server) finish(p *process) {
	p.end(ErrEnded)
	if err := s.empty(p); err != nil {
		s.fault(err)
	}
	p.ctx.dev.mu.Lock()
	for _, thread := range sortedKeys(p.failing) {
		p.forgetFailed(thread)
	}
	p.ctx.dev.mu.Unlock()
	p.ctx.Close()
	p.mail.close(p.ctx.dev)
	p.waiting() // counts the lost lines
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unprinted.Len() < outputDefault {
		s.unprinted.Write(p.out.take())
	}
}

// notes lists the notes of processes about themselves.
func (s *server) notes() []Unheard {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.unchecked), func(a, b Unheard) int {
		return cmp.Or(cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Text, b.Text))
	})
}

// where describes where the host is.
func (s *server) where() string {
	if s.idle() > 0 {
		s.emptyAll()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last == "":
		return "before its first CUDA call"
	case s.busy > 0:
		return "in " + s.last
	}
	return "after " + s.last
}

// join finds or makes the process of a connection. again is the address of the alias in a process that resumes a lost
// connection; p is nil if that process is unknown. A process that has replaced itself (exec) keeps its number, and
// begins anew.
func (s *server) join(ctx context.Context, pid int32, conn *net.UnixConn, again uint64) (p *process, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.processes[pid]
	if p != nil && (again != 0 && again == p.mappedAt() || again == 0 && p.current()) {
		p.users[conn] = true
		return p, false
	}
	if again != 0 {
		s.refused = true
		return nil, false
	}
	if p != nil {
		p.leave()
	}
	p = newProcess(ctx, pid)
	p.users[conn] = true
	s.processes[pid] = p
	if end, err := watchEnd(int(pid)); err == nil {
		s.wg.Add(1)
		go s.watch(p, end)
	}
	return p, true
}

// current reports whether the program that p represents still runs in its process. The server is locked.
func (p *process) current() bool {
	if at := p.mappedAt(); at != 0 {
		if known, maps := mapsDevice(int(p.pid), at); known {
			return maps
		}
	}
	for conn := range p.users {
		if alive(conn) {
			return true
		}
	}
	return false
}

// leave closes the connections of a process that no longer exists. The server is locked.
func (p *process) leave() {
	p.end(ErrEnded)
	for conn := range p.users {
		conn.Close()
	}
}

// watch cancels the work for a process when the process ends: a launch runs in the middle of a request.
func (s *server) watch(p *process, end *os.File) {
	defer s.wg.Done()
	defer end.Close()
	stop := context.AfterFunc(p.life, func() { end.Close() })
	defer stop()
	if !waitReadable(end) {
		return
	}
	s.mu.Lock()
	p.leave()
	orphan := len(p.users) == 0 && s.processes[p.pid] == p // nobody else ends it
	if orphan {
		delete(s.processes, p.pid)
	}
	s.mu.Unlock()
	if orphan {
		s.finish(p)
	}
}

// part removes a connection from its process. The last one ends the context, unless the program has only lost it.
func (s *server) part(p *process, conn *net.UnixConn) {
	s.mu.Lock()
	delete(p.users, conn)
	ended := len(p.users) == 0 && (p.life.Err() != nil || !p.current())
	if ended && s.processes[p.pid] == p {
		delete(s.processes, p.pid)
	}
	s.mu.Unlock()
	p.once.Do(func() { close(p.mapped) })
	if ended {
		s.finish(p)
	}
}

// noteUnchecked records a note of a process about something that cannot be checked.
func (s *server) noteUnchecked(req *request) {
	u := Unheard{req.args[0], printable(string(req.blob))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.Reason < calls.NumReasons && len(s.unchecked) < unsupportedLimit {
		s.unchecked[u] = true
	}
}

// alive reports whether the other end of a connection is still open.
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
