package cuda

import (
	"context"
	"sync"
	"sync/atomic"
	"unsafe"

	"fencepost.dev/fencepost/internal/cuda/calls"
	"fencepost.dev/fencepost/internal/pages"
)

// mailbox is where a process leaves requests that need no answer (see calls.Postable). It makes such requests cheap:
// without one a process sends them, and they are executed in the same order.
type mailbox struct {
	reading sync.Mutex // for the ring; executing a request takes mu
	mu      sync.Mutex
	bytes   []byte // of the shared file; nil: the process has none
	offset  uint64
	read    uint64 // total number of bytes read from the ring
	mapping uint64 // its address in the process, 1 if the process cannot map it
	dropped bool   // abandoned: the process gets no other
}

const mailSize = calls.MailHead + calls.MailRing + calls.MailPool

// word is a number in the head that both sides access.
func word(bytes []byte, at int) *uint64 { return (*uint64)(unsafe.Pointer(&bytes[at])) }

func (b *mailbox) shared() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes
}

// drop abandons a mailbox with invalid contents.
func (b *mailbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes != nil {
		atomic.StoreUint64(word(b.bytes, calls.MailClosed), 1)
	}
	b.bytes, b.dropped = nil, true
}

// posting gives the process its mailbox, and keeps what the first of its libraries has reported of it: all of them
// must know.
func (p *process) posting(_ context.Context, r *request) ([]uint64, []byte, error) {
	d := p.ctx.dev
	p.mail.mu.Lock()
	defer p.mail.mu.Unlock()
	if p.mail.dropped {
		return nil, nil, fail(MemoryAllocation, "the mailbox was given up")
	}
	if p.mail.bytes == nil {
		d.mu.Lock()
		offset, ok := d.registered.take(mailSize)
		d.mu.Unlock()
		if !ok {
			return nil, nil, fail(MemoryAllocation, "no room for a mailbox")
		}
		p.mail.bytes, p.mail.offset = d.backing[offset:offset+mailSize:offset+mailSize], offset
	}
	if p.mail.mapping == 0 {
		p.mail.mapping = r.args[0]
	}
	return []uint64{p.mail.offset, mailSize, p.mail.mapping}, nil, nil
}

// pool returns size bytes of the pool. It returns nil if they do not exist, or for a MallocLeased that wants none.
func (b *mailbox) pool(offset, size uint64) []byte {
	bytes := b.shared()
	if offset > calls.MailPool || size > calls.MailPool-offset || bytes == nil {
		return nil
	}
	const begin = calls.MailHead + calls.MailRing
	// A word at the end may be accessed as a whole, see isa.Inst.Word.
	return bytes[begin+offset : begin+offset+size : min(begin+offset+size+4, uint64(len(bytes)))]
}

// posted judges the error of a posted request. After a kernel has faulted everything fails, and requests that the
// process posted before it knew are irrelevant.
func (p *process) posted(err error) error {
	p.ctx.dev.mu.Lock()
	defer p.ctx.dev.mu.Unlock()
	if err == nil || p.ctx.sticky != nil || p.ctx.closed {
		return nil
	}
	return err
}

// tellClosed tells the process, before it gets its answer, that everything it posts would fail.
func (p *process) tellClosed() {
	p.ctx.dev.mu.Lock()
	closed := p.ctx.sticky != nil || p.ctx.closed
	p.ctx.dev.mu.Unlock()
	if bytes := p.mail.shared(); closed && bytes != nil {
		atomic.StoreUint64(word(bytes, calls.MailClosed), 1)
	}
}

// close frees the mailbox's pages.
func (b *mailbox) close(d *Device) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.offset == 0 {
		return
	}
	bytes := d.backing[b.offset : b.offset+mailSize]
	if !pages.Drop(bytes, true) {
		clear(bytes)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.registered.add(b.offset, mailSize)
	b.bytes, b.offset = nil, 0
}
