package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/peak"
	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/verify"
)

// numbered is the name of the nth file of several, from 1: "lock.sched", "lock-2.sched".
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := filepath.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}

// writeFindings writes the requested files for each finding. launch is the number of the launch among those of its
// kernel.
func (o *options) writeFindings(r *verify.Result, launch int) error {
	var all []*verify.Finding
	for i := range r.Findings {
		all = append(all, &r.Findings[i])
	}
	if r.Counterexample != nil {
		all = append(all, r.Counterexample)
	}
	schedules := 0
	for i, f := range all {
		if f.Drawing != nil {
			f.DrawingFile = numbered(o.graph, i+1)
			if err := os.WriteFile(f.DrawingFile, picture(f.Drawing, f.DrawingFile), 0o666); err != nil {
				return &unwrittenError{err}
			}
		}
		if s := f.Schedule; o.kernel.schedule != "" && s != nil {
			schedules++
			f.ScheduleFile = numbered(o.kernel.schedule, schedules)
			if err := os.WriteFile(f.ScheduleFile, []byte(scheduleFile(f, launch).String()), 0o666); err != nil {
				return &unwrittenError{err}
			}
		}
	}
	return nil
}

// picture draws an execution in the format that the name of a file asks for.
func picture(d *verify.Drawing, file string) []byte {
	if filepath.Ext(file) == ".png" {
		return d.PNG()
	}
	return []byte(d.SVG())
}

// tellTimes reports the size of the search, if that is requested.
func (o *options) tellTimes(w io.Writer, took time.Duration, rep *report.Report) {
	if !o.times {
		return
	}
	v := rep.Verify
	v.Seconds, v.Memory = took.Seconds(), peak.Memory()
	fmt.Fprintf(w, "fencepost: at most %d events in an execution; %.3f s, %d MB\n", v.Events, v.Seconds, (v.Memory+1<<20-1)>>20)
}

// scheduleFile makes the schedule file of a finding.
func scheduleFile(f *verify.Finding, launch int) *session.ScheduleFile {
	s := f.Schedule
	file := &session.ScheduleFile{Remark: "an execution with the " + f.Title + fmt.Sprintf(" [%s], for --schedule of \"fencepost check\" and \"fencepost run\"", f.Kind),
		Kernel: report.Demangle(s.Kernel), Launch: launch, Grid: s.Grid, Block: s.Block}
	for _, t := range s.Turns {
		turn := session.ScheduleTurn{Block: t.Block, Thread: t.Thread, Kind: t.Kind, Remark: t.What}
		if t.Frames != nil {
			turn.File, turn.Line = session.ScheduledPlace(t.Frames)
			turn.File = filepath.Base(turn.File)
		}
		file.Turns = append(file.Turns, turn)
	}
	return file
}
