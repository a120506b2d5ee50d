// Package table writes event streams as tables for queries by other programs: Parquet files with one row for each
// event, and flat columns of simple types (docs/trace.md lists them).
//
// A file depends only on its events: equal streams give equal bytes. Rows are written in groups, so memory is bounded
// for streams of any length.
package table

import (
	"context"
	"errors"
	"io"
	"math/bits"

	"fencepost.dev/fencepost/internal/event"
)

// Stream gives events batch by batch. A trace.Reader is one.
type Stream interface {
	event.Places
	// Next replaces the events of b by the next ones; io.EOF at the end.
	Next(b *event.Batch) error
}

// groupRows is the number of rows in a row group. A group is in memory as a whole.
const groupRows = 1 << 17

// Write writes the events of a stream as a table, and returns their number. If from ends with an error, Write returns
// it, but the table is a complete file of what was read before. A *WriteError says that the table is not complete.
func Write(ctx context.Context, to io.Writer, from Stream) (rows uint64, err error) {
	f, err := newFile(to)
	if err != nil {
		return 0, err
	}
	w := &writer{file: f, places: from, launches: map[uint32]event.Launch{}, known: map[uint32]where{}}
	read := w.all(ctx, from)
	if we := (*WriteError)(nil); errors.As(read, &we) {
		return w.rows, read
	}
	if err := w.file.close(); err != nil {
		return w.rows, &WriteError{err}
	}
	return w.rows, read
}

// WriteError says that a table could not be written.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the file.
func (e *WriteError) Unwrap() error { return e.Err }

type writer struct {
	file     *file
	places   event.Places
	launches map[uint32]event.Launch
	launch   event.Launch // used last
	known    map[uint32]where
	rows     uint64
	cells    cells // of the current row
}

// all writes the events of a stream up to its end.
func (w *writer) all(ctx context.Context, from Stream) error {
	var b event.Batch
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := from.Next(&b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range b.Events {
			if err := w.add(&b, &b.Events[i]); err != nil {
				return &WriteError{err}
			}
		}
	}
}

// add converts an event.
func (w *writer) add(b *event.Batch, e *event.Event) error {
	r, c := row{Event: w.rows, Kind: e.Kind.String(), Launch: e.Launch}, &w.cells
	w.rows++
	switch e.Kind {
	case event.Host:
		r.host(&b.Hosts[e.Side], c)
	case event.KernelBegin:
		l := b.Launches[e.Side]
		w.launches[e.Launch] = l
		r.Kernel, r.Agent = l.Kernel, set(&c.agent, l.Agent)
	case event.KernelEnd:
		l := w.launches[e.Launch]
		r.Kernel, r.Agent = l.Kernel, set(&c.agent, l.Agent)
		delete(w.launches, e.Launch)
		w.launch = event.Launch{}
	default:
		w.device(&r, c, b, e)
	}
	return w.file.add(&r)
}

// device sets the columns of a warp's operation and its place.
func (w *writer) device(r *row, c *cells, b *event.Batch, e *event.Event) {
	if w.launch.ID != e.Launch {
		w.launch = w.launches[e.Launch]
	}
	per := max(w.launch.WarpsPerBlock(), 1)
	r.Kernel, r.Agent = w.launch.Kernel, set(&c.agent, w.launch.Agent)
	r.Block, r.Warp = set(&c.block, e.Warp/per), set(&c.warp, e.Warp%per)
	r.Mask, r.Lanes = set(&c.mask, e.Mask), set(&c.lanes, uint32(bits.OnesCount32(e.Mask)))
	if e.Place != 0 {
		r.Place, r.where = e.Place, w.frame(e.Place)
	}
	switch e.Kind {
	case event.Load, event.Store, event.Atomic:
		r.memory(c, b, e)
	case event.Fence, event.InitFence:
		r.Order, r.Scope = e.Order.String(), e.Scope.String()
	case event.Arrive:
		r.Barrier, r.Threads, r.Waits = set(&c.barrier, uint32(e.Barrier)), e.Aux, set(&c.waits, e.Flags&event.FlagWait != 0)
	case event.Bulk, event.Wgmma, event.Core, event.MapRead, event.MapFence:
		r.Address, r.Space = set(&c.address, e.Addr), e.Space.String()
	case event.CopyArrive, event.MbarrierDone, event.BulkDone, event.CoreCommit, event.CoreDone:
		r.Address = set(&c.address, e.Addr)
	case event.DeviceOp:
		r.Token = set(&c.token, event.DeviceToken(e.Launch, e.Aux))
	case event.BarrierDone:
		r.Barrier = set(&c.barrier, uint32(e.Barrier))
	case event.Branch:
		r.OtherLanes = e.Aux
	}
}

// frame returns the innermost frame of a place.
func (w *writer) frame(place uint32) where {
	at, ok := w.known[place]
	if !ok {
		if frames := w.places.Frames(place); len(frames) > 0 {
			f := &frames[0]
			at = where{f.Function, f.File, uint32(f.Line), uint32(f.Column), f.PTXFile, uint32(f.PTXLine), f.Inst}
		}
		w.known[place] = at
	}
	return at
}
