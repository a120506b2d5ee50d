package cuda

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

// poster is a process with a mailbox and a connection, as a library in it has them.
type poster struct {
	t    *testing.T
	s    *server
	p    *process
	conn io.ReadWriteCloser
	done chan error
	mail []byte
	at   uint64 // written
	told *log
}

const posterAlias = 1 << 40

func newPoster(t *testing.T) *poster {
	t.Helper()
	d, told := newTestDevice(t)
	s, err := newServer(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.listener.Close() })
	ours, theirs := connect(t)
	x := &poster{t: t, s: s, conn: theirs, done: make(chan error, 1), told: told}
	go func() {
		err := s.session(context.Background(), ours, 1<<30)
		ours.Close()
		x.done <- err
	}()
	x.ask(calls.Hello, nil, calls.Version, 0)
	r := x.ask(calls.Posting, nil, 0)
	if x.ask(calls.Posting, nil, posterAlias)[2] != posterAlias || x.ask(calls.Posting, nil, 2*posterAlias)[2] != posterAlias {
		t.Error("the first mapping does not count")
	}
	x.p, x.mail = s.processes[1<<30], d.backing[r[0]:r[0]+r[1]]
	return x
}

// ask sends a request and gives the results.
func (x *poster) ask(op calls.Op, blob []byte, args ...uint64) []uint64 {
	x.t.Helper()
	x.conn.Write(encode(op, blob, args...))
	head := make([]byte, 16)
	if _, err := io.ReadFull(x.conn, head); err != nil {
		x.t.Fatal(err)
	}
	le := binary.LittleEndian
	body := make([]byte, 8*le.Uint32(head[4:])+le.Uint32(head[12:]))
	io.ReadFull(x.conn, body)
	var results []uint64
	for i := range le.Uint32(head[4:]) {
		results = append(results, le.Uint64(body[8*i:]))
	}
	return results
}

func (x *poster) post(request []byte) {
	for _, b := range request {
		x.mail[calls.MailHead+x.at%calls.MailRing] = b
		x.at++
	}
	atomic.StoreUint64(word(x.mail, calls.MailWritten), x.at)
}

func (x *poster) operator(name string, write, addr, size uint64) []byte {
	blob := append([]byte(name), 0)
	for _, w := range []uint64{write, addr, 0, 0, size, 1, 1} {
		blob = binary.LittleEndian.AppendUint64(blob, w)
	}
	return encode(calls.Operator, blob, 0)
}

// operations lists what was told of accesses.
func (x *poster) operations() []string {
	var got []string
	for _, op := range x.told.hosts {
		if op.Kind == event.HostRead || op.Kind == event.HostWrite {
			got = append(got, event.HostText(op.Name))
		}
	}
	return got
}

// TestPosted posts requests and sends others: each is done after all that was posted before it. What is in the mailbox when the
// process ends is done too.
func TestPosted(t *testing.T) {
	x := newPoster(t)
	lease := x.ask(calls.Lease, nil, 1<<20)
	at := lease[0]
	if lease[1] != at+1<<20 {
		t.Fatalf("lease %x", lease)
	}
	const none = ^uint64(0)
	x.post(encode(calls.MallocLeased, nil, 1000, 0, at, none))
	x.post(encode(calls.MallocLeased, nil, 4096, 0, at+2048, 512))
	x.post(x.operator("first", 1, at, 1000))
	if r := x.ask(calls.Pointer, nil, at+999); r[0] != 2 || r[1] != at || r[2] != 1000 {
		t.Errorf("the allocation is known as %x", r)
	}
	x.post(x.operator("second", 0, at+2048, 4096))
	x.ask(calls.Fill, nil, at, 0, 0, 8, 1, 1, 1, 0)
	x.post(encode(calls.FreeAsync, nil, at, 0))
	x.conn.Write(encode(calls.Posted, nil, 0)) // which has no reply
	x.ask(calls.Posted, nil, 1)
	if done := atomic.LoadUint64(word(x.mail, calls.MailDone)); done != x.at {
		t.Errorf("%d bytes of %d are done", done, x.at)
	}
	x.post(x.operator("last", 1, at+2048, 1))
	x.conn.Close() // a crash, say
	if err := <-x.done; err != nil {
		t.Error(err)
	}
	const on = " (default stream)"
	want := []string{"cudaMallocAsync" + on, "cudaMallocAsync" + on, "first" + on, "second" + on, "cudaMemsetAsync" + on, "cudaFreeAsync" + on, "last" + on}
	if got := x.operations(); !slices.Equal(got, want) {
		t.Errorf("done: %q\nwant: %q", got, want)
	}
	if x.s.dev.operators != 3 || len(x.s.faults) > 0 {
		t.Errorf("%d operators, %v", x.s.dev.operators, x.s.faults)
	}
	if slices.ContainsFunc(x.mail[:64], func(b byte) bool { return b != 0 }) {
		t.Error("the mailbox is not cleared for the next process")
	}
}

// TestPostedBytes allocates in the pool: a kernel reads and writes there, and not at all once the memory was freed.
func TestPostedBytes(t *testing.T) {
	x := newPoster(t)
	at := x.ask(calls.Lease, nil, 1<<20)[0]
	x.post(encode(calls.MallocLeased, nil, 100, 0, at, 1024))
	pool := x.mail[calls.MailHead+calls.MailRing:]
	x.ask(calls.Posted, nil, 1)
	pool[1024+99] = 7
	mem := x.s.dev.mem
	if b, err := mem.Bytes(at, 100); err != nil || b[99] != 7 {
		t.Errorf("bytes %v, %v", b, err)
	}
	x.post(encode(calls.FreeAsync, nil, at, 0))
	x.post(encode(calls.MallocLeased, nil, 100, 0, at+1024, 1024)) // the same bytes at another address
	x.ask(calls.Posted, nil, 1)
	if a, ok := mem.Find(at); !ok || !a.Freed {
		t.Errorf("freed memory is %+v", a)
	}
	if b, err := mem.Bytes(at+1024, 100); err != nil || b[99] != 7 {
		t.Errorf("bytes %v, %v", b, err)
	}
	x.ask(calls.Posted, nil, 1) // orders what was read here before the end of the process
	x.conn.Close()
	<-x.done
}

// TestHostilePosts finds fault with what no library posts. The connection ends, and the run tells it.
func TestHostilePosts(t *testing.T) {
	for name, c := range map[string]struct {
		post func(x *poster)
		want string
	}{
		"garbage":         {func(x *poster) { x.post([]byte(strings.Repeat("?", 64))) }, "unknown request"},
		"half a request":  {func(x *poster) { x.post(encode(calls.FreeAsync, nil, 1, 2)[:20]) }, "unexpected EOF"},
		"another request": {func(x *poster) { x.post(encode(calls.DeviceReset, nil)) }, "DeviceReset was posted"},
		"too much":        {func(x *poster) { x.at = calls.MailRing + 1; x.post(nil) }, fmt.Sprint(calls.MailRing + 1)},
		"what fails":      {func(x *poster) { x.post(encode(calls.FreeAsync, nil, devmem.GlobalBase, 0)) }, "the mailbox"},
		"no lease":        {func(x *poster) { x.post(encode(calls.MallocLeased, nil, 8, 0, devmem.GlobalBase, 0)) }, "out of memory"},
		"beyond the pool": {func(x *poster) {
			x.post(encode(calls.MallocLeased, nil, 8, 0, x.ask(calls.Lease, nil, 1<<20)[0], calls.MailPool-4))
		}, "in no pool"},
	} {
		x := newPoster(t)
		c.post(x)
		x.conn.Write(encode(calls.MemInfo, nil))
		x.conn.Read(make([]byte, 1))
		if err := <-x.done; err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		x.conn.Close()
	}
}
