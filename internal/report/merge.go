package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// Merge combines findings that are one defect to a reader: those of one detector whose accesses are at the same source
// places, such as the races of one `x += 1` in which the write races with the read and with the write. Races are
// combined whatever their kinds are, because the kind that a run shows may depend on its schedule. Counts are added.
// The details are those of the most severe finding (see graver) and, among equals, those of the first. The cause is the
// common cause of the findings of the highest severity. Races that several detectors found between the same source
// places are one finding in the words of the first of them, with an observed race before a predicted one; it names the
// other detectors. Merge gives every finding its ID and its group, and puts the findings into the order of a report:
// the most severe first (a limit must not hide an error after warnings), then by source place and kind.
//
// Findings that have an Apart are combined only if they have the same.
//
// Findings of several runs (seeds) are merged by one call. Neither the IDs nor the order depend on the schedules of the
// runs, or on the folder in which the program was built.
func Merge(findings []Finding) []Finding {
	at := make(map[string]int)
	var out []Finding
	for _, f := range findings {
		key := f.key()
		i, seen := at[f.Detector+"\x00"+key]
		if !seen {
			f.ID = id(key)
			at[f.Detector+"\x00"+key] = len(out)
			out = append(out, f)
			continue
		}
		g := &out[i]
		count, addresses, cause, severity := g.Count+f.Count, max(g.Addresses, f.Addresses), g.Cause.same(f.Cause), g.Severity
		if f.graver(g) {
			f.ID = g.ID
			*g = f
		}
		if f.Severity == severity {
			if cause != nil {
				cause.First = g.Cause.First
			}
			g.Cause = cause
		}
		g.Count, g.Addresses = count, addresses
	}
	out = inOrder(uniteDetectors(out))
	group(out)
	return out
}

// graver is an order of the findings at one pair of places that is independent of the schedule: by severity, observed
// before predicted, by kind. Of the findings of one statement such as x += 1, the race of two writes comes first,
// because its fix also fixes the others.
func (f *Finding) graver(g *Finding) bool {
	if f.Severity != g.Severity {
		return f.Severity > g.Severity
	}
	if f.Predicted != g.Predicted {
		return g.Predicted
	}
	if f.Kind != g.Kind {
		return f.Kind < g.Kind
	}
	return (f.Kind == detect.Unordered || f.Kind == detect.MissingBarrier) && f.twoUpdates() && !g.twoUpdates()
}

// twoUpdates reports whether both accesses of a race are plain writes at one place.
func (f *Finding) twoUpdates() bool {
	if f.Class != detect.Race || len(f.Accesses) != 2 || f.Accesses[0].Op != detect.Write || f.Accesses[1].Op != detect.Write {
		return false
	}
	p, q := f.Accesses[0].Place(), f.Accesses[1].Place()
	return p.File == q.File && p.Line == q.Line && p.Column == q.Column
}

// inOrder sorts findings in the order of a report. It ignores which access came first, because that depends on the
// schedule.
func inOrder(findings []Finding) []Finding {
	type placed struct {
		finding *Finding
		places  []event.Frame
	}
	list := make([]placed, len(findings))
	for i := range findings {
		f := &findings[i]
		list[i] = placed{f, make([]event.Frame, len(f.Accesses))}
		for j := range f.Accesses {
			list[i].places[j] = f.Accesses[j].Place()
		}
		slices.SortFunc(list[i].places, comparePlaces)
	}
	slices.SortStableFunc(list, func(x, y placed) int {
		a, b := x.finding, y.finding
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), slices.CompareFunc(x.places, y.places, comparePlaces),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Detector, b.Detector), cmp.Compare(a.ID, b.ID))
	})
	out := make([]Finding, len(list))
	for i := range list {
		out[i] = *list[i].finding
	}
	return out
}

func comparePlaces(x, y event.Frame) int {
	return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column), cmp.Compare(x.PTXLine, y.PTXLine))
}

// Cut keeps at most the given number of findings, the first ones, and at least one of each severity and kind. It counts
// the others.
func (r *Report) Cut(most int) {
	if len(r.Findings) <= most {
		return
	}
	type sort struct {
		severity detect.Severity
		kind     detect.Kind
	}
	seen := map[sort]bool{}
	kept := r.Findings[:0:0]
	for i, f := range r.Findings {
		g := sort{f.Severity, f.Kind}
		if i < most || !seen[g] {
			kept = append(kept, f)
		}
		seen[g] = true
	}
	r.More += len(r.Findings) - len(kept)
	r.Findings = kept
	group(kept) // the first finding of a group may have been removed
}

// uniteDetectors combines the races that several detectors found between the same source places.
func uniteDetectors(findings []Finding) []Finding {
	by := map[string]int{} // the findings of the first detector, by places
	var out []Finding
	for _, predicted := range []bool{false, true} {
		for _, f := range findings {
			if f.Predicted != predicted {
				continue
			}
			if !f.unordered() {
				out = append(out, f)
				continue
			}
			places := f.key()
			i, seen := by[places]
			if !seen {
				by[places] = len(out)
				out = append(out, f)
				continue
			}
			for _, name := range append([]string{f.Detector}, f.Also...) {
				if !out[i].By(name) {
					out[i].Also = append(slices.Clip(out[i].Also), name)
				}
			}
		}
	}
	return out
}

// unordered reports whether the finding is of unordered accesses. A read-only load is wrong for another reason.
func (f *Finding) unordered() bool { return f.Class == detect.Race && f.Kind != detect.ReadOnlyLoad }

// key identifies the defect: its places and, unless it is a race within a launch, its kind.
func (f *Finding) key() string {
	if f.Apart != "" {
		return f.Apart + "\n" + f.places()
	}
	if f.unordered() && f.Kind != detect.InterKernel { // which no synchronisation within a launch would fix
		return f.places()
	}
	return string(f.Kind) + "\n" + f.places()
}

// places names the source places of the accesses, in an order independent of the schedule.
func (f *Finding) places() string {
	sides := make([]string, len(f.Accesses))
	for i := range f.Accesses {
		a := &f.Accesses[i]
		p := a.Place()
		switch {
		case a.Host != "" && p.File != "":
			sides[i] = fmt.Sprintf("host %s %s:%d", hostCall(a.Host), path.Base(p.File), p.Line)
		case a.Host != "":
			sides[i] = "host " + hostCall(a.Host)
		case p.File != "":
			sides[i] = fmt.Sprintf("%s:%d:%d", path.Base(p.File), p.Line, p.Column)
			if a.Space == event.Shared { // compilers give several statements of a line one place
				sides[i] += " shared"
			}
		default:
			sides[i] = fmt.Sprintf("%s ptx %d", p.Function, p.PTXLine)
		}
	}
	slices.Sort(sides)
	if len(sides) == 0 {
		sides = []string{f.Kernel, f.Message}
	}
	return strings.Join(sides, "\n")
}

// hostCall is the name of a host operation's call without the parts that differ between calls: "cudaMemcpy (stream 2)".
func hostCall(name string) string {
	call, _, _ := strings.Cut(name, " ")
	return call
}

func id(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "FP-" + hex.EncodeToString(sum[:4])
}

// Place is the frame to show to the user: the innermost one in a file of the user, so that a race inside atomicAdd is
// shown at the call of atomicAdd. If there is none it is the innermost that has a file, and if no frame has a file the
// innermost.
func (a *Access) Place() event.Frame { return userFrame(a.Frames) }

func userFrame(frames []event.Frame) event.Frame {
	if i := userIndex(frames); i >= 0 {
		return frames[i]
	}
	return event.Frame{}
}

// userIndex is the index of the frame that Place returns, -1 if there are no frames.
func userIndex(frames []event.Frame) int {
	best := -1
	for i, f := range frames {
		if f.File == "" || f.Line == 0 {
			continue
		}
		if !systemFile(f.File) {
			return i
		}
		if best < 0 {
			best = i
		}
	}
	if best < 0 && len(frames) > 0 {
		return 0
	}
	return best
}
