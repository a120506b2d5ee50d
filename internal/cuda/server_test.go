package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/simt"
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
		"too many":          encode(calls.Malloc, nil, 16, 0, 0),
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
	f.Add(encode(calls.Copy, nil, simt.GlobalBase, 1, 2, 3, 4, 5, 6, 7, 8, 0x104, 1))
	f.Add(encode(calls.HostRegister, nil, 4096, 8192))
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
		pool := []uint64{0, 1, 2, 16, 32, 48, 64, 4096, 1 << 20, 1 << 31, 1 << 40, 1<<64 - 1, 1 << 63, simt.GlobalBase, simt.GlobalBase + 1<<23, simt.GlobalBase + 1<<24}
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
