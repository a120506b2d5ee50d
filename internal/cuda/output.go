package cuda

import (
	"bytes"
	"context"
)

const (
	// outputDefault is the greatest size of the kernel output kept for a process that has not set the limit. It applies
	// to the text itself, whereas a device keeps 1 MiB of formats and arguments.
	outputDefault = 16 << 20
	// outputMost bounds the limit that a program may set.
	outputMost = 1 << 30
	// limitPrintfFifoSize is cudaLimitPrintfFifoSize and CU_LIMIT_PRINTF_FIFO_SIZE.
	limitPrintfFifoSize = 1
)

// output is the output of a process's kernels that the process has not fetched yet. As on a device, the oldest is lost
// if there is too much (CUDA programming guide, "Formatted Output"); here whole lines are lost.
type output struct {
	text  []byte
	limit int    // 0: outputDefault
	lost  uint64 // number of lines
}

// Write implements io.Writer. It lets the text grow to twice the limit, so that lines are not moved each time.
func (o *output) Write(p []byte) (int, error) {
	o.text = append(o.text, p...)
	if len(o.text) > 2*o.most() {
		o.trim()
	}
	return len(p), nil
}

func (o *output) most() int {
	if o.limit == 0 {
		return outputDefault
	}
	return o.limit
}

// trim drops the oldest lines until the text is within its limit.
func (o *output) trim() {
	over := len(o.text) - o.most()
	if over <= 0 {
		return
	}
	cut := len(o.text)
	if n := bytes.IndexByte(o.text[over-1:], '\n'); n >= 0 {
		cut = over + n
	}
	o.lost += uint64(bytes.Count(o.text[:cut], []byte{'\n'}))
	if o.text[cut-1] != '\n' {
		o.lost++
	}
	o.text = append(o.text[:0], o.text[cut:]...)
}

// take returns the text and clears it.
func (o *output) take() []byte {
	o.trim()
	text := o.text
	o.text = nil
	return text
}

// resize sets the limit, which is never less than outputDefault.
func (o *output) resize(size uint64) { o.limit = int(max(outputDefault, min(size, outputMost))) }

// LostOutput is the number of lines of kernel output that were lost because a program did not fetch them in time.
func (d *Device) LostOutput() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lostOutput
}

// waiting is the kernel output to fetch. The buffer is the context's, which launches fill under the device's lock.
func (p *process) waiting() int {
	d := p.ctx.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	p.out.trim()
	d.lostOutput += p.out.lost
	p.out.lost = 0
	return len(p.out.text)
}

func (p *process) output(context.Context, *request) ([]uint64, []byte, error) {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	return nil, p.out.take(), nil
}

func (p *process) setLimit(_ context.Context, r *request) ([]uint64, []byte, error) {
	if r.args[0] == limitPrintfFifoSize {
		p.ctx.dev.mu.Lock()
		defer p.ctx.dev.mu.Unlock()
		p.out.resize(r.args[1])
	}
	return nil, nil, nil
}
