package session

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/ptx"
)

// lacking says why a kernel was not executed, and a way around it if there is one.
func lacking(u *cuda.Unchecked) string {
	const most = 3
	reasons := strings.Split(strings.TrimSpace(u.Err.Error()), "\n")
	var list ptx.ErrorList
	if errors.As(u.Err, &list) {
		reasons = messages(list, u.Language != event.Threads)
	}
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(reasons, "; ") + around(u)
}

// messages returns each message of a list once, with the first place that has it. The place is in the source if that is
// known. It is also in the PTX, unless the PTX was generated from that source, because its author has never seen it.
func messages(list ptx.ErrorList, generated bool) []string {
	dir, _ := os.Getwd() // without, names are shown as they are
	text := &report.Text{Dir: dir}
	var msgs []string
	seen := map[string]bool{}
	for _, e := range list {
		if seen[e.Msg] {
			continue
		}
		seen[e.Msg] = true
		source := sourceOf(text, e)
		switch {
		case source != "" && generated:
			msgs = append(msgs, source+": "+e.Msg)
		case source != "":
			msgs = append(msgs, fmt.Sprintf("%s: %s (%s:%d:%d)", source, e.Msg, e.File, e.Pos.Line, e.Pos.Col))
		default:
			msgs = append(msgs, e.Error())
		}
	}
	return msgs
}

// sourceOf names the place of an error in the source, and the calls that lead to it. It returns "" if the place is not
// known.
func sourceOf(t *report.Text, e *ptx.Error) string {
	const most = 6
	var places []string
	for _, s := range e.Source[:min(most, len(e.Source))] {
		places = append(places, t.Where(event.Frame{File: s.File, Line: s.Line, Column: s.Column, Function: s.Function}))
	}
	if n := len(e.Source) - most; n > 0 {
		places = append(places, fmt.Sprintf("%d more", n))
	}
	return strings.Join(places, ", called from ")
}

// around suggests how a kernel can avoid an instruction. Triton emits bulk copies and wgmma for devices from 9.0 on,
// and CUDA's headers have code for devices without mbarriers.
func around(u *cuda.Unchecked) string {
	why := u.Err.Error()
	switch {
	case u.Language == event.Triton && (strings.Contains(why, "wgmma.") || strings.Contains(why, "tcgen05.") || strings.Contains(why, "cp.async.bulk")):
		return "; Triton compiles for older devices without these"
	case u.Language == event.Threads && strings.Contains(why, "mbarrier.") && !strings.Contains(why, "cp.async.bulk"):
		return "; cuda::barrier, cuda::pipeline and memcpy_async do without these when compiled with -arch=sm_75"
	}
	return ""
}
