package verify

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/verify/explore"
)

// Checkpoint is a file with the state of a search under scoped RC11: the number of the next part of the search, and
// what was found before it.
type Checkpoint struct {
	file     string
	identity string // of the program and the options of the search
	state    *saved // read from the file; nil if there was none
	written  time.Time
	err      error // of writing
}

// checkpointVersion is raised when the parts of a search change, or when the saved state changes.
const checkpointVersion = 7

// between is the time between two checkpoints.
const between = 10 * time.Second

// saved is the content of the file.
type saved struct {
	Version  int
	Identity string
	Next     []int32
	Counts   explore.Result
	Filtered int
	// EachExecution says that the search was requested by reads-from classes but explores each execution.
	EachExecution bool `json:",omitempty"`

	Outcomes []Outcome
	Findings []savedFinding

	Counterexample *Finding
}

type savedFinding struct {
	Error   explore.ErrorKind
	Finding Finding
}

// identity identifies a finding across searches: the numbers of places in a key are valid within one search only.
func (f *Finding) identity(kind explore.ErrorKind) string {
	var at []string
	for i := range f.Sides {
		at = append(at, fmt.Sprintf("%+v", f.Sides[i].frames))
	}
	if kind == explore.DataRace || kind == explore.HeterogeneousRace || kind == explore.VolatileRace || kind == explore.PolledRace {
		slices.Sort(at)
	}
	return fmt.Sprint(kind, at)
}

// envelope protects the file against changes.
type envelope struct {
	SHA256 string
	Search json.RawMessage
}

// OpenCheckpoint reads a file, if it exists. The parts of identity name the program and the options of the search. A
// file of another search is an error.
func OpenCheckpoint(file string, identity ...string) (*Checkpoint, error) {
	digest := sha256.New()
	for _, part := range identity {
		fmt.Fprintf(digest, "%d\n%s", len(part), part)
	}
	c := &Checkpoint{file: file, identity: hex.EncodeToString(digest.Sum(nil)), written: time.Now()}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		f, err := c.temporary() // so that an error of writing is reported before the search
		if err == nil {
			err = errors.Join(f.Close(), os.Remove(f.Name()))
		}
		return c, err
	}
	if err != nil {
		return nil, err
	}
	var e envelope
	s := &saved{}
	if err = json.Unmarshal(data, &e); err == nil {
		err = json.Unmarshal(e.Search, s)
	}
	sum := sha256.Sum256(e.Search)
	switch {
	case err != nil, e.SHA256 != hex.EncodeToString(sum[:]):
		return nil, fmt.Errorf("%s: no checkpoint of verify, or a damaged one; remove it, or name another file", file)
	case s.Version != checkpointVersion || s.Identity != c.identity:
		return nil, fmt.Errorf("%s: the checkpoint is of another program, other options or another version of fencepost; remove it, or name another file", file)
	}
	c.state = s
	return c, nil
}

// Resumed returns the number of executions explored before.
func (c *Checkpoint) Resumed() int {
	if c.state == nil {
		return 0
	}
	return c.state.Counts.Executions
}

// Close removes the file if the search is complete. It returns the error of writing the file.
func (c *Checkpoint) Close(r *Result) error {
	if c.err == nil && !r.Stopped && r.Refusal == "" {
		if err := os.Remove(c.file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.err
}

// restore gives v the findings of the file.
func (c *Checkpoint) restore(v *verifier) (from []int32) {
	if c.state == nil {
		return nil
	}
	v.result.Result, v.result.Filtered, v.counterexample = c.state.Counts, c.state.Filtered, c.state.Counterexample
	for i := range c.state.Outcomes {
		o := c.state.Outcomes[i]
		v.outcomes[o.State] = &o
	}
	v.restored = map[string]key{}
	for i := range c.state.Findings {
		f := c.state.Findings[i]
		k := key{f.Error, restored, int32(i)}
		v.findings[k] = &f.Finding
		v.restored[f.Finding.identity(f.Error)] = k
	}
	return c.state.Next
}

// note takes the findings of v before the part next, and writes them if now is set or the last write was long ago.
func (c *Checkpoint) note(v *verifier, next []int32, now bool) {
	if c.err != nil || !now && time.Since(c.written) < between {
		return
	}
	s := saved{Version: checkpointVersion, Identity: c.identity, Next: next, Counts: v.result.Result, Filtered: v.result.Filtered,
		Counterexample: v.counterexample, EachExecution: v.result.Equivalence == EachExecution}
	for _, o := range v.outcomes {
		s.Outcomes = append(s.Outcomes, *o)
	}
	for k, f := range v.findings {
		s.Findings = append(s.Findings, savedFinding{k.kind, *f})
	}
	slices.SortFunc(s.Outcomes, func(a, b Outcome) int { return strings.Compare(a.State, b.State) })
	slices.SortFunc(s.Findings, func(a, b savedFinding) int { return compareFindings(&a.Finding, &b.Finding) })
	c.err = c.write(&s)
	c.written = time.Now()
}

// write replaces the file atomically: a reader finds the old state or the new one.
func (c *Checkpoint) write(s *saved) error {
	search, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(search)
	data, err := json.Marshal(envelope{hex.EncodeToString(sum[:]), search})
	if err != nil {
		return err
	}
	f, err := c.temporary()
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.file)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// temporary creates a file beside the checkpoint.
func (c *Checkpoint) temporary() (*os.File, error) {
	return os.CreateTemp(filepath.Dir(c.file), filepath.Base(c.file)+".*")
}

// plainSide is a Side with all its fields exported.
type plainSide struct {
	File, What, Thread, Of, Variable string
	Line, Col                        int
	Block, In                        event.Dim3
	Frames                           []event.Frame
	Op                               detect.Op
}

// MarshalJSON implements json.Marshaler.
func (s Side) MarshalJSON() ([]byte, error) {
	return json.Marshal(plainSide{s.File, s.What, s.Thread, s.Of, s.variable, s.Line, s.Col, s.block, s.in, s.frames, s.op})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Side) UnmarshalJSON(data []byte) error {
	var p plainSide
	err := json.Unmarshal(data, &p)
	*s = Side{File: p.File, Line: p.Line, Col: p.Col, What: p.What, Thread: p.Thread, Of: p.Of, block: p.Block, in: p.In, frames: p.Frames, op: p.Op,
		variable: p.Variable}
	return err
}
