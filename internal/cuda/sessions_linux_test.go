package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
)

// TestWhere checks where the host is said to be, and since when.
func TestWhere(t *testing.T) {
	s := &server{active: time.Now().Add(-time.Hour)}
	check := func(where string, idle bool) {
		t.Helper()
		if got := s.where(); got != where {
			t.Errorf("the host is %q, want %q", got, where)
		}
		if d := s.idle(); idle != (d > 0) || idle && s.busy > 0 {
			t.Errorf("%s: idle for %v", where, d)
		}
	}
	check("before its first CUDA call", true)
	if s.idle() < time.Hour {
		t.Errorf("idle for %v", s.idle())
	}
	s.begin("")
	check("before its first CUDA call", false)
	s.begin("cudaMalloc")
	s.end()
	check("in cudaMalloc", false)
	s.end()
	check("after cudaMalloc", true)
	if s.idle() > time.Hour/2 {
		t.Errorf("idle for %v", s.idle())
	}
	s.begin("")
	check("in cudaMalloc", false)
	s.end()
	check("after cudaMalloc", true)
}

// TestUnheard keeps what processes tell of themselves, sorted and bounded.
func TestUnheard(t *testing.T) {
	s := &server{unchecked: map[Unheard]bool{}}
	for _, u := range []Unheard{{1, "b"}, {0, "z\n"}, {1, "a"}, {1, "a"}, {2, "x"}, {1 << 40, "y"}} {
		s.noteUnchecked(&request{args: []uint64{u.Reason}, blob: []byte(u.Text)})
	}
	if got, want := s.notes(), []Unheard{{Forked, "z?"}, {NotMapped, "a"}, {NotMapped, "b"}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for i := range 2000 {
		s.noteUnchecked(&request{args: []uint64{0}, blob: fmt.Append(nil, i)})
	}
	if n := len(s.notes()); n != 1000 {
		t.Errorf("%d are kept", n)
	}
}

// connect returns the two ends of a connection.
func connect(t *testing.T) (ours, theirs *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends[i] = c.(*net.UnixConn)
		ends[i].SetDeadline(time.Now().Add(10 * time.Second))
	}
	return ends[0], ends[1]
}

func newTestServer(t *testing.T) *server {
	t.Helper()
	d, _ := newTestDevice(t)
	s, err := newServer(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.listener.Close() })
	return s
}

// TestJoin connects to the process of a number again and again: a program that has replaced itself begins anew.
func TestJoin(t *testing.T) {
	s := newTestServer(t)
	ctx := context.Background()
	const pid = 1 << 30 // nobody has it
	join := func(again uint64) (*process, *net.UnixConn, *net.UnixConn) {
		ours, theirs := connect(t)
		p, fresh := s.join(ctx, pid, ours, again)
		if fresh {
			p.open(s.dev)
		}
		return p, ours, theirs
	}
	if p, _, _ := join(4096); p != nil || !s.refused {
		t.Errorf("a connection of nobody's is taken up: %v", p)
	}
	s.refused = false
	p, ours, theirs := join(0)
	if p == nil || s.processes[pid] != p || !p.users[ours] || p.pid != pid || !alive(ours) {
		t.Fatalf("%+v", p)
	}
	if second, conn, _ := join(0); second != p || !p.users[conn] || len(p.users) != 2 {
		t.Errorf("a second connection: %+v", second)
	} else {
		s.part(p, conn)
	}
	if p.mappedAt() != 0 || len(p.users) != 1 || s.processes[pid] != p || p.life.Err() != nil {
		t.Errorf("after its end: %+v", p)
	}
	theirs.Close()
	if alive(ours) || p.current() {
		t.Error("a connection that is closed counts")
	}
	next, _, _ := join(0)
	if next == p || next == nil || s.processes[pid] != next || !errors.Is(context.Cause(p.life), ErrEnded) {
		t.Fatalf("a process whose connections are closed goes on: %+v", next)
	}
	if _, err := ours.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("its connection is open: %v", err)
	}
	next.once.Do(func() { next.alias = 4096; close(next.mapped) })
	if same, _, _ := join(4096); same != next || next.mappedAt() != 4096 {
		t.Errorf("a lost connection is not taken up: %+v", same)
	}
	if p, _, _ := join(8192); p != nil || !s.refused {
		t.Errorf("another alias is taken up: %v", p)
	}
	third, conn, _ := join(0) // its connections are open, and nobody has the memory at 4096
	if third == next || third == nil || next.life.Err() == nil {
		t.Errorf("a program that has replaced itself goes on: %+v", third)
	}
	s.part(third, conn)
	if len(s.processes) != 0 || !third.ctx.closed || third.life.Err() == nil {
		t.Errorf("after the last connection: %+v", third)
	}
	ours, theirs = connect(t)
	theirs.Write([]byte("x"))
	if !alive(ours) {
		t.Error("a connection with bytes to read counts as closed")
	}
	ours.Close()
	if alive(ours) {
		t.Error("a connection that is closed here counts as open")
	}
}

// TestUnprinted keeps what a process that ends has not fetched, and counts what is lost.
func TestUnprinted(t *testing.T) {
	s := newTestServer(t)
	for range 3 {
		p := newProcess(context.Background(), 1<<30)
		p.open(s.dev)
		p.failing = map[uint32]*Error{2: {Code: 9, Msg: "refused", Launch: &LaunchReport{Kernel: "k"}}, 1: {Code: 1, Msg: "no launch"}}
		p.out.Write([]byte("text\n"))
		s.finish(p)
		if !p.ctx.closed || !errors.Is(context.Cause(p.life), ErrEnded) {
			t.Error("its context is open")
		}
	}
	if got := s.unprinted.String(); got != "text\ntext\ntext\n" {
		t.Errorf("output %q", got)
	}
	if f := s.dev.Failures(); len(f) != 1 || f[0].Count != 3 || f[0].Launch.Kernel != "k" || f[0].Kind != LaunchRefused || f[0].Call != "the launch" || f[0].Msg != "refused" || !f[0].Configured {
		t.Errorf("failures %+v", f)
	}
	s.unprinted.Write(make([]byte, outputDefault))
	n := s.unprinted.Len()
	p := newProcess(context.Background(), 1<<30)
	p.open(s.dev)
	p.out.Write(append(make([]byte, outputDefault), "\n\n"...))
	s.finish(p)
	if s.unprinted.Len() != n || s.dev.LostOutput() != 1 {
		t.Errorf("%d bytes more, %d lines lost", s.unprinted.Len()-n, s.dev.LostOutput())
	}
}

// TestSession talks to the server as a library does.
func TestSession(t *testing.T) {
	s := newTestServer(t)
	talk := func(requests ...[]byte) (replies [][]uint64, err error) {
		ours, theirs := connect(t)
		done := make(chan error, 1)
		go func() {
			err := s.session(context.Background(), ours, 1<<30)
			ours.Close()
			done <- err
		}()
		for _, r := range requests {
			theirs.Write(r)
			head := make([]byte, 16)
			if _, err := io.ReadFull(theirs, head); err != nil {
				break
			}
			le := binary.LittleEndian
			body := make([]byte, 8*le.Uint32(head[4:])+le.Uint32(head[12:]))
			if _, err := io.ReadFull(theirs, body); err != nil {
				t.Errorf("a reply is cut short: %v", err)
			}
			reply := []uint64{uint64(le.Uint32(head)), uint64(le.Uint32(head[8:]))}
			for i := range le.Uint32(head[4:]) {
				reply = append(reply, le.Uint64(body[8*i:]))
			}
			replies = append(replies, reply)
		}
		theirs.Close()
		return replies, <-done
	}
	hello := encode(calls.Hello, nil, calls.Version, 0)
	const arena = 1 << 30
	greeting := []uint64{0, 0, devmem.GlobalBase, arena, arena / 2, arena + registeredRoom, 0, 0}
	for _, r := range []struct {
		name     string
		requests [][]byte
		replies  [][]uint64
		err      string
	}{
		{"nothing", nil, nil, ""},
		{"greeting", [][]byte{hello}, [][]uint64{greeting}, ""},
		{"calls", [][]byte{hello, encode(calls.StreamCreate, nil, 1, 0), encode(calls.StreamDestroy, nil, 16), encode(calls.StreamDestroy, nil, 16)},
			[][]uint64{greeting, {0, 0, 16}, {0, 0}, {400, 0}}, ""},
		{"another version", [][]byte{encode(calls.Hello, nil, calls.Version+1, 0)}, [][]uint64{{3, 0}},
			fmt.Sprintf("process %d holds a runtime library of another version of Fencepost (protocol %d, not %d): link it again", 1<<30, calls.Version+1, calls.Version)},
		{"no greeting", [][]byte{encode(calls.MemInfo, nil)}, nil, fmt.Sprintf("process %d began with request %d", 1<<30, calls.MemInfo)},
		{"a lost connection", [][]byte{encode(calls.Hello, nil, calls.Version, 4096)}, [][]uint64{{3, 0}}, ""},
		{"a note", [][]byte{encode(calls.NotChecked, []byte("k"), 0)}, [][]uint64{{0, 0}}, ""},
		{"a note in between", [][]byte{hello, encode(calls.NotChecked, []byte("l"), 1), encode(calls.StreamCreate, nil, 1, 0)}, [][]uint64{greeting, {0, 0}, {0, 0, 16}}, ""},
		{"two greetings", [][]byte{hello, hello}, [][]uint64{greeting}, fmt.Sprintf("process %d: request Hello out of place", 1<<30)},
		{"garbage", [][]byte{hello, encode(calls.NumOps, nil)}, [][]uint64{greeting}, fmt.Sprintf("unknown request %d", calls.NumOps)},
	} {
		replies, err := talk(r.requests...)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if text != r.err || !slices.EqualFunc(replies, r.replies, slices.Equal) {
			t.Errorf("%s: %v, %q; want %v, %q", r.name, replies, text, r.replies, r.err)
		}
	}
	if got, want := s.notes(), []Unheard{{Forked, "k"}, {NotMapped, "l"}}; !slices.Equal(got, want) {
		t.Errorf("notes %v, want %v", got, want)
	}
	if s.where() != "after cudaStreamDestroy" && s.where() != "after cudaStreamCreate" || s.busy != 0 {
		t.Errorf("the host is %s, %d requests", s.where(), s.busy)
	}
}

// TestReplyBytes compares a reply, and the file beside it, byte by byte.
func TestReplyBytes(t *testing.T) {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := reply{code: 0x04030201, results: []uint64{5, 1 << 63}, waiting: 0x08070605, blob: []byte("text")}
	want := "\x01\x02\x03\x04\x02\x00\x00\x00\x05\x06\x07\x08\x04\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80text"
	for _, f := range []*os.File{nil, file} {
		ours, theirs := connect(t)
		if err := writeReply(ours, r, f); err != nil {
			t.Fatal(err)
		}
		b, rights := make([]byte, 100), make([]byte, 100)
		n, nr, _, _, err := theirs.ReadMsgUnix(b, rights)
		if err != nil || string(b[:n]) != want || (nr > 0) != (f != nil) {
			t.Errorf("%q, %d bytes of rights, %v", b[:n], nr, err)
		}
		if messages, err := unix.ParseSocketControlMessage(rights[:nr]); f != nil && err == nil {
			fds, err := unix.ParseUnixRights(&messages[0])
			if err != nil || len(fds) != 1 {
				t.Errorf("rights %v, %v", fds, err)
			}
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
		ours.Close()
		if err := writeReply(ours, r, f); gone(err) != nil || err == nil {
			t.Errorf("a reply to nobody: %v", err)
		}
	}
	for err, left := range map[error]bool{io.EOF: true, io.ErrUnexpectedEOF: true, net.ErrClosed: true, unix.EPIPE: true, unix.ECONNRESET: true,
		fmt.Errorf("read: %w", io.EOF): true, unix.ENOMEM: false, errors.New("EOF"): false} {
		if (gone(err) == nil) != left {
			t.Errorf("%v becomes %v", err, gone(err))
		}
	}
	ours, _ := connect(t)
	if pid, err := peer(ours); err != nil || int(pid) != os.Getpid() {
		t.Errorf("the other end is process %d, %v", pid, err)
	}
	ours.Close()
	for _, c := range []*net.UnixConn{ours, {}} {
		if _, err := peer(c); err == nil || alive(c) {
			t.Error("a closed connection has another end")
		}
	}
}

// TestNames makes what comes from programs fit to be printed.
func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "cudaMalloc": "cudaMalloc", " ~!": " ~!", "a\x1fb\x7fc\nd\x00": "a?b?c?d?", "äb": "?b",
		strings.Repeat("x", 200): strings.Repeat("x", 200), strings.Repeat("y", 201): strings.Repeat("y", 200),
	} {
		if got := printable(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"cudaFree": "cudaFree", "cudaFree_ptsz": "cudaFree", "cuMemFree_v2": "cuMemFree", "cuMemcpyHtoD_v2_ptds": "cuMemcpyHtoD",
		"cuCtxCreate_v3": "cuCtxCreate", "__cudaLaunchKernel_ptsz": "cudaLaunchKernel", "cuX_v4": "cuX_v4", "cuda\n": "cuda?"} {
		if got := callName(in); got != want {
			t.Errorf("%s is called %s, want %s", in, got, want)
		}
	}
	for _, r := range []struct {
		call string
		code Code
		want bool
	}{
		{"cudaMemcpy", 1, false}, {"cudaMemcpy", MemoryAllocation, true}, {"cuMemFree", 1, true}, {"cudaDeviceSynchronize", 1, true}, {"cudaStreamQuery", 1, true},
		{"cudaStreamSynchronize", 1, false}, {"__cudaPush", 1, true}, {"xcuda", 1, false},
	} {
		if probing(r.call, r.code) != r.want {
			t.Errorf("%s, error %d: a probe %v", r.call, r.code, !r.want)
		}
	}
	d, _ := newTestDevice(t)
	for i := range 2000 {
		d.notSupported(fmt.Sprintf("cuda%04d", i))
	}
	if names := d.Unsupported(); len(names) != 1000 || names[0] != "cuda0000" || !slices.IsSorted(names) {
		t.Errorf("%d names are kept", len(names))
	}
}

// TestDeviceMemory checks how the file of a device is laid out, and that it can be made where files are limited.
func TestDeviceMemory(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	low := unix.Rlimit{Cur: 1 << 20, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
		t.Fatal(err)
	}
	d, err := NewDevice(Config{Engine: &player{}})
	if e := grow(int(d.file.Fd()), 49<<30); !errors.Is(e, unix.EPERM) {
		t.Errorf("the file can be made larger: %v", e)
	}
	var after unix.Rlimit
	if e := unix.Getrlimit(unix.RLIMIT_FSIZE, &after); e != nil || after != low {
		t.Errorf("the limit is %+v, %v", after, e)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(int(d.file.Fd()), &st); err != nil || st.Size != 48<<30+4096 || len(d.backing) != 48<<30+4096 {
		t.Errorf("the file has %d bytes, %v", st.Size, err)
	}
	if free, total := d.mem.Room(); free != 16<<30 || total != 16<<30 || d.Memory() != d.mem {
		t.Errorf("%d of %d bytes are free", free, total)
	}
	if d.undelivered() != 0 || d.statusAt() != 48<<30 {
		t.Errorf("%d calls lost, counted at %#x", d.undelivered(), d.statusAt())
	}
	if _, err := d.file.WriteAt([]byte{1, 2, 3, 4, 5}, 48<<30); err != nil || d.undelivered() != 0x04030201 {
		t.Errorf("%#x calls lost, %v", d.undelivered(), err)
	}
	for _, size := range []int64{1 << 20, 1 << 40} {
		if err := unix.Ftruncate(int(d.file.Fd()), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("the file can be given %d bytes: %v", size, err)
		}
	}
	file := d.file
	if err := d.Close(); err != nil || d.backing != nil {
		t.Errorf("%v, %d bytes stay", err, len(d.backing))
	}
	if err := file.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file is open: %v", err)
	}
	files := func() int {
		list, _ := os.ReadDir("/proc/self/fd")
		return len(list)
	}
	before := files()
	for _, size := range []uint64{1 << 62, 1 << 63} { // for the address space, and for a file
		_, err := NewDevice(Config{Engine: &player{}, MemorySize: size})
		if want := fmt.Sprintf("device memory of %d bytes", size+(16<<30)+4096); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("too much memory: %v, want %s", err, want)
		}
	}
	if n := files(); n != before {
		t.Errorf("%d files are open, %d before", n, before)
	}
}
