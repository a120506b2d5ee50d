package hb

import "fencepost.dev/fencepost/internal/detect/footprint"

// MemoryBytes implements detect.Metered: shadow memory and everything it refers to, clocks, what is remembered of launches,
// running blocks and the host, and memory kept to be used again. Findings do not count.
func (d *Detector) MemoryBytes() uint64 {
	n := footprint.Bytes(d.mem, &d.launches, &d.classes, &d.agents, &d.tokens, &d.warm, &d.lingers, &d.spare, &d.uniforms, &d.cooled, &d.cooling, &d.colds, &d.free)
	for _, x := range d.tallied {
		if x != nil {
			n += footprint.Bytes(new(talliedLines)) // but for what it refers to, which is counted
		}
	}
	return n
}
