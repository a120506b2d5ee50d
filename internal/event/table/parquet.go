package table

import (
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// This file writes Parquet files ("Apache Parquet Format", version 2.12): row groups with one page for each column,
// compressed with zstd, with values in PLAIN encoding or in a dictionary. The library that the tests use for reading
// would be a quarter of the tool's size.

// The numbers of the format's enumerations (parquet.thrift).
const (
	typeBool, typeInt32, typeInt64, typeBytes    = 0, 1, 2, 6
	convertedText, convertedList, convertedInt64 = 0, 3, 18
	convertedUint32, convertedUint64             = 13, 14
	required, optional, repeated                 = 0, 1, 2
	encodingPlain, encodingRLE, encodingDelta    = 0, 3, 5
	encodingDict                                 = 8
	codecZstd                                    = 6
	pageData, pageDict                           = 0, 2
)

// column is the values of a column in the current row group.
type column struct {
	*field
	nums    []uint64
	defined []uint32 // by value or null: the number of optional parts of its path that are present
	repeats []uint32 // of a list: 1 for all elements of a row except the first
	index   map[string]uint32
	words   []string // of a dictionary of strings, by number; nums are numbers
	numbers map[uint64]uint32
	plain   []uint64 // of a dictionary of numbers, by number
}

// add appends the values of a row.
func (c *column) add(r *row) {
	switch {
	case c.list != nil:
		list := c.list(r)
		for i, n := range list {
			c.nums, c.defined, c.repeats = append(c.nums, n), append(c.defined, 2), append(c.repeats, uint32(min(i, 1)))
		}
		if len(list) == 0 {
			c.defined, c.repeats = append(c.defined, 0), append(c.repeats, 0)
		}
	case c.text != nil:
		s := c.text(r)
		if c.null(s == "") {
			return
		}
		k, ok := c.index[s]
		if !ok {
			k = uint32(len(c.words))
			c.index[s], c.words = k, append(c.words, s)
		}
		c.nums = append(c.nums, uint64(k))
	default:
		n, ok := c.num(r)
		if c.null(!ok) {
			return
		}
		if c.dict {
			k, ok := c.numbers[n]
			if !ok {
				k = uint32(len(c.plain))
				c.numbers[n], c.plain = k, append(c.plain, n)
			}
			n = uint64(k)
		}
		c.nums = append(c.nums, n)
	}
}

// null records whether the current row has a value.
func (c *column) null(is bool) bool {
	if c.required {
		return false
	}
	if is {
		c.defined = append(c.defined, 0)
	} else {
		c.defined = append(c.defined, 1)
	}
	return is
}

func (c *column) reset() {
	clear(c.index)
	clear(c.numbers)
	c.nums, c.defined, c.repeats, c.words, c.plain = c.nums[:0], c.defined[:0], c.repeats[:0], c.words[:0], c.plain[:0]
}

// appendPlain appends a number in PLAIN encoding.
func (c *column) appendPlain(b []byte, n uint64) []byte {
	if c.physical == typeInt32 {
		return binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return binary.LittleEndian.AppendUint64(b, n)
}

// dictionary returns the dictionary in PLAIN encoding, and the number of its values.
func (c *column) dictionary() (b []byte, n int) {
	for _, s := range c.words {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	for _, x := range c.plain {
		b = c.appendPlain(b, x)
	}
	return b, len(c.words) + len(c.plain)
}

// data returns the page with the levels and the values, and the encoding of the values.
func (c *column) data(entries int) (page []byte, encoding int64) {
	levels := func(values []uint32, width int) {
		at := len(page)
		page = appendHybrid(append(page, 0, 0, 0, 0), len(values), width, func(i int) uint32 { return values[i] })
		binary.LittleEndian.PutUint32(page[at:], uint32(len(page)-at-4))
	}
	if c.list != nil {
		levels(c.repeats, 1)
		levels(c.defined, 2)
	} else if !c.required {
		levels(c.defined, 1)
	}
	switch {
	case c.delta:
		return appendConsecutive(page, c.nums), encodingDelta
	case c.dict && entries > 0:
		width := bits.Len(uint(entries - 1))
		page = append(page, byte(width))
		return appendHybrid(page, len(c.nums), width, func(i int) uint32 { return uint32(c.nums[i]) }), encodingDict
	case c.physical == typeBool:
		at := len(page)
		page = append(page, make([]byte, (len(c.nums)+7)/8)...)
		for i, n := range c.nums {
			page[at+i/8] |= byte(n) << (i % 8)
		}
		return page, encodingPlain
	}
	for _, n := range c.nums {
		page = c.appendPlain(page, n)
	}
	return page, encodingPlain
}

// appendHybrid appends n values of width bits in the hybrid encoding of run lengths and bit packing (RLE): a run of at
// least eight equal values by its length, others packed in groups of eight.
func appendHybrid(b []byte, n, width int, value func(int) uint32) []byte {
	run := func(i int) int {
		k := i + 1
		for k < n && value(k) == value(i) {
			k++
		}
		return k - i
	}
	for i := 0; i < n; {
		if k := run(i); k >= 8 || i+k == n {
			b = binary.AppendUvarint(b, uint64(k)<<1)
			for v, w := value(i), 0; w < width; w += 8 {
				b, v = append(b, byte(v)), v>>8
			}
			i += k
			continue
		}
		from := i
		for i += 8; i < n && run(i) < 8; {
			i += 8
		}
		groups := (min(i, n) - from + 7) / 8
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		var acc uint64
		have := 0
		for k := from; k < from+8*groups; k++ {
			if k < n {
				acc |= uint64(value(k)) << have
			}
			for have += width; have >= 8; have -= 8 {
				b, acc = append(b, byte(acc)), acc>>8
			}
		}
	}
	return b
}

// appendConsecutive appends consecutive numbers in DELTA_BINARY_PACKED encoding: in blocks of 128 that contain only the
// difference.
func appendConsecutive(b []byte, nums []uint64) []byte {
	b = binary.AppendUvarint(b, 128)
	b = binary.AppendUvarint(b, 4) // miniblocks in a block
	b = binary.AppendUvarint(b, uint64(len(nums)))
	b = binary.AppendVarint(b, int64(nums[0]))
	for left := len(nums) - 1; left > 0; left -= 128 {
		b = append(binary.AppendVarint(b, 1), 0, 0, 0, 0) // the minimum difference, and zero bits for each miniblock
	}
	return b
}

// file writes a table.
type file struct {
	to      io.Writer
	zstd    *zstd.Encoder
	columns []*column
	rows    int // in the current row group
	total   int
	at      int64 // number of bytes written
	groups  []group
	err     error
}

// group is a row group that has been written.
type group struct {
	rows   int
	size   int64
	chunks []chunk
}

// chunk is a column of a row group.
type chunk struct {
	values           int
	encoding         int64
	dict, data       int64 // offsets of the pages; dict 0: no dictionary
	plain, compacted int64 // bytes of the pages, including headers
}

func newFile(to io.Writer) (*file, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	f := &file{to: to, zstd: z}
	for i := range schema {
		f.columns = append(f.columns, &column{field: &schema[i], index: map[string]uint32{}, numbers: map[uint64]uint32{}})
	}
	f.write([]byte("PAR1"))
	return f, nil
}

func (f *file) write(b []byte) {
	if f.err == nil {
		_, f.err = f.to.Write(b)
		f.at += int64(len(b))
	}
}

// add appends a row.
func (f *file) add(r *row) error {
	for _, c := range f.columns {
		c.add(r)
	}
	if f.rows++; f.rows == groupRows {
		f.flush()
	}
	return f.err
}

// flush writes the current row group.
func (f *file) flush() {
	if f.rows == 0 {
		return
	}
	g := group{rows: f.rows}
	for _, c := range f.columns {
		values := max(len(c.defined), len(c.nums))
		k := chunk{values: values}
		dict, entries := c.dictionary()
		if entries > 0 {
			k.dict = f.at
			f.page(&k, dict, func(t *thrift) {
				t.begin(7)
				t.number(1, int64(entries))
				t.number(2, encodingPlain)
				t.end()
			}, pageDict)
		}
		k.data = f.at
		page, encoding := c.data(entries)
		k.encoding = encoding
		f.page(&k, page, func(t *thrift) {
			t.begin(5)
			t.number(1, int64(values))
			t.number(2, encoding)
			t.number(3, encodingRLE)
			t.number(4, encodingRLE)
			t.end()
		}, pageData)
		g.chunks, g.size = append(g.chunks, k), g.size+k.plain
		c.reset()
	}
	f.groups, f.total, f.rows = append(f.groups, g), f.total+f.rows, 0
}

// page writes a page with its header.
func (f *file) page(k *chunk, page []byte, more func(*thrift), kind int64) {
	packed := f.zstd.EncodeAll(page, nil)
	t := &thrift{}
	t.number(1, kind)
	t.number(2, int64(len(page)))
	t.number(3, int64(len(packed)))
	more(t)
	t.stop()
	k.plain += int64(len(t.b) + len(page))
	k.compacted += int64(len(t.b) + len(packed))
	f.write(t.b)
	f.write(packed)
}

// close writes the remaining rows and the footer.
func (f *file) close() error {
	f.flush()
	t := &thrift{}
	t.number(1, 2) // version
	elements := 1
	for _, c := range f.columns {
		if elements++; c.list != nil {
			elements += 2
		}
	}
	t.list(2, kindStruct, elements)
	t.element("schema", -1, -1, -1, len(f.columns))
	for _, c := range f.columns {
		switch {
		case c.list != nil:
			t.element(c.name, -1, optional, convertedList, 1)
			t.element("list", -1, repeated, -1, 1)
			t.element("element", c.physical, required, c.converted, 0)
		case c.required:
			t.element(c.name, c.physical, required, c.converted, 0)
		default:
			t.element(c.name, c.physical, optional, c.converted, 0)
		}
	}
	t.wide(3, int64(f.total))
	t.list(4, kindStruct, len(f.groups))
	for i := range f.groups {
		f.group(t, &f.groups[i])
	}
	t.text(6, "fencepost version 1 (build)")
	t.stop()
	t.b = binary.LittleEndian.AppendUint32(t.b, uint32(len(t.b)))
	f.write(append(t.b, "PAR1"...))
	return f.err
}

// group writes a RowGroup of the footer.
func (f *file) group(t *thrift, g *group) {
	t.open()
	t.list(1, kindStruct, len(g.chunks))
	for i := range g.chunks {
		c, k := f.columns[i], &g.chunks[i]
		first := k.data
		if k.dict != 0 {
			first = k.dict
		}
		t.open()
		t.wide(2, first)
		t.begin(3) // ColumnMetaData
		t.number(1, c.physical)
		t.list(2, kindNumber, 3)
		for _, e := range []int64{encodingPlain, encodingRLE, k.encoding} {
			t.b = binary.AppendVarint(t.b, e)
		}
		path := []string{c.name}
		if c.list != nil {
			path = []string{c.name, "list", "element"}
		}
		t.list(3, kindText, len(path))
		for _, s := range path {
			t.b = append(binary.AppendUvarint(t.b, uint64(len(s))), s...)
		}
		t.number(4, codecZstd)
		t.wide(5, int64(k.values))
		t.wide(6, k.plain)
		t.wide(7, k.compacted)
		t.wide(9, k.data)
		if k.dict != 0 {
			t.wide(11, k.dict)
		}
		t.end()
		t.end()
	}
	t.wide(2, g.size)
	t.wide(3, int64(g.rows))
	t.end()
}

// The kinds of Thrift's compact protocol that are used.
const kindNumber, kindWide, kindText, kindList, kindStruct = 5, 6, 8, 9, 12

// thrift is a structure being written in Thrift's compact protocol, which Parquet's headers use: fields in ascending
// order of numbers.
type thrift struct {
	b     []byte
	last  int   // the last field number
	outer []int // the last field numbers of the enclosing structures
}

func (t *thrift) field(n, kind int) {
	t.b = append(t.b, byte((n-t.last)<<4|kind))
	t.last = n
}

// number writes a field of 32 bits, wide one of 64 bits, text a string.
func (t *thrift) number(n int, x int64) { t.field(n, kindNumber); t.b = binary.AppendVarint(t.b, x) }
func (t *thrift) wide(n int, x int64)   { t.field(n, kindWide); t.b = binary.AppendVarint(t.b, x) }
func (t *thrift) text(n int, s string) {
	t.field(n, kindText)
	t.b = append(binary.AppendUvarint(t.b, uint64(len(s))), s...)
}

// list begins a list; the elements follow.
func (t *thrift) list(n, kind, elements int) {
	t.field(n, kindList)
	if elements < 15 {
		t.b = append(t.b, byte(elements<<4|kind))
		return
	}
	t.b = binary.AppendUvarint(append(t.b, byte(0xf0|kind)), uint64(elements))
}

// begin begins a structure that is a field, and open one that is an element of a list. end ends either, and stop ends
// the whole.
func (t *thrift) begin(n int) { t.field(n, kindStruct); t.open() }
func (t *thrift) open()       { t.outer, t.last = append(t.outer, t.last), 0 }
func (t *thrift) stop()       { t.b = append(t.b, 0) }
func (t *thrift) end() {
	t.stop()
	t.last, t.outer = t.outer[len(t.outer)-1], t.outer[:len(t.outer)-1]
}

// element writes a SchemaElement. Values of -1, and no children, are left out.
func (t *thrift) element(name string, physical, repetition, converted int64, children int) {
	t.open()
	if physical >= 0 {
		t.number(1, physical)
	}
	if repetition >= 0 {
		t.number(3, repetition)
	}
	t.text(4, name)
	if children > 0 {
		t.number(5, int64(children))
	}
	if converted >= 0 {
		t.number(6, converted)
	}
	t.end()
}
