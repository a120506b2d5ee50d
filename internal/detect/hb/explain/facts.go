package explain

import (
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/hb/history"
	"fencepost.dev/fencepost/internal/detect/hb/order"
	"fencepost.dev/fencepost/internal/event"
)

// Facts gathers the facts that a message about a race is made of.
func (w *Witness) Facts(a *history.Access, r history.Race) detect.Facts {
	stamp := a.Actor.Stamp()
	f := detect.Facts{Category: r.Category, Earlier: side(r.Earlier.Site, &r.Earlier.Stamp, r.From), Later: side(a.Site, &stamp, r.From)}
	if x := &r.Earlier.Stamp; x.Launch != nil {
		f.Earlier.Sync = log(x).After(x.Warp%x.Launch.WarpsPerBlock, x.Lane, x.Epoch)
	}
	if x := &stamp; x.Launch != nil {
		f.Later.Sync = log(x).Before(x.Warp%x.Launch.WarpsPerBlock, x.Lane, x.Epoch)
	}
	w.explain(&f, a, r)
	return f
}

// log returns the synchronisations of a thread's block.
func log(x *order.Stamp) *order.Log { return x.Launch.LogOf(x.Block()) }

// side describes an access of a site that touches the byte at an address.
func side(s *history.Site, who *order.Stamp, address uint64) detect.Access {
	x := detect.Access{Op: detect.Read, Order: s.Event.Order, Scope: s.Event.Scope, Space: s.Event.Space, Place: s.Event.Place,
		Host: s.Host, Address: address, Size: int(s.Event.Size), Async: s.Event.Flags&event.FlagAsync != 0, Updates: s.Side.Updates, Load: s.Load}
	switch {
	case s.Event.Kind == event.Atomic:
		x.Op = detect.AtomicOp
	case s.Side.Write:
		x.Op = detect.Write
	}
	if who.Launch == nil {
		return x
	}
	if address >= peerBase { // shared memory of a block in a cluster
		cluster, rank, at := ofPeer(address)
		x.Space, address = event.Shared, at
		x.Address = at
		owner := who.Launch.Info.Grid.At(uint64(who.Launch.Info.BlockIn(cluster, rank)))
		x.Owner = &owner
	}
	if x.Space == event.Shared && event.InTensorMemory(address) {
		x.Space = event.Tensor
	}
	x.Launch, x.Warp, x.Lane = who.Launch.Info, who.Warp, who.Lane
	if n := uint64(x.Size); n&(n-1) == 0 {
		x.Address = address &^ (n - 1)
	}
	return x
}
