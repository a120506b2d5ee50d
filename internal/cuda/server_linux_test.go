package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/event"
)

func encode(op calls.Op, blob []byte, args ...uint64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(op))
	b = le.AppendUint32(b, uint32(len(args)))
	b = le.AppendUint32(b, 1)
	b = le.AppendUint32(b, uint32(len(blob)))
	for _, a := range args {
		b = le.AppendUint64(b, a)
	}
	return append(b, blob...)
}

func TestSpecsAreTotal(t *testing.T) {
	for op := range calls.NumOps {
		if calls.Specs[op].Name == "" {
			t.Errorf("request %d has no description", op)
		}
		if handlers[op] == nil && op != calls.Hello && op != calls.NotChecked {
			t.Errorf("request %s has no handler", calls.Specs[op].Name)
		}
	}
	for i := 1; i < len(calls.Errors); i++ {
		if calls.Errors[i].Code <= calls.Errors[i-1].Code {
			t.Errorf("error %d stands after %d", calls.Errors[i].Code, calls.Errors[i-1].Code)
		}
	}
}

func TestReadRequestRefuses(t *testing.T) {
	good := encode(calls.Malloc, nil, 16, 0)
	if _, err := readRequest(bytes.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	long := encode(calls.GetKernel, nil, 1)
	binary.LittleEndian.PutUint32(long[12:], 0xffffffff)
	for name, data := range map[string][]byte{
		"unknown request":   encode(calls.NumOps, nil),
		"too few arguments": encode(calls.Malloc, nil, 16),
		"too many":          encode(calls.HostRegister, nil, 16, 0, 0),
		"blob out of place": encode(calls.Malloc, []byte("x"), 16, 0),
		"blob too long":     long,
		"cut short":         good[:20],
		"empty":             nil,
	} {
		if _, err := readRequest(bytes.NewReader(data)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// A length alone must not cost memory.
	binary.LittleEndian.PutUint32(long[12:], blobLimit)
	if n := testing.AllocsPerRun(1, func() { _, _ = readRequest(bytes.NewReader(long)) }); n > 100 {
		t.Errorf("%v allocations for a promised blob", n)
	}
}

// FuzzRequests feeds random bytes and random arguments to the server's handlers. Nothing may panic.
func FuzzRequests(f *testing.F) {
	f.Add(encode(calls.Malloc, nil, 16, 0))
	f.Add(append(encode(calls.LoadModule, []byte(emptyKernel), 1), encode(calls.GetKernel, []byte("half"), 16)...))
	f.Add(encode(calls.Copy, nil, devmem.GlobalBase, 1, 2, 3, 4, 5, 6, 7, 8, 0x104, 1))
	f.Add(encode(calls.HostRegister, nil, 4096, 8192))
	f.Add(scripted(encode(calls.Operator, append([]byte("add\x00"), make([]byte, 56)...), 0), "7\ta.py\tf\n"))
	f.Add(scripted(encode(calls.Fill, nil, devmem.GlobalBase, 0, 0, 4, 1, 1, 1, 0), "7\ta.py\tf\n"))
	d, err := NewDevice(Config{Engine: newCausality(), MemorySize: 1 << 24})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	f.Fuzz(func(t *testing.T, data []byte) {
		p := newProcess(context.Background(), 1)
		p.open(d)
		defer p.ctx.Close()
		r := bytes.NewReader(data)
		for {
			req, err := readRequest(r)
			if err != nil {
				return
			}
			p.handle(context.Background(), req)
		}
	})
}

// scripted makes of a request that of a script whose frames text tells.
func scripted(request []byte, text string) []byte {
	le := binary.LittleEndian
	le.PutUint32(request, le.Uint32(request)|calls.Script)
	nargs := le.Uint32(request[4:])
	le.PutUint32(request[4:], nargs+1)
	le.PutUint32(request[12:], le.Uint32(request[12:])+uint32(len(text)))
	args := 16 + 8*int(nargs)
	blob := slices.Clone(request[args:])
	return append(append(le.AppendUint64(request[:args:args], uint64(len(text))), blob...), text...)
}

// TestScriptFrames reads where in a script a call is.
func TestScriptFrames(t *testing.T) {
	const text = "7\t/home/a b/x.py\tf\n9\tx.py\t<module>\n0\tx.py\tg\nnonsense\n12\ty.py\n"
	want := []event.Frame{{File: "/home/a b/x.py", Line: 7, Function: "f"}, {File: "x.py", Line: 9, Function: "<module>"}}
	for _, blob := range []string{"", "add\x00box"} {
		req, err := readRequest(bytes.NewReader(scripted(encode(calls.Operator, []byte(blob), 3), text)))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(req.script, want) || string(req.blob) != blob || !slices.Equal(req.args, []uint64{3}) || len(req.frames) > 0 {
			t.Errorf("read %+v", req)
		}
	}
	plain := encode(calls.Fill, nil, 1, 2, 3, 4, 5, 6, 7, 8)
	if req, err := readRequest(bytes.NewReader(scripted(slices.Clone(plain), text))); err != nil || len(req.script) != 2 {
		t.Errorf("a request without a blob: %v", err)
	}
	for name, bad := range map[string][]byte{
		"a request that tells no place": scripted(encode(calls.MemInfo, nil), text),
		"a long stack":                  scripted(slices.Clone(plain), strings.Repeat("7\tx.py\tf\n", calls.MaxScript/8)),
		"a stack longer than the blob":  append(scripted(slices.Clone(plain), "")[:16+8*8], append(binary.LittleEndian.AppendUint64(nil, 9), text...)...),
	} {
		if _, err := readRequest(bytes.NewReader(bad)); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s is taken: %v", name, err)
		}
	}
}

// TestOperator reports the accesses of an operator in the order of its stream, with the place in the script.
func TestOperator(t *testing.T) {
	d, told := newTestDevice(t)
	p := newProcess(context.Background(), 1)
	p.open(d)
	defer p.ctx.Close()
	addr, err := p.ctx.Malloc(64, devmem.DeviceAlloc)
	if err != nil {
		t.Fatal(err)
	}
	blob := []byte("aten::add\x00")
	for _, x := range []uint64{0, addr, 8, 0, 4, 2, 1, 1, addr + 32, 0, 0, 16, 1, 1, 0, 0, 0, 0, 0, 0, 0} {
		blob = binary.LittleEndian.AppendUint64(blob, x)
	}
	req, err := readRequest(bytes.NewReader(scripted(encode(calls.Operator, blob, 0), "3\tx.py\tf\n")))
	if err != nil {
		t.Fatal(err)
	}
	d.flush()
	told.hosts = nil
	if r := p.handle(context.Background(), req); r.code != 0 {
		t.Fatalf("error %d", r.code)
	}
	d.flush()
	var got []string
	for _, op := range told.hosts {
		if op.Kind == event.HostRead || op.Kind == event.HostWrite {
			got = append(got, fmt.Sprintf("%v %d+%d %s", op.Kind == event.HostWrite, op.Addr-addr, op.Size, event.HostText(op.Name)))
		}
	}
	name := "aten::add (default stream) at x.py:3"
	if want := []string{"false 0+4 " + name, "false 8+4 " + name, "true 32+16 " + name}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestRandomRequests makes well-formed requests with interesting arguments, in long sequences.
func TestRandomRequests(t *testing.T) {
	d, err := NewDevice(Config{Engine: newCausality(), MemorySize: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	blobs := [][]byte{nil, []byte("k"), []byte("half"), []byte(emptyKernel), make([]byte, 16), []byte("\x50\xed\x55\xba\x01\x00\x10\x00")}
	for range 200 {
		p := newProcess(context.Background(), 1)
		p.open(d)
		pool := []uint64{0, 1, 2, 16, 32, 48, 64, 4096, 1 << 20, 1 << 31, 1 << 40, 1<<64 - 1, 1 << 63, devmem.GlobalBase, devmem.GlobalBase + 1<<23, devmem.GlobalBase + 1<<24}
		for range 200 {
			op := calls.Op(rng.IntN(int(calls.NumOps)))
			req := &request{op: op, thread: uint32(rng.IntN(2))}
			for range calls.Specs[op].Args {
				req.args = append(req.args, pool[rng.IntN(len(pool))])
			}
			if calls.Specs[op].Blob {
				req.blob = blobs[rng.IntN(len(blobs))]
			}
			rep := p.handle(context.Background(), req)
			if rep.code == Success {
				pool = append(pool, rep.results...)
			}
		}
		p.ctx.Close()
		if free, total := d.mem.Room(); free != total {
			t.Fatalf("%d bytes are still allocated after the context was closed", total-free)
		}
	}
}

// TestHostileConnection sends garbage to a live server, which must go on serving others.
func TestHostileConnection(t *testing.T) {
	d, _ := newTestDevice(t)
	srv, err := newServer(d)
	if err != nil {
		t.Fatal(err)
	}
	go srv.serve(context.Background())
	dial := func() net.Conn {
		c, err := net.Dial("unix", "@"+srv.name)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(10 * time.Second))
		return c
	}
	for _, data := range [][]byte{
		nil, []byte("GET / HTTP/1.1\r\n\r\n"), encode(calls.Malloc, nil, 1, 2), encode(calls.Hello, nil, 999, 0),
		append(encode(calls.Hello, nil, calls.Version, 0), 0xff, 0xff, 0xff),
		append(encode(calls.Hello, nil, calls.Version, 0), encode(calls.Hello, nil, calls.Version, 0)...),
	} {
		c := dial()
		c.Write(data)
		c.(*net.UnixConn).CloseWrite()
		io.Copy(io.Discard, c)
		c.Close()
	}
	good := dial()
	defer good.Close()
	good.Write(encode(calls.Hello, nil, calls.Version, 0))
	head := make([]byte, 16)
	if _, err := io.ReadFull(good, head); err != nil || binary.LittleEndian.Uint32(head) != 0 {
		t.Errorf("a good connection after bad ones: %v, %v", head, err)
	}
	good.Close()
	if faults := srv.close(); len(faults) != 4 {
		t.Errorf("faults %v, want 4", faults)
	}
}

// TestRunKills checks that the end of the context kills a program, and that a program that cannot be started is an error.
func TestRunKills(t *testing.T) {
	needTool(t, "sh")
	d, _ := newTestDevice(t)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	st, err := Run(ctx, RunOptions{Path: "/bin/sh", Args: []string{"-c", "sleep 60; true"}, Device: d, Stdout: io.Discard})
	if !errors.Is(err, context.DeadlineExceeded) || st.Code != -1 {
		t.Errorf("status %+v, error %v", st, err)
	}
	if time.Since(began) > 10*time.Second {
		t.Error("the program was waited for")
	}
	if _, err := Run(context.Background(), RunOptions{Path: "/no/such/program", Device: d}); err == nil {
		t.Error("no error for a program that does not exist")
	}
}
