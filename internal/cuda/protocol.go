package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/event"
)

// request is one decoded request.
type request struct {
	op     calls.Op
	thread uint32
	args   []uint64
	frames []uint64      // return addresses of the program, innermost first
	script []event.Frame // the frames of the script instead, if a script makes the call
	blob   []byte
}

// reply is the answer to a request. If bad is set it ends the connection instead.
type reply struct {
	code    Code
	results []uint64
	waiting int // bytes of kernel output
	// unawaited says that the host's own accesses must be reported: see hostaccess.go.
	unawaited bool
	blob      []byte
	err       error // the error for which code stands
	bad       error
}

// blobLimit bounds the size of a blob; the largest are fat binaries of libraries.
const blobLimit = 1 << 30

// readRequest reads one request and checks its shape against the table.
func readRequest(r io.Reader) (*request, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	req := &request{op: calls.Op(le.Uint32(head[0:]) &^ calls.Script), thread: le.Uint32(head[8:])}
	scripted := le.Uint32(head[0:])&calls.Script != 0
	nargs, nblob := le.Uint32(head[4:]), le.Uint32(head[12:])
	if req.op >= calls.NumOps {
		return nil, fmt.Errorf("unknown request %d", req.op)
	}
	spec := calls.Specs[req.op]
	frames := int64(nargs) - int64(spec.Args)
	if frames != 0 && (frames < 0 || frames > calls.Frames || !slices.Contains(calls.Placed, req.op)) {
		return nil, fmt.Errorf("request %s with %d arguments, not %d", spec.Name, nargs, spec.Args)
	}
	if scripted && frames != 1 {
		return nil, fmt.Errorf("request %s of a script with %d arguments, not %d", spec.Name, nargs, spec.Args+1)
	}
	if nblob > blobLimit || nblob > 0 && !spec.Blob && !scripted {
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
	req.args, req.frames = req.args[:spec.Args], req.args[spec.Args:]
	if nblob > 0 {
		// The buffer grows as the data arrives, so that a large length alone costs nothing.
		var b bytes.Buffer
		if _, err := io.CopyN(&b, r, int64(nblob)); err != nil {
			return nil, err
		}
		req.blob = b.Bytes()
	}
	if scripted {
		size := req.frames[0]
		if size > calls.MaxScript || size > uint64(nblob) || size < uint64(nblob) && !spec.Blob {
			return nil, fmt.Errorf("request %s with %d bytes of data, %d of them a stack", spec.Name, nblob, size)
		}
		at := len(req.blob) - int(size)
		req.frames, req.script, req.blob = nil, scriptFrames(string(req.blob[at:])), req.blob[:at]
	}
	return req, nil
}

// scriptFrames reads the frames of a script, innermost first.
func scriptFrames(text string) []event.Frame {
	var frames []event.Frame
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3)
		if n, err := strconv.Atoi(f[0]); err == nil && n > 0 && len(f) == 3 {
			frames = append(frames, event.Frame{File: printable(f[1]), Line: n, Function: printable(f[2])})
		}
	}
	return frames
}
