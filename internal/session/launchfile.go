package session

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/event"
	"fencepost.dev/fencepost/internal/nearest"
)

// Bounds of launch files. Larger values are a mistake or an attack, never a test.
const (
	MaxLaunchFile = 1 << 20  // bytes of text
	maxBuffer     = 16 << 30 // bytes of all buffers of a file together
	maxFilled     = 1 << 30  // bytes of all buffers filled with something but zero
	maxLaunches   = 10000
	maxArgs       = 4096
	maxShared     = 1 << 20
	maxStream     = 1 << 16
	maxQueries    = 1000
)

// LaunchFile describes buffers and launches of kernels. docs/launch.md describes the format.
type LaunchFile struct {
	Name     string
	Buffers  []*Buffer // in the order of their first mention
	Launches []LaunchSpec
	Expects  []Expect
	// Condition is a claim about the final memory of all executions, nil if there is none.
	Condition *Condition
}

// Condition is a formula over the elements of buffers, with its quantifier: "exists", "forall" or "never".
type Condition struct {
	Pos              Pos
	Quantifier, Text string
}

// conditionKeys are the keys of a condition.
var conditionKeys = []string{"exists", "forall", "never"}

// Buffer is an array in global memory.
type Buffer struct {
	Name  string
	Type  ElemType
	Count uint64 // elements
	shape []uint64
	fill  filler
}

// Bytes is the size of the buffer.
func (b *Buffer) Bytes() uint64 { return b.Count * uint64(b.Type.Size) }

// LaunchSpec is one launch.
type LaunchSpec struct {
	Pos          Pos
	Kernel       string // "" means the module's only kernel
	KernelPos    Pos
	Grid         event.Dim3
	Block        event.Dim3
	Shared       int        // bytes of dynamic shared memory
	Cooperative  *bool      // nil: if the kernel synchronises its grid
	Programmatic bool       // programmatic stream serialization
	Cluster      event.Dim3 // zero: none given
	Stream       int        // 0 is the default stream
	Sync         bool       // the host waits for the device afterwards
	Query        int        // how often the host then asks whether the stream has work to do (cudaStreamQuery)
	EventQuery   int        // how often the host then asks whether an event that it records on the stream has happened (cudaEventQuery)
	Args         []Arg
}

// Arg is one kernel argument.
type Arg struct {
	Pos    Pos
	Buffer *Buffer // its address is the argument; nil for a value
	// Texture describes the texture or surface object that is the argument, over the memory of Buffer; nil for its
	// address.
	Texture *TextureArg
	Value   []byte // the bytes of a value
	Type    string // "i32", "bytes", "buffer"
}

// TextureArg is a texture or surface whose elements are those of a buffer. The last number of the buffer's shape is the
// width.
type TextureArg struct {
	Surface    bool
	Dims       int
	Address    descriptor.AddressMode
	Filter     bool // linear
	Normalized bool
}

// describe returns the texture over a buffer at an address.
func (x *TextureArg) describe(b *Buffer, addr uint64) *descriptor.Texture {
	size := [3]uint32{1, 1, 1}
	for d := range x.Dims {
		size[d] = uint32(b.shape[x.Dims-1-d])
	}
	t := &descriptor.Texture{Data: addr, Width: size[0], Height: size[1], Depth: size[2], Dims: uint8(x.Dims), Surface: x.Surface, Filter: x.Filter,
		Normalized: x.Normalized, Address: [3]descriptor.AddressMode{x.Address, x.Address, x.Address}, Bits: [4]uint8{uint8(8 * b.Type.Size)}}
	t.Pitch = uint64(size[0]) * uint64(b.Type.Size)
	t.Slice = t.Pitch * uint64(size[1])
	switch {
	case b.Type.Float:
		t.Format = descriptor.FloatChannel
	case !b.Type.Sign:
		t.Format = descriptor.UnsignedChannel
	}
	return t
}

// Expect is an expected result: the First elements of Buffer are Values, or all equal Values[0].
type Expect struct {
	Pos    Pos
	Buffer *Buffer
	First  uint64
	Same   bool // all First elements equal Values[0]
	Values [][]byte
}

// Judge compares the bytes of element i with the expected value, and returns both as text.
func (x *Expect) Judge(i uint64, data []byte) (got, want string, ok bool) {
	value := x.Values[0]
	if !x.Same {
		value = x.Values[i]
	}
	t := &x.Buffer.Type
	return t.format(data), t.format(value), t.equal(data, value)
}

// ElemType is the type of buffer elements and scalars.
type ElemType struct {
	Name  string
	Size  int
	Float bool
	Sign  bool
}

var elemTypes = []ElemType{
	{"i8", 1, false, true}, {"u8", 1, false, false}, {"i16", 2, false, true}, {"u16", 2, false, false},
	{"i32", 4, false, true}, {"u32", 4, false, false}, {"i64", 8, false, true}, {"u64", 8, false, false},
	{"f32", 4, true, true}, {"f64", 8, true, true},
}

func elemType(name string) (ElemType, bool) {
	for _, t := range elemTypes {
		if t.Name == name {
			return t, true
		}
	}
	return ElemType{}, false
}

func typeNames() []string {
	var names []string
	for _, t := range elemTypes {
		names = append(names, t.Name)
	}
	return names
}

// encode returns the bytes of a number of this type, or the reason why there are none.
func (t ElemType) encode(v *value) ([]byte, string) {
	f, ok := v.number()
	if !ok {
		return nil, fmt.Sprintf("%s is wanted for %s, this is %s", "a number", t.Name, v.kind)
	}
	if t.Float {
		return t.float(f), ""
	}
	i, ok := v.integer()
	if !ok {
		return nil, fmt.Sprintf("an integer is wanted for %s, this is %s", t.Name, v.kind)
	}
	if bits := t.Size * 8; t.Sign && bits < 64 && (i < -1<<(bits-1) || i >= 1<<(bits-1)) || !t.Sign && (i < 0 || bits < 64 && i >= 1<<bits) {
		return nil, fmt.Sprintf("%d does not fit %s", i, t.Name)
	}
	return t.integer(uint64(i)), ""
}

func (t ElemType) integer(u uint64) []byte {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], u)
	return slices.Clone(b[:t.Size])
}

func (t ElemType) float(f float64) []byte {
	if t.Size == 4 {
		return t.integer(uint64(math.Float32bits(float32(f))))
	}
	return t.integer(math.Float64bits(f))
}

// equal compares two values of this type: integers by their bits, floats within a relative error of 1e-6 (f32) or 1e-12
// (f64). Two NaNs are equal.
func (t ElemType) equal(a, b []byte) bool {
	if slices.Equal(a, b) {
		return true
	}
	if !t.Float {
		return false
	}
	x, y := t.decode(a), t.decode(b)
	tolerance := 1e-6
	if t.Size == 8 {
		tolerance = 1e-12
	}
	return math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= tolerance*math.Max(math.Abs(x), math.Abs(y))
}

// decode returns the value of a float.
func (t ElemType) decode(b []byte) float64 {
	if t.Size == 4 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func (t ElemType) format(b []byte) string {
	if t.Float {
		return fmt.Sprint(t.decode(b))
	}
	var w [8]byte
	copy(w[:], b)
	u := binary.LittleEndian.Uint64(w[:])
	if t.Sign {
		shift := 64 - 8*t.Size
		return fmt.Sprint(int64(u<<shift) >> shift)
	}
	return fmt.Sprint(u)
}

// filler returns the bytes of element i of a buffer. A nil filler leaves the buffer zero.
type filler func(i uint64) []byte

// Fill writes the initial contents of the buffer, from element first on, to dst.
func (b *Buffer) Fill(dst []byte, first uint64) {
	if b.fill == nil {
		clear(dst)
		return
	}
	for i := uint64(0); i < uint64(len(dst)/b.Type.Size); i++ {
		copy(dst[i*uint64(b.Type.Size):], b.fill(first+i))
	}
}

// ReadLaunchFile reads a launch file. Errors are *FileError or an error that joins several.
func ReadLaunchFile(name string, data []byte) (*LaunchFile, error) {
	if len(data) > MaxLaunchFile {
		return nil, &FileError{File: name, Msg: fmt.Sprintf("a launch file has at most %d bytes, this one has %d", MaxLaunchFile, len(data))}
	}
	root, err := parseTOML(name, data)
	if err != nil {
		return nil, err
	}
	r := &launchReader{file: &LaunchFile{Name: name}, buffers: map[string]*Buffer{}}
	r.root(root)
	if err := r.errs.err(); err != nil {
		return nil, err
	}
	return r.file, nil
}

// FileErrors is all errors of a file, by place.
type FileErrors []*FileError

func (l FileErrors) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (l FileErrors) err() error {
	if len(l) == 0 {
		return nil
	}
	sort.SliceStable(l, func(i, j int) bool {
		a, b := l[i].Pos, l[j].Pos
		return a.Line < b.Line || a.Line == b.Line && a.Column < b.Column
	})
	return l
}

// launchReader interprets tables and collects errors.
type launchReader struct {
	file    *LaunchFile
	buffers map[string]*Buffer
	bytes   uint64
	filled  uint64
	errs    FileErrors
}

func (r *launchReader) fail(pos Pos, format string, args ...any) {
	if len(r.errs) < 20 {
		r.errs = append(r.errs, &FileError{File: r.file.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)})
	}
}

var launchKeys = []string{"kernel", "grid", "block", "cluster", "shared", "cooperative", "programmatic", "stream", "sync", "query", "event_query", "args"}

func (r *launchReader) root(root *table) {
	var direct *table // the launch whose keys are at the top of the file
	var launches, expects *value
	for _, e := range root.entries {
		switch {
		case e.name == "launch":
			launches = e.val
		case e.name == "expect":
			expects = e.val
		case slices.Contains(conditionKeys, e.name):
			if r.file.Condition != nil {
				r.fail(e.pos, "%q beside %q in line %d: a file has one condition; join them with && and ||", e.name, r.file.Condition.Quantifier, r.file.Condition.Pos.Line)
				continue
			}
			r.file.Condition = &Condition{e.val.pos, e.name, r.text(e)}
		case slices.Contains(launchKeys, e.name):
			if direct == nil {
				direct = &table{pos: e.pos}
			}
			direct.entries = append(direct.entries, e)
		default:
			r.unknown(e, slices.Concat([]string{"launch", "expect"}, conditionKeys, launchKeys))
		}
	}
	if direct != nil {
		if launches != nil {
			r.fail(launches.pos, "[[launch]] and launch keys at the top of the file (%q in line %d): use one or the other",
				direct.entries[0].name, direct.pos.Line)
		}
		r.launch(direct)
	} else if launches == nil && len(r.errs) == 0 {
		r.fail(Pos{}, "there is no launch: it has no grid and no block")
	}
	for _, t := range r.tables(launches, "launch") {
		if len(r.file.Launches) == maxLaunches {
			r.fail(t.pos, "there are more than %d launches", maxLaunches)
			break
		}
		r.launch(t)
	}
	for _, t := range r.tables(expects, "expect") {
		r.expect(t)
	}
	if c := r.file.Condition; c != nil && len(r.file.Expects) > 0 {
		r.fail(c.Pos, "%q beside [[expect]]: write what is expected as a part of the condition", c.Quantifier)
	}
}

// tables returns the tables of [[name]].
func (r *launchReader) tables(v *value, name string) []*table {
	if v == nil {
		return nil
	}
	items := []*value{v}
	if v.kind == anArray {
		items = v.items
	}
	var ts []*table
	for _, item := range items {
		if item.kind != aTable {
			r.fail(item.pos, "%s is %s, and should be [[%s]] tables", name, item.kind, name)
			continue
		}
		ts = append(ts, item.table)
	}
	return ts
}

func (r *launchReader) unknown(e entry, valid []string) {
	r.fail(e.pos, "unknown key %q%s", e.name, nearest.Hint(e.name, valid))
}

func (r *launchReader) launch(t *table) {
	l := LaunchSpec{Pos: t.pos}
	var grid, block bool
	for _, e := range t.entries {
		switch e.name {
		case "kernel":
			l.Kernel, l.KernelPos = r.text(e), e.val.pos
		case "grid":
			l.Grid, grid = r.dim(e), true
		case "block":
			l.Block, block = r.dim(e), true
		case "cluster":
			l.Cluster = r.dim(e)
		case "shared":
			l.Shared = int(r.count(e, maxShared))
		case "cooperative":
			is := r.truth(e)
			l.Cooperative = &is
		case "programmatic":
			l.Programmatic = r.truth(e)
		case "stream":
			l.Stream = int(r.count(e, maxStream))
		case "sync":
			l.Sync = r.truth(e)
		case "query":
			l.Query = int(r.count(e, maxQueries))
		case "event_query":
			l.EventQuery = int(r.count(e, maxQueries))
		case "args":
			l.Args = r.args(e)
		default:
			r.unknown(e, launchKeys)
		}
	}
	r.file.Launches = append(r.file.Launches, l)
	if len(r.errs) > 0 {
		return // a misspelt key may be the missing one
	}
	if !grid {
		r.fail(t.pos, "the launch has no grid: write grid = [blocks]")
	}
	if !block {
		r.fail(t.pos, "the launch has no block: write block = [threads]")
	}
}

func (r *launchReader) text(e entry) string {
	if e.val.kind != aString {
		r.fail(e.val.pos, "%s is %s, and should be a string", e.name, e.val.kind)
		return ""
	}
	return e.val.text
}

func (r *launchReader) truth(e entry) bool {
	if e.val.kind != aBool {
		r.fail(e.val.pos, "%s is %s, and should be true or false", e.name, e.val.kind)
		return false
	}
	return e.val.text == "true"
}

// count reads an integer from 0 to most.
func (r *launchReader) count(e entry, most uint64) uint64 {
	return r.countValue(e.name, e.val, 0, most)
}

func (r *launchReader) countValue(name string, v *value, least, most uint64) uint64 {
	i, ok := v.integer()
	if !ok {
		r.fail(v.pos, "%s is %s, and should be an integer", name, v.kind)
		return least
	}
	if i < 0 || uint64(i) < least || uint64(i) > most {
		r.fail(v.pos, "%s is %d, and should be %d to %d", name, i, least, most)
		return least
	}
	return uint64(i)
}

// dim reads a number, or 1 to 3 numbers. The engine decides whether the device can launch the shape.
func (r *launchReader) dim(e entry) event.Dim3 {
	items := []*value{e.val}
	if e.val.kind == anArray {
		items = e.val.items
	}
	if len(items) < 1 || len(items) > 3 {
		r.fail(e.val.pos, "%s has %d numbers, and should have 1 to 3", e.name, len(items))
		return event.Dim3{}
	}
	d := [3]uint32{1, 1, 1}
	for i, item := range items {
		d[i] = uint32(r.countValue(e.name, item, 1, math.MaxInt32))
	}
	return event.Dim3{X: d[0], Y: d[1], Z: d[2]}
}

func (r *launchReader) args(e entry) []Arg {
	if e.val.kind != anArray {
		r.fail(e.val.pos, "args is %s, and should be a list", e.val.kind)
		return nil
	}
	if len(e.val.items) > maxArgs {
		r.fail(e.val.pos, "args has %d items, and should have at most %d", len(e.val.items), maxArgs)
		return nil
	}
	var args []Arg
	for _, item := range e.val.items {
		if item.kind != aTable {
			r.fail(item.pos, `an argument is %s, and should be a table like { i32 = 1 } or { buffer = "in", type = "i32", shape = [16] }`, item.kind)
			continue
		}
		args = append(args, r.arg(item))
	}
	return args
}

func (r *launchReader) arg(v *value) Arg {
	for _, e := range v.table.entries {
		if e.name == "buffer" {
			x := r.texture(v)
			b := r.buffer(v)
			if x != nil && len(b.shape) != x.Dims {
				r.fail(v.pos, "the shape of buffer %q has %d numbers, and should have one for each dimension, %d", b.Name, len(b.shape), x.Dims)
			}
			return Arg{Pos: v.pos, Buffer: b, Texture: x, Type: "buffer"}
		}
	}
	if len(v.table.entries) != 1 {
		r.fail(v.pos, "an argument is a buffer or has one key, its type")
		return Arg{Pos: v.pos}
	}
	e := v.table.entries[0]
	a := Arg{Pos: v.pos, Type: e.name}
	if e.name == "bytes" {
		b, err := hex.DecodeString(strings.ReplaceAll(r.text(e), " ", ""))
		if err != nil {
			r.fail(e.val.pos, `bytes should be pairs of hexadecimal digits, as in "00ff"`)
		}
		a.Value = b
		return a
	}
	t, ok := elemType(e.name)
	if !ok {
		r.fail(e.pos, "unknown argument type %q%s", e.name, nearest.Hint(e.name, append(typeNames(), "buffer", "bytes")))
		return a
	}
	b, why := t.encode(e.val)
	if why != "" {
		r.fail(e.val.pos, "%s", why)
	}
	a.Value = b
	return a
}

var (
	textureKeys  = []string{"texture", "surface", "address", "filter", "normalized"}
	addressModes = []string{"wrap", "clamp", "mirror", "border"}
)

// texture reads the keys of a texture or surface, and returns nil if there are none.
func (r *launchReader) texture(v *value) *TextureArg {
	x := &TextureArg{Address: descriptor.AddressClamp}
	found := false
	for _, e := range v.table.entries {
		switch e.name {
		case "texture", "surface":
			name := r.text(e)
			x.Surface = e.name == "surface"
			if x.Dims = slices.Index([]string{"1d", "2d", "3d"}, name) + 1; x.Dims == 0 {
				r.fail(e.val.pos, `%s is %q, and should be "1d", "2d" or "3d"`, e.name, name)
				return nil
			}
			found = true
		case "address":
			name := r.text(e)
			i := slices.Index(addressModes, name)
			if i < 0 {
				r.fail(e.val.pos, "unknown address mode %q%s", name, nearest.Hint(name, addressModes))
			}
			x.Address = descriptor.AddressMode(max(i, 0))
		case "filter":
			name := r.text(e)
			if x.Filter = name == "linear"; !x.Filter && name != "point" {
				r.fail(e.val.pos, "unknown filter %q%s", name, nearest.Hint(name, []string{"point", "linear"}))
			}
		case "normalized":
			x.Normalized = r.truth(e)
		}
	}
	if !found {
		for _, e := range v.table.entries {
			if slices.Contains(textureKeys, e.name) {
				r.fail(e.pos, "%s is for an argument with texture", e.name)
			}
		}
		return nil
	}
	return x
}

// buffer reads the first mention of a buffer, which describes it, or a later one, which may only name it.
func (r *launchReader) buffer(v *value) *Buffer {
	b := &Buffer{}
	var fill *entry
	var typed, shaped bool
	for i, e := range v.table.entries {
		switch e.name {
		case "buffer":
			b.Name = r.text(e)
		case "type":
			typed = true
			name := r.text(e)
			t, ok := elemType(name)
			if !ok && e.val.kind == aString {
				r.fail(e.val.pos, "unknown type %q%s", name, nearest.Hint(name, typeNames()))
			}
			b.Type = t
		case "shape":
			shaped = true
			b.Count, b.shape = r.shape(e)
		case "fill":
			fill = &v.table.entries[i]
		case "texture", "surface", "address", "filter", "normalized": // see texture
		default:
			r.unknown(e, append([]string{"buffer", "type", "shape", "fill"}, textureKeys...))
		}
	}
	old := r.buffers[b.Name]
	switch {
	case old != nil && (typed || shaped || fill != nil):
		r.fail(v.pos, `buffer %q is described already: refer to it by { buffer = %q } alone, or by --arg %s`, b.Name, b.Name, b.Name)
		return old
	case old != nil:
		return old
	case !typed || !shaped:
		r.fail(v.pos, "buffer %q is mentioned for the first time and needs a type and a shape%s", b.Name, r.similarBuffer(b.Name))
		return b
	}
	r.addBuffer(b, v.pos, fill)
	return b
}

func (r *launchReader) similarBuffer(name string) string {
	var names []string
	for _, b := range r.file.Buffers {
		names = append(names, b.Name)
	}
	if w := nearest.Word(name, names); w != "" {
		return fmt.Sprintf("; or did you mean %q?", w)
	}
	return ""
}

func (r *launchReader) addBuffer(b *Buffer, pos Pos, fill *entry) {
	if b.Type.Size == 0 || b.Count == 0 {
		return // already reported
	}
	if b.Count > maxBuffer/uint64(b.Type.Size) || r.bytes+b.Bytes() > maxBuffer {
		r.fail(pos, "the buffers take more than %d GiB", maxBuffer>>30)
		return
	}
	r.bytes += b.Bytes()
	r.buffers[b.Name] = b
	r.file.Buffers = append(r.file.Buffers, b)
	if fill == nil {
		return
	}
	b.fill = r.fill(b, fill.val)
	if b.fill == nil {
		return
	}
	if r.filled += b.Bytes(); r.filled > maxFilled {
		r.fail(fill.pos, "more than %d GiB of buffers are filled", maxFilled>>30)
	}
}

// shape reads the extents of a buffer, and returns their product and the extents.
func (r *launchReader) shape(e entry) (uint64, []uint64) {
	items := []*value{e.val}
	if e.val.kind == anArray {
		items = e.val.items
	}
	if len(items) == 0 || len(items) > 8 {
		r.fail(e.val.pos, "shape has %d numbers, and should have 1 to 8", len(items))
		return 0, nil
	}
	count := uint64(1)
	var shape []uint64
	for _, item := range items {
		n := r.countValue("shape", item, 1, maxBuffer)
		if count > maxBuffer/n {
			r.fail(e.val.pos, "the buffer has more than %d elements", uint64(maxBuffer))
			return 0, nil
		}
		count *= n
		shape = append(shape, n)
	}
	return count, shape
}

var fillWords = []string{"zero", "iota", "random"}

func (r *launchReader) fill(b *Buffer, v *value) filler {
	t := b.Type
	switch v.kind {
	case aString:
		switch v.text {
		case "zero":
			return nil
		case "iota":
			return func(i uint64) []byte {
				if t.Float {
					return t.float(float64(i))
				}
				return t.integer(i)
			}
		case "random":
			return randomFill(t, b.Name)
		}
		r.fail(v.pos, "unknown fill %q%s", v.text, nearest.Hint(v.text, fillWords))
		return nil
	case anArray:
		return r.listFill(b, v)
	}
	bytes, why := t.encode(v)
	if why != "" {
		r.fail(v.pos, "%s", why)
		return nil
	}
	if !slices.ContainsFunc(bytes, func(c byte) bool { return c != 0 }) {
		return nil
	}
	return func(uint64) []byte { return bytes }
}

func (r *launchReader) listFill(b *Buffer, v *value) filler {
	if uint64(len(v.items)) != b.Count {
		r.fail(v.pos, "fill has %d numbers, and buffer %q has %d elements", len(v.items), b.Name, b.Count)
		return nil
	}
	list := r.encodeAll(b.Type, v.items)
	return func(i uint64) []byte { return list[i] }
}

func (r *launchReader) encodeAll(t ElemType, items []*value) [][]byte {
	list := make([][]byte, len(items))
	for i, item := range items {
		bytes, why := t.encode(item)
		if why != "" {
			r.fail(item.pos, "%s", why)
		}
		list[i] = bytes
	}
	return list
}

// randomFill returns the same numbers in every run: integers over the whole range of the type, floats in [0, 1). The
// name of a buffer seeds its numbers.
func randomFill(t ElemType, name string) filler {
	seed := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	return func(i uint64) []byte {
		x := seed + (i+1)*0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
		if t.Float {
			return t.float(float64(x>>40) / (1 << 24))
		}
		return t.integer(x)
	}
}

func (r *launchReader) expect(t *table) {
	x := Expect{Pos: t.pos}
	var values, first, one *entry
	for i, e := range t.entries {
		switch e.name {
		case "buffer":
			name := r.text(e)
			if x.Buffer = r.buffers[name]; x.Buffer == nil && e.val.kind == aString {
				r.fail(e.val.pos, "there is no buffer %q%s", name, r.similarBuffer(name))
				return
			}
		case "values":
			values = &t.entries[i]
		case "first":
			first = &t.entries[i]
		case "value":
			one = &t.entries[i]
		default:
			r.unknown(e, []string{"buffer", "values", "first", "value"})
		}
	}
	switch {
	case x.Buffer == nil:
		r.fail(t.pos, "[[expect]] needs a buffer")
		return
	case (values == nil) == (one == nil):
		r.fail(t.pos, "[[expect]] needs either values = [ ... ] or value = ...")
		return
	}
	if one != nil {
		x.Same, x.First = true, x.Buffer.Count
		x.Values = r.encodeAll(x.Buffer.Type, []*value{one.val})
	} else {
		if values.val.kind != anArray || uint64(len(values.val.items)) > x.Buffer.Count {
			r.fail(values.val.pos, "values should be a list of at most %d numbers, the elements of buffer %q", x.Buffer.Count, x.Buffer.Name)
			return
		}
		x.First = uint64(len(values.val.items))
		x.Values = r.encodeAll(x.Buffer.Type, values.val.items)
	}
	if first != nil {
		n := r.countValue("first", first.val, 1, x.First)
		x.First = n
	}
	r.file.Expects = append(r.file.Expects, x)
}
