package oracle

import "fencepost.dev/fencepost/internal/event"

// Threads turns some agents of a random program into host threads: half of what orders them is only assumed
// (event.HostOp). It adds more assumed order between idle agents.
func Threads(b *event.Batch, pick func(n int) int) *event.Batch {
	out := *b
	out.Events, out.Hosts = nil, append([]event.HostOp(nil), b.Hosts...)
	for i := range out.Hosts {
		if h := &out.Hosts[i]; h.Kind <= event.HostWait {
			h.Assumed = pick(2) == 0
		}
	}
	busy, agents := map[uint32]bool{}, map[uint32]uint32{}
	host := func(h event.HostOp) {
		out.Events = append(out.Events, event.Event{Kind: event.Host, Side: uint32(len(out.Hosts))})
		out.Hosts = append(out.Hosts, h)
	}
	for i := range b.Events {
		e := b.Events[i]
		switch e.Kind {
		case event.KernelBegin:
			l := &b.Launches[e.Side]
			for from := range uint32(3) {
				if from != l.Agent && !busy[from] && pick(3) > 0 {
					host(event.HostOp{Kind: event.HostSignal, Agent: from, Token: uint64(from), Assumed: true})
					host(event.HostOp{Kind: event.HostWait, Agent: l.Agent, Token: uint64(from), Assumed: true})
				}
			}
			busy[l.Agent], agents[l.ID] = true, l.Agent
		case event.KernelEnd:
			busy[agents[e.Launch]] = false
		}
		out.Events = append(out.Events, e)
	}
	return &out
}
