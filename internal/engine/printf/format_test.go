package printf

import (
	"encoding/binary"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// formatCases are formats with packed arguments and the output of C. The expected output follows the C standard;
// TestFormatAgainstC compares it with a C compiler.
var formatCases = []struct {
	format string
	args   []any
	want   string
}{
	{"plain 100%%\n", nil, "plain 100%\n"},
	{"%d %i", []any{int32(-5), int32(7)}, "-5 7"},
	{"[%5d] [%-5d] [%05d] [%+d] [% d]", []any{int32(42), int32(42), int32(42), int32(42), int32(42)}, "[   42] [42   ] [00042] [+42] [ 42]"},
	{"%.3d|%5.3d|%.0d|", []any{int32(7), int32(7), int32(0)}, "007|  007||"},
	{"%u %o %x %X", []any{uint32(4294967295), uint32(8), uint32(255), uint32(255)}, "4294967295 10 ff FF"},
	{"%#x %#X %#o %#x", []any{uint32(255), uint32(255), uint32(8), uint32(0)}, "0xff 0XFF 010 0"},
	{"%08x|%-8x|%#08x", []any{uint32(48879), uint32(48879), uint32(48879)}, "0000beef|beef    |0x00beef"},
	{"%ld %lld %lu %zu", []any{int64(-1), int64(math.MinInt64), uint64(math.MaxUint64), uint64(3)}, "-1 -9223372036854775808 18446744073709551615 3"},
	{"%hd %hhd %hu %hhu", []any{int32(70000), int32(300), int32(70000), int32(-1)}, "4464 44 4464 255"},
	{"%c%c%3c", []any{int32('h'), int32('i'), int32('!')}, "hi  !"},
	{"%s|%6s|%-6s|%.2s", []any{"abc", "abc", "abc", "abc"}, "abc|   abc|abc   |ab"},
	{"%*d|%-*d|%.*f", []any{int32(4), int32(1), int32(4), int32(1), int32(1), 2.25}, "   1|1   |2.2"},
	{"%f %.2f %10.3f %-10.3f| %+.1f %010.2f", []any{1.0, 3.14159, 2.5, 2.5, 2.0, -1.5}, "1.000000 3.14      2.500 2.500     | +2.0 -000001.50"},
	{"%e %.2E %g %g %g %G", []any{12345.678, 0.00012, 100000.0, 1000000.0, 0.0001, 1e-10}, "1.234568e+04 1.20E-04 100000 1e+06 0.0001 1E-10"},
	{"%g %g %#g %.3g %#.0f", []any{0.5, 123456789.0, 1.0, 3.14159, 3.0}, "0.5 1.23457e+08 1.00000 3.14 3."},
	{"%a %A %.2a", []any{1.0, 0.5, 3.14159}, "0x1p+0 0X1P-1 0x1.92p+1"},
	{"%a %a %a", []any{1024.0, 0x1p-30, 0x1p+100}, "0x1p+10 0x1p-30 0x1p+100"},
	{"%f %F %5.1f|%05f", []any{math.Inf(1), math.Inf(-1), math.NaN(), math.Inf(1)}, "inf -INF   nan|  inf"},
	{"%p %p", []any{uint64(0x200000000000), uint64(0)}, "0x200000000000 (nil)"},
	{"%d%c%lf", []any{int32(1), int32(','), 2.0}, "1,2.000000"},
	{"%.0d|%.0u|%.0x|%3.0d|%+.0d|%.1d", []any{int32(5), uint32(12), uint32(10), int32(0), int32(0), int32(0)}, "5|12|a|   |+|0"},
	{"%#.0o|%#.3o|%#.1o|%#5o|%#o", []any{uint32(0), uint32(8), uint32(8), uint32(8), uint32(0)}, "0|010|010|  010|0"},
	{"%#.4x|%#8.4x|%#08x|%-#8x|%#.0x|", []any{uint32(26), uint32(26), uint32(26), uint32(26), uint32(0)}, "0x001a|  0x001a|0x00001a|0x1a    ||"},
	{"%hx %hhx %ho %hhX %hi %hhi", []any{uint32(0x12345), uint32(0x1fe), uint32(65537), uint32(0xfab), int32(40000), int32(200)}, "2345 fe 1 AB -25536 -56"},
	{"%jd %td %lx %llo %zx", []any{int64(-7), int64(9), uint64(1 << 40), uint64(8), uint64(1<<64 - 1)}, "-7 9 10000000000 10 ffffffffffffffff"},
	{"%-05d|%+5d|% 05d|%+05d|%05d|%.2d|%5.1d", []any{int32(3), int32(3), int32(3), int32(-3), int32(-3), int32(-3), int32(-3)}, "3    |   +3| 0003|-0003|-0003|-03|   -3"},
	{"%g %g %g %g %g %g", []any{0.0, 99999.5, 999999.5, 0.00001234, 123456.0, 1e100}, "0 99999.5 1e+06 1.234e-05 123456 1e+100"},
	{"%.0g %.1g %.10g %#.3g %#g %G", []any{15.0, 0.96, 0.1, 10.0, 1e10, 1e20}, "2e+01 1 0.1 10.0 1.00000e+10 1E+20"},
	{"%.2g %.2g %.2g %.17g", []any{99.4, 99.6, 0.000099, 0.1}, "99 1e+02 9.9e-05 0.10000000000000001"},
	{"%.0e %#.0e %.0f %12.3e|%-12.3e|%+e", []any{15000.0, 15000.0, 2.5, -1.5, -1.5, 0.0}, "2e+04 2.e+04 2   -1.500e+00|-1.500e+00  |+0.000000e+00"},
	{"%e %e %E", []any{1e100, 1e-100, 1e-5}, "1.000000e+100 1.000000e-100 1.000000E-05"},
	{"%012a|%12a|%-12a|%+a|%a|%.0a|%a", []any{1.5, 1.5, 1.5, 1.5, -1.5, 1.0, 0.0}, "0x00001.8p+0|    0x1.8p+0|0x1.8p+0    |+0x1.8p+0|-0x1.8p+0|0x1p+0|0x0p+0"},
	{"%F %E %G %A", []any{math.NaN(), math.Inf(1), math.Inf(-1), math.Inf(1)}, "NAN INF -INF INF"},
	{"%05.1f|%05e|%-5f|%+f|% f", []any{math.Inf(-1), math.Inf(1), math.Inf(1), math.Inf(1), math.Inf(1)}, " -inf|  inf|inf  |+inf| inf"},
	{"%20p|%-20p|", []any{uint64(0x1000), uint64(0x1000)}, "              0x1000|0x1000              |"},
	{"%.0s|%.10s|%1s|%-3s|%3.1s", []any{"abc", "abc", "abc", "a", "xyz"}, "|abc|abc|a  |  x"},
	{"%-3c|%c", []any{int32('a'), int32('b' + 256)}, "a  |b"},
	{"%*d|%.*d|%.*d|%-*.*f|", []any{int32(-4), int32(1), int32(3), int32(1), int32(-1), int32(1), int32(6), int32(1), 1.25}, "1   |001|1|1.2   |"},
	{"%k %", nil, "%k %"},
}

// packArgs lays out arguments as the compiler does: each at a multiple of its size. Strings go to pool.
func packArgs(args []any, pool map[uint64]string) []byte {
	var b []byte
	put := func(size int, v uint64) {
		for len(b)%size != 0 {
			b = append(b, 0)
		}
		if size == 4 {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		} else {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
	}
	for _, a := range args {
		switch a := a.(type) {
		case int32:
			put(4, uint64(a))
		case uint32:
			put(4, uint64(a))
		case int64:
			put(8, uint64(a))
		case uint64:
			put(8, a)
		case float64:
			put(8, math.Float64bits(a))
		case string:
			at := uint64(1000 + len(pool))
			pool[at] = a
			put(8, at)
		}
	}
	return b
}

func formatted(format string, args []any) (string, int) {
	pool := map[uint64]string{}
	buf := packArgs(args, pool)
	f := Formatter{
		Format: format,
		Args: Args{Peek: func(addr, n uint64) []byte {
			return buf[min(addr, uint64(len(buf))):min(addr+n, uint64(len(buf)))]
		}},
		Text: func(addr uint64) (string, bool) { s, ok := pool[addr]; return s, ok },
	}
	return string(f.Run()), f.Args.Taken
}

func TestFormat(t *testing.T) {
	for _, c := range formatCases {
		got, taken := formatted(c.format, c.args)
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.format, got, c.want)
		}
		if taken != len(c.args) {
			t.Errorf("%q: took %d arguments of %d", c.format, taken, len(c.args))
		}
	}
}

// TestFormatAgainstC compares the expected output with that of a C compiler.
func TestFormatAgainstC(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	dir := t.TempDir()
	var src strings.Builder
	src.WriteString("#include <stdio.h>\n#include <math.h>\nint main(void) {\n")
	var want strings.Builder
	for _, c := range formatCases {
		if c.format == "%k %" {
			continue // undefined in C
		}
		src.WriteString("printf(" + cString(c.format+"\n"))
		for _, a := range c.args {
			src.WriteString(", " + cLiteral(a))
		}
		src.WriteString(");\n")
		want.WriteString(c.want + "\n")
	}
	src.WriteString("}\n")
	cmd := exec.Command(cc, "-w", "-x", "c", "-o", dir+"/a", "-")
	cmd.Stdin = strings.NewReader(src.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(dir + "/a").Output()
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != want.String() {
		t.Errorf("C prints\n%s\nthe expectations are\n%s", out, want.String())
	}
}

func cString(s string) string { return strconv.Quote(s) }

func cLiteral(a any) string {
	switch a := a.(type) {
	case string:
		return cString(a)
	case float64:
		switch {
		case math.IsNaN(a):
			return "NAN"
		case math.IsInf(a, 0):
			return strings.TrimSuffix(strconv.FormatFloat(a, 'f', -1, 64), "Inf") + "INFINITY"
		}
		return strconv.FormatFloat(a, 'e', -1, 64)
	case uint64:
		return fmt.Sprintf("%dUL", a)
	case int64:
		if a == math.MinInt64 {
			return "(-9223372036854775807L-1)"
		}
		return fmt.Sprintf("%dL", a)
	default:
		return fmt.Sprint(a)
	}
}
