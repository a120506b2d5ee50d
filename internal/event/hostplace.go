package event

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// HostPlace formats the call stack of a host operation, innermost frame first, as the end of a HostOp's name: a line
// for each frame that has a source line. A line "#N" before a frame gives its Graph. CutHostPlace removes it again.
func HostPlace(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		if f.File != "" && f.Line > 0 {
			if f.Graph != 0 {
				fmt.Fprintf(&b, "\n#%d", f.Graph)
			}
			fmt.Fprintf(&b, "\n%s:%d %s", f.File, f.Line, f.Function)
		}
	}
	return b.String()
}

// CutHostPlace separates the name of a HostOp from the call stack that HostPlace has appended.
func CutHostPlace(name string) (call string, frames []Frame) {
	call, rest, _ := strings.Cut(name, "\n")
	graph := 0
	for line := range strings.Lines(rest) {
		line = strings.TrimSuffix(line, "\n")
		if launch, ok := strings.CutPrefix(line, "#"); ok && !strings.Contains(line, ":") {
			graph, _ = strconv.Atoi(launch)
			continue
		}
		at := strings.LastIndexByte(line, ':')
		number, function, _ := strings.Cut(line[at+1:], " ")
		if n, err := strconv.Atoi(number); err == nil && at > 0 {
			frames = append(frames, Frame{File: line[:at], Line: n, Function: function, Graph: uint32(graph)})
			graph = 0
		}
	}
	return call, frames
}

// HostText returns the name of a HostOp for messages: "cudaFree at prog.cu:12".
func HostText(name string) string {
	call, frames := CutHostPlace(name)
	if len(frames) == 0 {
		return call
	}
	return fmt.Sprintf("%s at %s:%d", call, path.Base(frames[0].File), frames[0].Line)
}
