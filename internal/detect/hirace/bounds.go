package hirace

import (
	"fmt"
	"math/bits"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/shadow"
	"fencepost.dev/fencepost/internal/event"
)

// Options by which the paper's users save memory (section IV): the groups of threads that are monitored, if some can
// represent all, and a bound for metadata.
var (
	groupsOption = detect.Option{Name: "groups", Doc: "the tracked blocks: all, or the first N, which represent the others",
		Values: []string{"all", "16", "4", "2"}}
	wordsOption = detect.Option{Name: "words", Doc: "number of words of global memory that may have metadata in a launch; accesses to others are not tracked",
		Values: []string{"all", "1M", "64K", "1K"}}
	granularityOption = detect.Option{Name: "granularity", Doc: "bytes of the smallest location: with 1, a word that is accessed in parts becomes its bytes; with 4 it stays a word",
		Values: []string{"1", "4"}}
	pairsOption = detect.Option{Name: "pairs", Doc: "number of pairs of racing places that a launch that checks itself (docs/gpu.md) keeps",
		Values: []string{"4K", "64K", "1M"}}
)

// lineBytes is the unit in which memory is admitted.
const lineBytes = shadow.LineCells * wordBytes

// bounds is the part of a launch that is tracked.
type bounds struct {
	// watch selects the threads whose accesses are tracked, if threads is true, and the locations on which races are
	// reported. Skipping accesses of other threads is safe, since accesses order nothing. It is necessary, since a
	// location's first race would hide later ones.
	watch    *detect.Watch
	threads  bool
	launch   *event.Launch
	pairs    uint64 // 0: the default
	groups   uint64 // number of blocks; 0: all
	lines    int    // limit for lines of global memory, of lineBytes each; 0: none
	admitted map[uint64]bool
	refused  bool // an access was skipped because of the limit
	rest     event.Batch
}

func boundsOf(s *detect.Spec, c detect.Config) bounds {
	x := bounds{
		groups: map[string]uint64{"16": 16, "4": 4, "2": 2}[s.Option(c, groupsOption.Name)],
		lines:  map[string]int{"1M": 1 << 20, "64K": 1 << 16, "1K": 1 << 10}[s.Option(c, wordsOption.Name)] / shadow.LineCells,
	}
	x.pairs = map[string]uint64{"64K": 1 << 16, "1M": 1 << 20}[s.Option(c, pairsOption.Name)]
	if w := c.Watch; w != nil {
		x.watch, x.threads = w, w.Blocks != nil || w.Threads != nil
	}
	return x
}

// watches reports whether the accesses of a thread are tracked.
func (x *bounds) watches(warp uint32, lane int) bool {
	return !x.threads || x.watch.Thread(x.launch, warp, lane)
}

// reports reports whether races on a location are reported.
func (x *bounds) reports(space event.Space, at uint64) bool {
	return x.watch == nil || x.watch.Object == nil || x.watch.Object(space, x.launch.ID, at)
}

// begin begins a launch. It returns a note about groups that are not tracked.
func (x *bounds) begin(l *event.Launch) string {
	x.launch, x.admitted, x.refused = l, nil, false
	if x.groups == 0 || l.Grid.Count() <= x.groups {
		return ""
	}
	return fmt.Sprintf("hirace tracked the first %d of the %d blocks of launch %d of kernel %s, as groups=%d asks.",
		x.groups, l.Grid.Count(), l.ID, l.Kernel, x.groups)
}

// tracks reports whether the block of a warp is one whose threads are tracked.
func (x *bounds) tracks(warp, perBlock uint32) bool {
	return x.groups == 0 || uint64(warp/perBlock) < x.groups
}

// admit reduces an access to the lanes that are watched and whose words have metadata, or can still get some: lines are
// admitted on first access. The access and batch that it returns are valid until the next call. If no lane is left, the
// access is nil.
func (x *bounds) admit(b *event.Batch, e *event.Event) (*event.Batch, *event.Event) {
	bounded := x.lines != 0 && e.Space == event.Global
	if !bounded && !x.threads {
		return b, e
	}
	if x.admitted == nil {
		x.admitted = map[uint64]bool{}
	}
	mask := uint32(0)
	x.rest.Addrs = x.rest.Addrs[:0]
	for m := e.Mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		addr := b.AddrOf(e, lane)
		if !x.watches(e.Warp, lane) {
			continue
		}
		if bounded && !(x.fits(addr/lineBytes) && x.fits((addr+uint64(e.Size)-1)/lineBytes)) {
			x.refused = true
			continue
		}
		mask |= 1 << lane
		x.rest.Addrs = append(x.rest.Addrs, addr)
	}
	switch mask {
	case e.Mask:
		return b, e
	case 0:
		return nil, nil
	}
	part := *e
	part.Mask, part.Side, part.Flags = mask, 0, part.Flags&^event.FlagRows|event.FlagScattered
	return &x.rest, &part
}

func (x *bounds) fits(line uint64) bool {
	if x.admitted[line] {
		return true
	}
	if len(x.admitted) == x.lines {
		return false
	}
	x.admitted[line] = true
	return true
}

// end returns a note about accesses that were skipped.
func (x *bounds) end(l *event.Launch) string {
	if !x.refused {
		return ""
	}
	return fmt.Sprintf("hirace kept metadata for the first %d words of global memory that launch %d of kernel %s accessed, as words bounds it. Races elsewhere are not reported.",
		x.lines*shadow.LineCells, l.ID, l.Kernel)
}
