package fatbin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// The files in testdata were made from twice.cu by nvcc 13.5 -fatbin -lineinfo -Xcicc -O0, for compute_80, and for zstd and
// packed also compute_90; with --no-compress, -compress-mode speed, neither, and -concat.
func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func summary(entries []Entry) string {
	var s []string
	for _, e := range entries {
		s = append(s, fmt.Sprintf("%d:%v %d%s %d.%d %s %d@%#x", e.Unit, e.Kind, e.Arch, e.Suffix, e.Major, e.Minor, e.Name, len(e.Text), e.Offset))
	}
	return strings.Join(s, "; ")
}

func TestRecorded(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"plain.fatbin", "0:PTX 80 9.5 twice.cu 871@0x10"},
		{"lz4.fatbin", "0:PTX 80 9.5 twice.cu 871@0x10"},
		{"zstd.fatbin", "0:PTX 80 9.5 twice.cu 871@0x10; 0:PTX 90 9.5 twice.cu 871@0x220"},
		{"packed.fatbin", "0:PTX 80 9.5 twice.cu 871@0x58; 0:PTX 90 9.5 twice.cu 871@0xc8"},
	} {
		entries, err := Parse(read(t, c.file))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
		}
		if got := summary(entries); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.file, got, c.want)
		}
	}
	plain, _ := Parse(read(t, "plain.fatbin"))
	if !bytes.Contains(plain[0].Text, []byte(".visible .entry _Z1kPi(")) || !bytes.Contains(plain[0].Text, []byte("\n.target sm_80\n")) {
		t.Errorf("not the text of twice.cu:\n%s", plain[0].Text)
	}
	for _, f := range []string{"lz4.fatbin", "zstd.fatbin", "packed.fatbin"} {
		entries, _ := Parse(read(t, f))
		if !bytes.Equal(entries[0].Text, plain[0].Text) {
			t.Errorf("%s: not the text of plain.fatbin", f)
		}
	}
}

func TestConcatenated(t *testing.T) {
	plain, z := read(t, "plain.fatbin"), read(t, "zstd.fatbin")
	data := bytes.Join([][]byte{make([]byte, 8), plain, make([]byte, 24), z, make([]byte, 3)}, nil)
	entries, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	at := 8 + len(plain) + 24
	want := fmt.Sprintf("0:PTX 80 9.5 twice.cu 871@0x18; 1:PTX 80 9.5 twice.cu 871@%#x; 1:PTX 90 9.5 twice.cu 871@%#x", at+0x10, at+0x220)
	if got := summary(entries); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// build makes a fat binary of entries.
func build(entries ...[]byte) []byte {
	body := bytes.Join(entries, nil)
	b := binary.LittleEndian.AppendUint32(nil, Magic)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = binary.LittleEndian.AppendUint16(b, HeaderSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(body)))
	return append(b, body...)
}

// entry makes an entry with a header of the minimum size.
func entry(kind Kind, arch int, flags uint64, packed, raw int, payload []byte) []byte {
	le := binary.LittleEndian
	h := make([]byte, entryHeaderSize)
	le.PutUint16(h, uint16(kind))
	le.PutUint32(h[4:], entryHeaderSize)
	le.PutUint64(h[8:], uint64(len(payload)))
	le.PutUint32(h[16:], uint32(packed))
	le.PutUint32(h[28:], uint32(arch))
	le.PutUint64(h[40:], flags)
	le.PutUint64(h[56:], uint64(raw))
	return append(h, payload...)
}

func put(data []byte, at int, value any) []byte {
	data = bytes.Clone(data)
	if _, err := binary.Encode(data[at:], binary.LittleEndian, value); err != nil {
		panic(err)
	}
	return data
}

func TestKindsAndSuffixes(t *testing.T) {
	entries, err := Parse(build(
		entry(ELF, 80, 0, 0, 0, []byte("\x7fELF....")),
		entry(LTO, 90, flagArch, 0, 0, []byte("bitcode.")),
		entry(77, 75, 0, 0, 0, nil),
		entry(PTX, 100, flagFamily, 0, 0, []byte(".version\x00\x00\x00\x00"))))
	if err != nil {
		t.Fatal(err)
	}
	want := "0:SASS 80 0.0  0@0x10; 0:LTO IR 90a 0.0  0@0x58; 0:kind 77 75 0.0  0@0xa0; 0:PTX 100f 0.0  8@0xe0"
	if got := summary(entries); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func zstdOf(raw []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return w.EncodeAll(raw, nil)
}

func lz4Of(raw []byte) []byte {
	dst := make([]byte, lz4.CompressBlockBound(len(raw)))
	n, err := lz4.CompressBlock(raw, dst, nil)
	if err != nil {
		panic(err)
	}
	return dst[:n]
}

func TestBroken(t *testing.T) {
	plain, packed := read(t, "plain.fatbin"), read(t, "packed.fatbin")
	text := bytes.Repeat([]byte("ld.global;"), 100)
	z, l := zstdOf(text), lz4Of(text)
	bomb := zstdOf(make([]byte, 1<<22))
	for _, c := range []struct {
		name   string
		data   []byte
		offset int64
		msg    string
	}{
		{"empty", nil, 0, "no fat binary here: 0 bytes, all zero"},
		{"zeros", make([]byte, 40), 0, "no fat binary here"},
		{"short header", plain[:9], 0, "header cut short: 9 bytes of 16"},
		{"wrong magic", put(plain, 0, uint32(0x464c457f)), 0, "not a fat binary: it starts with 0x464c457f"},
		{"wrong version", put(plain, 4, uint16(2)), 4, "container version 2 is unknown"},
		{"small header size", put(plain, 6, uint16(8)), 6, "header size 8 is below 16"},
		{"huge size", put(plain, 8, uint64(1)<<63), 8, "is not believable"},
		{"size past the end", put(plain, 8, uint64(5000)), 8, "the container says it has 5016 bytes, 1000 are there"},
		{"cut in the entry header", build(plain[16:50]), 16, "entry header cut short: 34 bytes of 64"},
		{"entry header size 3", put(plain, 20, uint32(3)), 20, "entry header of 3 bytes: at least 64 are needed"},
		{"entry header past the end", put(plain, 20, uint32(1<<31)), 20, "entry header of 2147483648 bytes"},
		{"payload past the end", put(plain, 24, uint64(1)<<62), 24, "payload of 4611686018427387904 bytes"},
		{"name outside", put(plain, 48, uint32(0xfffffff0)), 48, "is outside its header"},
		{"second container", append(bytes.Clone(plain), "xxxxxxxxxxxxxxxx"...), int64(len(plain)), "not a fat binary"},
		{"zstd size too small", build(entry(PTX, 80, flagZstd, len(z), 999, z)), 72, "unpacked to 1000 bytes, the header says 999"},
		{"zstd size too large", build(entry(PTX, 80, flagZstd, len(z), 1001, z)), 72, "unpacked to 1000 bytes, the header says 1001"},
		{"zstd bomb", build(entry(PTX, 80, flagZstd, len(bomb), 100, bomb)), 72, "unpacked to 101 bytes, the header says 100"},
		{"zstd garbage", build(entry(PTX, 80, flagZstd, 8, 1000, text[:8])), 80, "zstd: "},
		{"zstd cut", build(entry(PTX, 80, flagZstd, len(z)-2, 1000, z)), 80, "zstd: "},
		{"lz4 size too small", build(entry(PTX, 80, flagLZ4, len(l), 999, l)), 80, "LZ4: "},
		{"lz4 size too large", build(entry(PTX, 80, flagLZ4, len(l), 1001, l)), 72, "unpacked to 1000 bytes, the header says 1001"},
		{"lz4 lie", build(entry(PTX, 80, flagLZ4, len(l), 1<<24, l)), 80, "cannot come from"},
		{"lz4 garbage", build(entry(PTX, 80, flagLZ4, 8, 1000, text[:8])), 80, "LZ4: "},
		{"more than the limit", build(entry(PTX, 80, flagZstd, len(z), maxRaw+1, z)), 72, "are refused"},
		{"compressed size past the payload", build(entry(PTX, 80, flagZstd, 5000, 1000, z)), 32, "compressed size 5000 is more than the payload's"},
		{"packed list outside", put(packed, 16+20, uint32(5000)), 36, "list of packed entries at 5000"},
		{"packed list too long", put(packed, 16+68, uint32(5000)), 84, "list of packed entries has 5000 bytes"},
		{"packed count", put(packed, 16+64, uint32(3)), 0x138, "packed entry cut short"},
		{"packed payload outside", put(packed, 16+72+4, uint32(5000)), 92, "payload at 5000, 872 bytes, is outside the 1744 unpacked"},
		{"container in a container", put(packed, 16+72, uint16(Container)), 88, "a container inside a container"},
	} {
		_, err := Parse(c.data)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.msg)
			continue
		}
		if e.Offset != c.offset || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s:\n got %#x %s\nwant %#x %s", c.name, e.Offset, e.Msg, c.offset, c.msg)
		}
	}
}

func TestSharedBudget(t *testing.T) {
	p := parser{budget: 1500}
	text := bytes.Repeat([]byte("a"), 1000)
	z := zstdOf(text)
	err := p.containers(build(entry(PTX, 80, flagZstd, len(z), 1000, z), entry(PTX, 80, flagZstd, len(z), 1000, z)))
	if err == nil || !strings.Contains(err.Error(), "are refused") || len(p.entries) != 1 {
		t.Errorf("entries %d, error %v", len(p.entries), err)
	}
}

func TestBest(t *testing.T) {
	mk := func(s string) []Entry {
		var out []Entry
		for f := range strings.FieldsSeq(s) {
			var e Entry
			e.Kind = PTX
			if n, ok := strings.CutPrefix(f, "sm"); ok {
				f, e.Kind = n, ELF
			}
			if n, err := fmt.Sscanf(f, "%d:%d%s", &e.Unit, &e.Arch, &e.Suffix); n < 2 {
				t.Fatal(err)
			}
			out = append(out, e)
		}
		return out
	}
	for _, c := range []struct {
		have string
		want int
		best string
	}{
		{"0:75 0:80 0:90", 80, "0:80"},
		{"0:90 0:75 0:86", 80, "0:75"},
		{"0:90 0:86 0:100", 80, "0:86"},
		{"0:90a 0:90", 90, "0:90"},
		{"0:90 0:90a", 90, "0:90"},
		{"0:90a 0:80", 90, "0:90a"},
		{"0:90a 0:100", 80, "0:100"},
		{"0:100f 0:90", 103, "0:100f"},
		{"0:100f 0:90", 120, "0:90"},
		{"0:100a 0:90a", 80, "0:90a"},
		{"0:80 1:75 1:90", 80, "0:80 1:75"},
		{"sm0:80 0:75", 80, "0:75"},
		{"sm0:80", 80, ""},
	} {
		var got []string
		for _, e := range Best(mk(c.have), c.want) {
			got = append(got, fmt.Sprintf("%d:%d%s", e.Unit, e.Arch, e.Suffix))
		}
		if g := strings.Join(got, " "); g != c.best {
			t.Errorf("Best(%s, %d) = %s, want %s", c.have, c.want, g, c.best)
		}
	}
}

// TestBuiltFor checks for which device a program was built: the newest device whose code is executed.
func TestBuiltFor(t *testing.T) {
	for _, c := range []struct {
		have []Entry
		want int
	}{
		{nil, 0},
		{[]Entry{{Kind: ELF, Arch: 90}}, 0},
		{[]Entry{{Kind: PTX, Arch: 75}, {Kind: ELF, Arch: 90}}, 75},
		{[]Entry{{Kind: PTX, Arch: 80}, {Kind: PTX, Arch: 90, Suffix: "a"}, {Kind: PTX, Arch: 75}}, 90},
		{[]Entry{{Kind: PTX, Arch: 120}, {Kind: PTX, Arch: 80}, {Kind: PTX, Arch: 100}}, 80},
		{[]Entry{{Kind: ELF, Arch: 80}, {Kind: ELF, Arch: 120}, {Kind: PTX, Arch: 120}}, 0},
		{[]Entry{{Kind: ELF, Arch: 120}, {Kind: PTX, Arch: 120}}, 120},
		{[]Entry{{Kind: PTX, Arch: 120}, {Kind: PTX, Arch: 100}, {Kind: PTX, Arch: 103}}, 100},
	} {
		if got := BuiltFor(c.have); got != c.want {
			t.Errorf("built for %d, want %d: %v", got, c.want, c.have)
		}
	}
}

func TestWithoutDeviceRuntime(t *testing.T) {
	text := []byte(".func __nv_static_51__0_22_cuda_device_runtime_cu_1\n.extern .func cnpLaunchDevice\n")
	in := []Entry{{Kind: PTX, Arch: 80, Text: []byte(".version 8.0")}, {Kind: ELF, Unit: 1}, {Kind: PTX, Unit: 1, Text: text}}
	if got := WithoutDeviceRuntime(in); len(got) != 1 || got[0].Arch != 80 {
		t.Errorf("kept %s", summary(got))
	}
}

func FuzzParse(f *testing.F) {
	for _, n := range []string{"plain.fatbin", "lz4.fatbin", "zstd.fatbin", "packed.fatbin"} {
		f.Add(read(f, n))
	}
	f.Add(build(entry(ELF, 80, 0, 0, 0, []byte(elf.ELFMAG)), entry(PTX, 90, flagZstd, 9, 0, zstdOf(nil))))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := Parse(data)
		if err == nil && len(data) == 0 {
			t.Error("nothing was parsed without an error")
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(data))) {
			t.Errorf("error %v at an offset outside %d bytes", err, len(data))
		}
		for _, x := range entries {
			if x.Offset < HeaderSize || x.Offset >= int64(len(data)) {
				t.Errorf("entry at %#x of %d bytes", x.Offset, len(data))
			}
		}
		Best(entries, 80)
		WithoutDeviceRuntime(entries)
	})
}

func BenchmarkParse(b *testing.B) {
	data := read(b, "zstd.fatbin")
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
