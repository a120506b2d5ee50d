package session

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/report"
)

// MaxScheduleFile is the greatest size of a schedule file in bytes.
const MaxScheduleFile = 64 << 20

// ScheduleFile gives the order in which the threads of one launch execute their operations. docs/verify.md describes
// the format.
type ScheduleFile struct {
	Name        string
	Remark      string // about the whole file
	Kernel      string // demangled
	Launch      int    // number among the launches of the kernel, from 1
	Grid, Block event.Dim3
	Turns       []ScheduleTurn
}

// ScheduleTurn is one operation of one thread.
type ScheduleTurn struct {
	Pos           Pos
	Block, Thread uint64 // numbers: x varies fastest, then y and z
	Kind          engine.RequestKind
	File          string // "" if the place does not matter
	Line          int
	Remark        string
}

// turnKinds are the operations by their names in schedule files.
var turnKinds = map[string]engine.RequestKind{"load": engine.RequestLoad, "store": engine.RequestStore, "atomic": engine.RequestAtomic,
	"fence": engine.RequestFence, "barrier": engine.RequestBarrier, "arrive": engine.RequestArrive, "exit": engine.RequestExit, "fail": engine.RequestFault}

// String is the text of the file.
func (f *ScheduleFile) String() string {
	var b strings.Builder
	remark := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsControl(r) {
				return ' '
			}
			return r
		}, s)
	}
	fmt.Fprintf(&b, "# %s\nkernel %s\nlaunch %d\ngrid %d %d %d\nblock %d %d %d\n", remark(f.Remark), f.Kernel, f.Launch,
		f.Grid.X, f.Grid.Y, f.Grid.Z, f.Block.X, f.Block.Y, f.Block.Z)
	names := map[engine.RequestKind]string{}
	for name, kind := range turnKinds {
		names[kind] = name
	}
	for i := range f.Turns {
		t := &f.Turns[i]
		line := fmt.Sprintf("%d/%d %s", t.Block, t.Thread, names[t.Kind])
		if t.File != "" && !strings.Contains(t.File, "#") {
			line += fmt.Sprintf(" %s:%d", t.File, t.Line)
		}
		if t.Remark != "" {
			line = fmt.Sprintf("%-40s # %s", line, remark(t.Remark))
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// scheduleReader reads a schedule file and collects errors.
type scheduleReader struct {
	file *ScheduleFile
	seen map[string]bool
	errs FileErrors
}

func (r *scheduleReader) fail(pos Pos, format string, args ...any) {
	r.errs = append(r.errs, &FileError{File: r.file.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// ReadScheduleFile reads a schedule file. Errors are a *FileError or FileErrors.
func ReadScheduleFile(name string, data []byte) (*ScheduleFile, error) {
	if len(data) > MaxScheduleFile {
		return nil, &FileError{File: name, Msg: fmt.Sprintf("a schedule file has at most %d bytes, this one has %d", MaxScheduleFile, len(data))}
	}
	r := &scheduleReader{file: &ScheduleFile{Name: name, Launch: 1}, seen: map[string]bool{}}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) != "" && len(r.errs) < 20 {
			r.line(n, strings.TrimRight(line, " \t\r\n"))
		}
	}
	for _, key := range []string{"kernel", "grid", "block"} {
		if !r.seen[key] && len(r.errs) == 0 {
			r.fail(Pos{1, 1}, "there is no %q: a schedule begins with kernel, launch, grid and block, as \"fencepost verify --schedule\" writes it", key)
		}
	}
	if err := r.errs.err(); err != nil {
		return nil, err
	}
	return r.file, nil
}

// word is a word of a line.
type word struct {
	pos  Pos
	text string
}

func words(n int, line string) (out []word) {
	for at := 0; at < len(line); {
		if line[at] == ' ' || line[at] == '\t' {
			at++
			continue
		}
		end := at + strings.IndexAny(line[at:]+" ", " \t")
		out = append(out, word{Pos{n, at + 1}, line[at:end]})
		at = end
	}
	return out
}

// line reads line n, which is not empty.
func (r *scheduleReader) line(n int, line string) {
	ws := words(n, line)
	key := ws[0]
	if strings.Contains(key.text, "/") {
		r.turn(ws, line)
		return
	}
	if !slices.Contains([]string{"kernel", "launch", "grid", "block"}, key.text) {
		r.fail(key.pos, "%q is neither a turn, as 0/1 load, nor kernel, launch, grid or block", clipped(key.text))
		return
	}
	switch {
	case r.seen[key.text]:
		r.fail(key.pos, "%s is said twice", key.text)
		return
	case len(r.file.Turns) > 0:
		r.fail(key.pos, "%s stands behind a turn", key.text)
		return
	case len(ws) == 1:
		r.fail(key.pos, "%s has no value", key.text)
		return
	}
	r.seen[key.text] = true
	switch key.text {
	case "kernel":
		r.file.Kernel = strings.TrimSpace(line[len("kernel")+ws[0].pos.Column-1:])
	case "launch":
		r.file.Launch = int(r.number(ws[1], 1, 1<<30))
		r.end(ws, 2)
	case "grid", "block":
		if len(ws) < 4 {
			r.fail(key.pos, "%s has three numbers: x, y and z", key.text)
			return
		}
		d := event.Dim3{X: uint32(r.number(ws[1], 1, 1<<31-1)), Y: uint32(r.number(ws[2], 1, 1<<16)), Z: uint32(r.number(ws[3], 1, 1<<16))}
		if r.end(ws, 4); key.text == "grid" {
			r.file.Grid = d
		} else {
			r.file.Block = d
		}
	}
}

func (r *scheduleReader) number(w word, least, most uint64) uint64 {
	v, err := strconv.ParseUint(w.text, 10, 64)
	if err != nil || v < least || v > most {
		r.fail(w.pos, "%q is no number from %d to %d", clipped(w.text), least, most)
		return least
	}
	return v
}

// end requires that there are no more than n words.
func (r *scheduleReader) end(ws []word, n int) {
	if len(ws) > n {
		r.fail(ws[n].pos, "%q is too much in this line", clipped(ws[n].text))
	}
}

// turn reads "BLOCK/THREAD OPERATION [FILE:LINE]". File names may have spaces.
func (r *scheduleReader) turn(ws []word, line string) {
	block, thread, _ := strings.Cut(ws[0].text, "/")
	t := ScheduleTurn{Pos: ws[0].pos}
	of := func(text string, column int, d event.Dim3, what string) uint64 {
		w := word{Pos{ws[0].pos.Line, column}, text}
		if d.Count() == 0 {
			return 0 // a missing number has been reported
		}
		v, err := strconv.ParseUint(text, 10, 64)
		if err != nil || v >= d.Count() {
			r.fail(w.pos, "%q is no %s: they are numbered from 0 to %d", clipped(text), what, d.Count()-1)
		}
		return v
	}
	t.Block = of(block, ws[0].pos.Column, r.file.Grid, "block of the grid")
	t.Thread = of(thread, ws[0].pos.Column+len(block)+1, r.file.Block, "thread of a block")
	if len(ws) == 1 {
		r.fail(ws[0].pos, "the turn has no operation")
		return
	}
	kind, ok := turnKinds[ws[1].text]
	if !ok {
		r.fail(ws[1].pos, "unknown operation %q%s", clipped(ws[1].text), nearest.Hint(ws[1].text, slices.Sorted(maps.Keys(turnKinds))))
	}
	if t.Kind = kind; len(ws) > 2 {
		place := strings.TrimSpace(line[ws[2].pos.Column-1:])
		i := strings.LastIndexByte(place, ':')
		n, err := strconv.Atoi(place[i+1:])
		if i <= 0 || err != nil || n < 1 {
			r.fail(ws[2].pos, "%q is no place: FILE:LINE is expected", clipped(place))
			return
		}
		t.File, t.Line = place[:i], n
	}
	r.file.Turns = append(r.file.Turns, t)
}

// replayer is an engine that replays the launch of a schedule file, and executes all others by another engine.
type replayer struct {
	engine.Engine
	file *ScheduleFile
	run  *once
	came int // number of launches of the kernel so far
}

// Run implements engine.Engine.
func (p *replayer) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	f := p.file
	if !Called(l.Kernel, f.Kernel) {
		return p.Engine.Run(ctx, l)
	}
	if p.came++; p.came != f.Launch {
		return p.Engine.Run(ctx, l)
	}
	if l.Grid != f.Grid || l.Block != f.Block {
		return engine.Stats{}, fmt.Errorf("%s: the launch has grid %v and block %v, and the schedule is of grid %v and block %v",
			f.Name, l.Grid, l.Block, f.Grid, f.Block)
	}
	replay := &engine.Replay{}
	for i := range f.Turns {
		t := &f.Turns[i]
		replay.Turns = append(replay.Turns, engine.Turn{Thread: int(t.Block*l.Block.Count() + t.Thread), Kind: t.Kind})
	}
	wrong := func(i int, reason string) error {
		return &FileError{File: f.Name, Pos: f.Turns[i].Pos, Msg: reason + ": the schedule is of another program, or of other arguments"}
	}
	replay.At = func(i int, place uint32) error {
		t := &f.Turns[i]
		file, line := ScheduledPlace(p.run.places.Frames(place))
		if t.File != "" && (line != t.Line || filepath.Base(file) != filepath.Base(t.File)) {
			return wrong(i, fmt.Sprintf("the thread comes to %s at %s:%d", t.Kind, file, line))
		}
		return nil
	}
	stats, err := replay.Run(ctx, l)
	if turn, ok := err.(*engine.TurnError); ok {
		reason := turn.Reason
		if file, line := ScheduledPlace(p.run.places.Frames(turn.Place)); line > 0 {
			reason += fmt.Sprintf(" at %s:%d", file, line)
		}
		err = wrong(turn.Turn, reason)
	}
	return stats, err
}

// missed says that the launch of the schedule did not occur; "" if it did.
func (p *replayer) missed() string {
	switch f := p.file; {
	case p.came == 0:
		return fmt.Sprintf("kernel %s was not launched", f.Kernel)
	case p.came < f.Launch:
		return fmt.Sprintf("launch %d of kernel %s did not come: there were %d", f.Launch, f.Kernel, p.came)
	}
	return ""
}

// ScheduledPlace is the name of a place in a schedule: its file and line in the source, or in the PTX if it has no
// source.
func ScheduledPlace(frames []event.Frame) (file string, line int) {
	if len(frames) == 0 {
		return "", 0
	}
	f := (&report.Access{Frames: frames}).Place()
	if f.File == "" {
		return f.PTXFile, f.PTXLine
	}
	return f.File, f.Line
}
