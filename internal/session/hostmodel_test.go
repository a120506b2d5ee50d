package session

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/report"
)

// hostModel determines what a list of API calls must return, and what must be reported. It is written from the manual
// and docs/findings.md and shares no code with the implementation. The accesses before an access are a set of bits.
type hostModel struct {
	rng     *rand.Rand
	mem     [11]modelMemory
	streams [6]modelStream
	events  [4]modelEvent
	legacy  modelStream
	own     modelStream // the per-thread default stream
	host    uint64      // accesses that come before what the host does next
	grave   uint64      // the same of destroyed blocking streams
	gone    uint64      // and of all destroyed streams

	accesses []modelAccess
	script   []string
	codes    []string
	last     int // the last error of the thread

	findings map[string]bool // "KIND CALL" of failed calls that are errors
	minor    map[string]bool // of those that are warnings
	refused  map[string]int  // launches refused, by the program's knowledge: unseen ones
	ignored  map[string]int  // other errors, unseen
	races    map[string]bool // "error", "warning"
	faulted  bool            // a kernel has touched what it must not
	unheard  bool            // a child launches a kernel
	ran      int
	exit     int
	over     bool
}

type modelMemory struct {
	made, live, byReset bool
	kind                int // 0 device, 1 managed, 2 pinned
	size                int
	generation          int
}

type modelStream struct {
	made, live, free bool // free: it does not wait for the default stream
	knows            uint64
	asked            uint64 // what a query has answered "not ready" of
}

type modelEvent struct {
	made, live, recorded bool
	saw                  uint64
	asked                uint64
}

type modelAccess struct {
	memory, generation, from, end int
	write, staged                 bool
	before                        uint64
}

const (
	hostSlot, nullSlot, unmappedSlot = 8, 9, 10
	hostBytes                        = 1 << 16
	errValue, errMemory, errConfig   = 1, 2, 9
	errFunction, errHandle           = 98, 400
	errNotReady                      = 600
)

func newHostModel(seed uint64) *hostModel {
	m := &hostModel{rng: rand.New(rand.NewPCG(seed, 11)), findings: map[string]bool{}, minor: map[string]bool{}, refused: map[string]int{},
		ignored: map[string]int{}, races: map[string]bool{}, codes: []string{"0"}}
	m.legacy, m.own = modelStream{made: true, live: true}, modelStream{made: true, live: true}
	return m
}

// stream returns the stream with a number in the script: -1 is the default stream, -2 that of the thread.
func (m *hostModel) stream(i int) *modelStream {
	switch i {
	case -1:
		return &m.legacy
	case -2:
		return &m.own
	}
	return &m.streams[i]
}

// begin enqueues an operation into a stream.
func (m *hostModel) begin(s *modelStream) {
	s.knows |= m.host
	switch {
	case s == &m.legacy:
		s.knows |= m.grave | m.own.knows
		for i := range m.streams {
			if o := &m.streams[i]; o.live && !o.free {
				s.knows |= o.knows
			}
		}
	case !s.free:
		s.knows |= m.legacy.knows
	}
}

// wait makes the host wait for all streams.
func (m *hostModel) wait() {
	m.host |= m.legacy.knows | m.own.knows | m.gone
	for i := range m.streams {
		if m.streams[i].live {
			m.host |= m.streams[i].knows
		}
	}
}

// touch is an access by an operation that has begun in a stream. done orders the stream after all accesses of an
// operation.
func (m *hostModel) touch(s *modelStream, slot, from, n int, write, staged bool) {
	x := &m.mem[slot]
	if slot >= hostSlot || n == 0 {
		return
	}
	a := modelAccess{slot, x.generation, from, from + n, write, staged, s.knows}
	for i, o := range m.accesses {
		if o.memory != a.memory || o.generation != a.generation || o.end <= a.from || a.end <= o.from || !o.write && !a.write || s.knows>>i&1 != 0 {
			continue
		}
		if o.staged {
			m.races["warning"] = true
		} else {
			m.races["error"] = true
		}
	}
	m.accesses = append(m.accesses, a)
}

func (m *hostModel) done(s *modelStream, from int) {
	for i := from; i < len(m.accesses); i++ {
		s.knows |= 1 << i
	}
}

// emit adds a call and what it returns.
func (m *hostModel) emit(code int, op string, args ...any) {
	m.script = append(m.script, op+strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
	m.codes = append(m.codes, fmt.Sprint(code))
	if code != 0 && code != errNotReady && op != "e" && op != "o" {
		m.last = code
	}
}

// misuse records the finding of a failed call.
func (m *hostModel) misuse(kind, call string) { m.findings[kind+" "+call] = true }

// size of a script: at most 64 accesses.
const hostSteps = 44

// generate makes a script. A careful program makes no mistakes except possibly a race.
func (m *hostModel) generate() {
	wrong := m.rng.IntN(3) // 0: none
	steps := 6 + m.rng.IntN(hostSteps)
	for i := 0; i < steps && !m.over && !m.faulted && len(m.accesses) < 60; i++ {
		m.step(wrong > 0 && m.rng.IntN(4) == 0)
	}
	if !m.over && m.rng.IntN(12) == 0 {
		m.exit = 3
		m.emit(0, "q", 3)
		m.codes = m.codes[:len(m.codes)-1]
	}
}

func (m *hostModel) step(wrong bool) {
	switch m.rng.IntN(24) {
	case 0, 1, 2:
		m.alloc(wrong)
	case 3, 4:
		m.free(wrong)
	case 5, 6, 7, 8:
		m.copy(wrong)
	case 9, 10:
		m.fill(wrong)
	case 11:
		m.makeStream(wrong)
	case 12:
		m.makeEvent(wrong)
	case 13, 14:
		m.useEvent(wrong)
	case 15:
		m.sync(wrong)
	case 16, 17, 18, 19, 20:
		m.launch(wrong)
	case 21:
		m.emit(m.last, "e")
		m.last = 0
		clear(m.refused)
		clear(m.ignored)
	default:
		m.process(wrong)
	}
}

// process forks, or resets the device.
func (m *hostModel) process(wrong bool) {
	switch k := m.rng.IntN(20); {
	case k < 2:
		m.wait()
		for i := range m.mem {
			if x := &m.mem[i]; x.live {
				x.live, x.byReset = false, true
			}
		}
		for i := range m.streams {
			m.streams[i].live = false
		}
		for i := range m.events {
			m.events[i].live = false
		}
		m.emit(0, "r")
	case k < 5:
		m.emit(0, "x")
	case k < 7:
		m.emit(3, "o", 0)
	case k == 7 && wrong:
		m.emit(3, "o", 1)
		m.unheard = true
	case k == 8 && wrong:
		m.emit(0, "K")
		m.codes = m.codes[:len(m.codes)-1]
		m.exit, m.over = 137, true
	}
}

// pickStream returns a stream and whether it can be used. A wrong stream was destroyed.
func (m *hostModel) pickStream(wrong bool) (int, bool) {
	var live, dead []int
	for i := range m.streams {
		if s := &m.streams[i]; s.live {
			live = append(live, i)
		} else if s.made {
			dead = append(dead, i)
		}
	}
	if wrong && len(dead) > 0 && m.rng.IntN(2) == 0 {
		return dead[m.rng.IntN(len(dead))], false
	}
	live = append(live, -1, -2)
	return live[m.rng.IntN(len(live))], true
}

func (m *hostModel) alloc(wrong bool) {
	slot := m.rng.IntN(hostSlot)
	if m.rng.IntN(3) > 0 {
		slot %= 3 // so that there are few, and accesses meet
	}
	x := &m.mem[slot]
	if x.live {
		return
	}
	if wrong && m.rng.IntN(3) == 0 {
		m.emit(errMemory, "m", slot, 0, uint64(1)<<60) // which is no finding, and leaves the pointer
		return
	}
	size := 256 << m.rng.IntN(5)
	next := modelMemory{made: true, live: true, size: size, generation: x.generation + 1}
	if m.rng.IntN(4) == 0 {
		i, ok := m.pickStream(wrong)
		if !ok {
			m.emit(errHandle, "a", slot, size, i)
			m.misuse("invalid-handle", "cudaMallocAsync")
			return
		}
		m.mem[slot] = next
		s, n := m.stream(i), len(m.accesses)
		m.begin(s)
		m.touch(s, slot, 0, size, true, false)
		m.done(s, n)
		m.emit(0, "a", slot, size, i)
		return
	}
	next.kind = m.rng.IntN(3)
	m.mem[slot] = next
	m.emit(0, "m", slot, next.kind, size)
}

// pickMemory returns live memory, or any slot if wrong is set.
func (m *hostModel) pickMemory(wrong bool) (int, bool) {
	var live []int
	for i := range m.mem[:hostSlot] {
		if m.mem[i].live {
			live = append(live, i)
		}
	}
	if wrong && m.rng.IntN(2) == 0 {
		return m.rng.IntN(len(m.mem)), true
	}
	if len(live) == 0 {
		return 0, false
	}
	return live[m.rng.IntN(len(live))], true
}

func (m *hostModel) free(wrong bool) {
	slot, ok := m.pickMemory(wrong)
	if !ok || slot == nullSlot {
		return
	}
	x := &m.mem[slot]
	op := []string{"f", "f", "h"}[x.kind]
	offset := 0
	if wrong {
		op = []string{"f", "h", "F"}[m.rng.IntN(3)]
		offset = 16 * (m.rng.IntN(3) / 2)
	} else if x.kind == 0 && m.rng.IntN(3) == 0 {
		op = "F"
	}
	call := map[string]string{"f": "cudaFree", "h": "cudaFreeHost", "F": "cudaFreeAsync"}[op]
	i, usable := -1, true
	args := []any{slot, offset}
	if op == "F" {
		i, usable = m.pickStream(wrong)
		args = append(args, i)
	}
	fits := map[string][]int{"f": {0, 1}, "h": {2}, "F": {0}}[op]
	code := errValue
	switch {
	case !usable:
		code = errHandle
		m.misuse("invalid-handle", call)
	case slot < hostSlot && !x.made && offset == 0 && op != "F":
		code = 0 // free(NULL)
	case slot < hostSlot && x.made && !x.live && x.byReset && offset == 0:
		m.minor["invalid-free "+call] = true
	case slot < hostSlot && x.made && !x.live && offset == 0:
		m.misuse("double-free", call)
	case slot >= hostSlot || !x.live || offset != 0 || !slices.Contains(fits, x.kind):
		m.misuse("invalid-free", call)
	default:
		code = 0
		if op == "F" {
			s, n := m.stream(i), len(m.accesses)
			m.begin(s)
			m.touch(s, slot, 0, x.size, true, false)
			m.done(s, n)
		} else {
			m.wait()
		}
		x.live = false
	}
	m.emit(code, op, args...)
}

// problem returns what is wrong with n bytes of a slot as an end of a copy, or "" if nothing is.
func (m *hostModel) problem(slot, offset, n int) string {
	x := &m.mem[slot]
	switch {
	case slot >= hostSlot || !x.made:
		return ""
	case !x.live && offset < x.size:
		return "freed-memory"
	case !x.live:
		return "invalid-pointer"
	case offset+n > x.size:
		return "call-out-of-bounds"
	}
	return ""
}

// place returns the kind of memory of a slot: "device", "managed", "pinned", "host" or "none".
func (m *hostModel) place(slot int) string {
	if slot < hostSlot && m.mem[slot].made {
		return []string{"device", "managed", "pinned"}[m.mem[slot].kind]
	}
	if slot == hostSlot {
		return "host"
	}
	return "none"
}

// end picks an end of a copy.
func (m *hostModel) end(wrong bool, n int) (slot, offset int, ok bool) {
	slot, ok = m.pickMemory(wrong)
	if m.rng.IntN(3) == 0 || !ok {
		slot = hostSlot
	}
	size := m.mem[slot].size
	if slot >= hostSlot || !m.mem[slot].made {
		size = 4096
	}
	if offset = 4 * m.rng.IntN(size/4); offset+n > size && !wrong {
		offset = 0
	}
	if slot < hostSlot && !m.mem[slot].made || slot >= nullSlot {
		offset = 0 // an address near nothing
	}
	if slot < hostSlot && m.mem[slot].made && !m.mem[slot].live {
		offset = min(offset, size-4)
	}
	return slot, offset, true
}

func (m *hostModel) copy(wrong bool) {
	n := 4 * (1 + m.rng.IntN(64))
	dst, to, _ := m.end(wrong, n)
	src, from, _ := m.end(wrong, n)
	if dst == src {
		return
	}
	async := m.rng.IntN(2)
	i, usable, call := -1, true, "cudaMemcpy"
	if async == 1 {
		i, usable = m.pickStream(wrong)
		call = "cudaMemcpyAsync"
	}
	d, s := m.place(dst), m.place(src)
	direction := 4
	device := func(p string) bool { return p != "host" && p != "none" }
	if m.rng.IntN(2) == 0 {
		direction = map[[2]bool]int{{false, false}: 0, {true, false}: 1, {false, true}: 2, {true, true}: 3}[[2]bool{device(d), device(s)}]
	}
	if wrong && m.rng.IntN(3) == 0 {
		direction = m.rng.IntN(6)
	}
	kind := m.copyProblem(usable, direction, dst, to, src, from, n, d, s)
	code := 0
	switch kind {
	case "":
		m.doCopy(m.stream(i), async == 1, dst, to, src, from, n, d, s)
	case "invalid-handle":
		code = errHandle
	default:
		code = errValue
		if direction > 4 {
			code = 21
		}
	}
	if kind != "" {
		m.misuse(kind, call)
	}
	m.emit(code, "c", dst, to, src, from, n, direction, async, i)
}

// copyProblem returns what is wrong with a copy. The stream is checked first, then the direction, the destination and
// the source.
func (m *hostModel) copyProblem(usable bool, direction, dst, to, src, from, n int, d, s string) string {
	if !usable {
		return "invalid-handle"
	}
	if direction > 4 {
		return "wrong-direction"
	}
	for _, p := range []string{m.problem(dst, to, n), m.problem(src, from, n)} {
		if p != "" {
			return p
		}
	}
	for _, x := range []struct {
		place  string
		device bool
	}{{d, direction == 1 || direction == 3}, {s, direction == 2 || direction == 3}} {
		switch {
		case x.place == "none":
			return "invalid-pointer"
		case direction == 4:
		case x.device && x.place == "host", !x.device && x.place == "device":
			return "wrong-direction"
		}
	}
	return ""
}

// doCopy is a valid copy: its accesses, and whether the host waits for it.
func (m *hostModel) doCopy(st *modelStream, async bool, dst, to, src, from, n int, d, s string) {
	hostly := func(p string) bool { return p == "host" || p == "pinned" }
	first := len(m.accesses)
	m.begin(st)
	staged := !async && !hostly(d) && s == "host"
	if staged {
		m.host |= st.knows
	}
	m.touch(st, src, from, n, false, false)
	m.touch(st, dst, to, n, true, staged)
	m.done(st, first)
	waits := hostly(d) && hostly(s) || hostly(d) && !async || d == "host" || !async && s == "pinned" && !hostly(d)
	if waits {
		m.host |= st.knows
	}
}

func (m *hostModel) fill(wrong bool) {
	slot, ok := m.pickMemory(wrong)
	if !ok {
		return
	}
	x := &m.mem[slot]
	n, offset := 4*(1+m.rng.IntN(64)), 0
	if wrong && m.rng.IntN(2) == 0 && slot < hostSlot && x.live {
		offset = x.size - 4
	}
	async := m.rng.IntN(2)
	i, usable, call := -1, true, "cudaMemset"
	if async == 1 {
		i, usable = m.pickStream(wrong)
		call = "cudaMemsetAsync"
	}
	code, kind := errValue, m.problem(slot, offset, n)
	switch {
	case !usable:
		code, kind = errHandle, "invalid-handle"
	case kind == "" && (slot >= hostSlot || !x.made):
		kind = "invalid-pointer"
	case kind == "":
		code = 0
		s, first := m.stream(i), len(m.accesses)
		m.begin(s)
		m.touch(s, slot, offset, n, true, false)
		m.done(s, first)
		if async == 0 && x.kind != 0 {
			m.host |= s.knows
		}
	}
	if kind != "" {
		m.misuse(kind, call)
	}
	m.emit(code, "s", slot, offset, m.rng.IntN(2), n, async, i)
}

func (m *hostModel) makeStream(wrong bool) {
	i := m.rng.IntN(len(m.streams))
	s := &m.streams[i]
	switch {
	case s.live && m.rng.IntN(3) > 0:
	case s.live:
		if !s.free {
			m.grave |= s.knows
		}
		m.gone |= s.knows
		s.live = false
		m.emit(0, "D", i)
	case wrong && s.made:
		m.emit(errHandle, "D", i)
		m.misuse("invalid-handle", "cudaStreamDestroy")
	case wrong && m.rng.IntN(2) == 0:
		m.emit(errValue, "S", i, 77)
		m.ignored["cudaStreamCreateWithFlags"]++
	default:
		flags := min(m.rng.IntN(3), 1)
		*s = modelStream{made: true, live: true, free: flags == 1}
		m.emit(0, "S", i, flags)
	}
}

func (m *hostModel) makeEvent(wrong bool) {
	i := m.rng.IntN(len(m.events))
	e := &m.events[i]
	switch {
	case e.live && m.rng.IntN(2) == 0:
		e.live = false
		m.emit(0, "X", i)
	case e.live:
	case wrong && e.made:
		m.emit(errHandle, "X", i)
		m.misuse("invalid-handle", "cudaEventDestroy")
	default:
		*e = modelEvent{made: true, live: true}
		m.emit(0, "E", i, 0)
	}
}

func (m *hostModel) useEvent(wrong bool) {
	var fit []int
	for j := range m.events {
		if e := &m.events[j]; e.live || wrong && e.made {
			fit = append(fit, j)
		}
	}
	if len(fit) == 0 {
		return
	}
	j := fit[m.rng.IntN(len(fit))]
	e := &m.events[j]
	i, usable := m.pickStream(wrong)
	s := m.stream(i)
	op := m.rng.IntN(4)
	call := []string{"cudaEventRecord", "cudaStreamWaitEvent", "cudaEventSynchronize", "cudaEventQuery"}[op]
	code := 0
	switch {
	case !e.live || !usable && op < 2:
		code = errHandle
		m.misuse("invalid-handle", call)
	case op == 0:
		m.begin(s)
		e.recorded, e.saw, e.asked = true, s.knows, 0
	case op == 1:
		m.begin(s)
		if e.recorded {
			s.knows |= e.saw
		}
	case op == 3 && m.unready(e.saw, &e.asked):
		code = errNotReady
	case e.recorded:
		m.host |= e.saw
	}
	switch op {
	case 0:
		m.emit(code, "R", j, i)
	case 1:
		m.emit(code, "W", i, j)
	case 2:
		m.emit(code, "Y", j)
	default:
		m.emit(code, "Q", j)
	}
}

// unready is the answer to a query about some accesses. It is true only the first time.
func (m *hostModel) unready(what uint64, asked *uint64) bool {
	if what&^m.host&^*asked == 0 {
		return false
	}
	*asked = what
	return true
}

func (m *hostModel) sync(wrong bool) {
	if m.rng.IntN(2) == 0 {
		m.wait()
		m.emit(0, "y")
		return
	}
	i, usable := m.pickStream(wrong)
	op, call := "z", "cudaStreamSynchronize"
	if m.rng.IntN(2) == 0 {
		op, call = "Z", "cudaStreamQuery"
	}
	if !usable {
		m.emit(errHandle, op, i)
		m.misuse("invalid-handle", call)
		return
	}
	s := m.stream(i)
	before := *s
	if s == &m.legacy {
		m.begin(s)
	}
	if op == "Z" && m.unready(s.knows, &before.asked) {
		*s = before // which orders nothing
		m.emit(errNotReady, op, i)
		return
	}
	m.host |= s.knows
	m.emit(0, op, i)
}

func (m *hostModel) launch(wrong bool) {
	slot, ok := m.pickMemory(wrong && m.rng.IntN(4) == 0)
	if !ok {
		return
	}
	x := &m.mem[slot]
	kernel, grid, block, shared, offset := m.rng.IntN(2), 1, 32, 0, 0
	if x.live {
		offset = 128 * m.rng.IntN(x.size/128)
	}
	i, usable := m.pickStream(wrong)
	code := 0
	switch {
	case !usable:
	case wrong && m.rng.IntN(2) == 0:
		switch m.rng.IntN(4) {
		case 0:
			block, code = 2048, errConfig
		case 1:
			grid, code = 0, errConfig
		case 2:
			shared, code = 1<<20, errValue
		default:
			kernel, code = 2, errFunction
		}
	case wrong && m.rng.IntN(3) == 0:
		grid, kernel = 2, 0 // the two blocks write the same words
	}
	switch {
	case kernel == 2:
		m.refused["cudaLaunchKernel"]++
	case !usable:
		code = errHandle
		m.misuse("invalid-handle", "cudaLaunchKernel")
	case code != 0:
		m.refused["cudaLaunchKernel"]++
	default:
		m.ran++
		if slot >= hostSlot || !x.live || offset+4*block > x.size {
			m.faulted = true
			break
		}
		s, first := m.stream(i), len(m.accesses)
		m.begin(s)
		m.touch(s, slot, offset, 4*block, kernel == 0, false)
		m.done(s, first)
		if grid == 2 {
			m.races["error"] = true
		}
	}
	m.emit(code, "k", kernel, slot, offset, i, grid, block, shared, 100*len(m.script))
}

// verdict is the verdict on the whole program.
func (m *hostModel) verdict() report.Verdict {
	found := len(m.findings) > 0 || m.races["error"] || m.faulted
	unchecked := m.unheard || m.exit == 0 && (m.ran == 0 || len(m.refused) > 0)
	switch {
	case m.exit != 0 && unchecked && !found:
		return report.NotChecked
	case m.exit != 0:
		return report.ProgramFailed
	case found:
		return report.Found
	case unchecked:
		return report.NotChecked
	}
	return report.Clean
}
