package session

import (
	"fmt"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
)

// Watch selects what is judged in a run. Kernels that are not watched run without events. In the others every access is
// judged, because unwatched accesses may order watched ones; races that are not watched are not reported.
type Watch struct {
	Kernel, SkipKernel     *regexp.Regexp // by demangled name; nil: all, none
	Variable, SkipVariable *regexp.Regexp // by the name of the variable or allocation of the race, as in reports
	Blocks, Threads        []detect.Range // by number: of a block in the grid, of a thread in its block; none: all
	Addresses              []detect.Range // of global memory; none: all, and shared memory
}

// kernel reports whether a kernel, given by its linker name, is watched.
func (w *Watch) kernel(name string) bool {
	if w.Kernel == nil && w.SkipKernel == nil {
		return true // without demangling: see once.launch
	}
	name = report.Demangle(name)
	return (w.Kernel == nil || names(w.Kernel, name)) && (w.SkipKernel == nil || !names(w.SkipKernel, name))
}

// names reports whether a filter matches a name or is a substring of it. A name as shown in reports, such as
// scan<4>(int*), is not a regular expression that matches itself.
func names(filter *regexp.Regexp, name string) bool {
	return filter.MatchString(name) || strings.Contains(name, filter.String())
}

// named returns those of kernels, by linker name, that may be meant by a launch that names no kernel: the watched ones,
// or only the one that the filter names exactly, if there is one.
func (w *Watch) named(kernels []string) []string {
	if w.Kernel == nil {
		return kernels
	}
	var watched []string
	for _, k := range kernels {
		if !w.kernel(k) {
			continue
		}
		if CallName(k) == w.Kernel.String() {
			return []string{k}
		}
		watched = append(watched, k)
	}
	return watched
}

// kernelFlags are the flags that select kernels, as they were given.
func (w *Watch) kernelFlags() string { return flagsOf("kernel", w.Kernel, w.SkipKernel) }

// flagsOf returns the flags of two filters.
func flagsOf(name string, only, skip *regexp.Regexp) string {
	var flags []string
	if only != nil {
		flags = append(flags, fmt.Sprintf("--%s %s", name, only))
	}
	if skip != nil {
		flags = append(flags, fmt.Sprintf("--skip-%s %s", name, skip))
	}
	return strings.Join(flags, " ")
}

// variables reports whether the memory of a race decides if it is reported.
func (w *Watch) variables() bool { return w.Variable != nil || w.SkipVariable != nil }

// detectors returns the watch in the form for detectors, and nil if they report every race. object names memory.
func (w *Watch) detectors(object func(event.Space, uint64, uint32) report.Object) *detect.Watch {
	if !w.variables() && w.Blocks == nil && w.Threads == nil && w.Addresses == nil {
		return nil
	}
	d := &detect.Watch{Blocks: w.Blocks, Threads: w.Threads}
	if w.variables() || w.Addresses != nil {
		d.Object = func(space event.Space, launch uint32, address uint64) bool {
			if w.Addresses != nil && (space != event.Global || !detect.Within(w.Addresses, address)) {
				return false
			}
			if !w.variables() {
				return true
			}
			o := object(space, address, launch)
			name := o.Name
			if o.Named {
				name = report.BareName(name)
			}
			return (w.Variable == nil || w.Variable.MatchString(name)) && (w.SkipVariable == nil || !w.SkipVariable.MatchString(name))
		}
	}
	return d
}

// raceFlags are the flags that select races, as they were given.
func (w *Watch) raceFlags() string {
	var flags []string
	for _, r := range []struct {
		name, prefix string
		list         []detect.Range
	}{{"blocks", "", w.Blocks}, {"threads", "", w.Threads}, {"addresses", "0x", w.Addresses}} {
		var words []string
		for _, x := range r.list {
			words = append(words, x.Text(r.prefix))
		}
		if words != nil {
			flags = append(flags, fmt.Sprintf("--%s %s", r.name, strings.Join(words, ",")))
		}
	}
	if w.variables() {
		flags = append(flags, flagsOf("variable", w.Variable, w.SkipVariable))
	}
	return strings.Join(flags, " ")
}

// note says which races are reported, and is "" if all are.
func (w *Watch) note() string {
	flags := w.raceFlags()
	if flags == "" {
		return ""
	}
	return "Only races that " + flags + " chooses are reported."
}
