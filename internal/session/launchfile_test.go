package session

import (
	"bytes"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/engine/descriptor"
	"fencepost.dev/fencepost/internal/event"
)

const goodLaunch = `
kernel = "reduce"
grid = 4
block = [16, 2]
shared = 1024
args = [ { buffer = "in", type = "i16", shape = [2, 2], fill = "iota" },
         { buffer = "out", type = "f32", shape = 2, fill = [1, 2.5] },
         { buffer = "in" }, { i32 = -2 }, { f64 = 1 }, { bytes = "00 ff" } ]
[[expect]]
buffer = "out"
values = [1, 2]
[[expect]]
buffer = "in"
first = 2
value = 7
`

func TestReadLaunchFile(t *testing.T) {
	f, err := ReadLaunchFile("l.toml", []byte(goodLaunch))
	if err != nil {
		t.Fatal(err)
	}
	l := f.Launches[0]
	if len(f.Launches) != 1 || l.Kernel != "reduce" || l.Shared != 1024 || l.Cooperative != nil || l.Stream != 0 {
		t.Errorf("launch is %+v", l)
	}
	if l.Grid != (event.Dim3{X: 4, Y: 1, Z: 1}) || l.Block != (event.Dim3{X: 16, Y: 2, Z: 1}) {
		t.Errorf("grid %v block %v", l.Grid, l.Block)
	}
	if len(f.Buffers) != 2 || l.Args[0].Buffer != f.Buffers[0] || l.Args[2].Buffer != f.Buffers[0] || l.Args[1].Buffer != f.Buffers[1] {
		t.Errorf("buffers %v", f.Buffers)
	}
	in, out := make([]byte, f.Buffers[0].Bytes()), make([]byte, f.Buffers[1].Bytes())
	f.Buffers[0].Fill(in, 0)
	f.Buffers[1].Fill(out, 0)
	if !bytes.Equal(in, []byte{0, 0, 1, 0, 2, 0, 3, 0}) || !bytes.Equal(out, []byte{0, 0, 0x80, 0x3f, 0, 0, 0x20, 0x40}) {
		t.Errorf("in % x, out % x", in, out)
	}
	for i, want := range [][]byte{{0xfe, 0xff, 0xff, 0xff}, {0, 0, 0, 0, 0, 0, 0xf0, 0x3f}, {0, 0xff}} {
		if got := l.Args[3+i].Value; !bytes.Equal(got, want) {
			t.Errorf("argument %d is % x, want % x", 3+i, got, want)
		}
	}
	if x := f.Expects; len(x) != 2 || x[0].Same || x[0].First != 2 || !x[1].Same || x[1].First != 2 || x[1].Values[0][0] != 7 {
		t.Errorf("expects %+v", x)
	}
}

// TestLaunchTexture checks that a texture over a buffer has the buffer's shape, with the last number first.
func TestLaunchTexture(t *testing.T) {
	f, err := ReadLaunchFile("l.toml", []byte(`
grid = 1
block = 32
args = [{buffer = "a", type = "u16", shape = [2, 3, 5], texture = "3d", address = "mirror", normalized = true},
  {buffer = "a", surface = "3d"}, {buffer = "b", type = "f32", shape = 7, texture = "1d", filter = "linear"}, {buffer = "a"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	args := f.Launches[0].Args
	var got []descriptor.Texture
	for _, a := range args[:3] {
		got = append(got, *a.Texture.describe(a.Buffer, 4096))
	}
	mirror, clamp := [3]descriptor.AddressMode{2, 2, 2}, [3]descriptor.AddressMode{1, 1, 1}
	for i, want := range []descriptor.Texture{
		{Data: 4096, Width: 5, Height: 3, Depth: 2, Dims: 3, Pitch: 10, Slice: 30, Format: descriptor.UnsignedChannel, Bits: [4]uint8{16}, Address: mirror, Normalized: true},
		{Data: 4096, Width: 5, Height: 3, Depth: 2, Dims: 3, Pitch: 10, Slice: 30, Format: descriptor.UnsignedChannel, Bits: [4]uint8{16}, Address: clamp, Surface: true},
		{Data: 4096, Width: 7, Height: 1, Depth: 1, Dims: 1, Pitch: 28, Slice: 28, Format: descriptor.FloatChannel, Bits: [4]uint8{32}, Address: clamp, Filter: true},
	} {
		if got[i] != want {
			t.Errorf("argument %d is %+v, want %+v", i, got[i], want)
		}
	}
	if args[3].Texture != nil {
		t.Error("an address is a texture")
	}
}

func TestReadLaunches(t *testing.T) {
	f, err := ReadLaunchFile("l.toml", []byte(`
[[launch]]
grid = [1]
block = [32]
stream = 1
query = 2
event_query = 1
args = [{buffer = "a", type = "u8", shape = [3], fill = "random"}]
[[launch]]
kernel = "k"
grid = [1]
block = [32]
stream = 2
sync = true
cooperative = true
args = [{buffer = "a"}]
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Launches) != 2 || f.Launches[0].Stream != 1 || f.Launches[1].Stream != 2 || !f.Launches[1].Sync || !*f.Launches[1].Cooperative {
		t.Errorf("launches %+v", f.Launches)
	}
	if l := f.Launches[0]; l.Query != 2 || l.EventQuery != 1 {
		t.Errorf("%d and %d queries", l.Query, l.EventQuery)
	}
	a, b := make([]byte, 3), make([]byte, 3)
	f.Buffers[0].Fill(a, 0)
	f.Buffers[0].Fill(b, 0)
	if !bytes.Equal(a, b) || a[0] == a[1] && a[1] == a[2] {
		t.Errorf("random fill % x and % x", a, b)
	}
}

// TestLaunchFileErrors checks the error for each mistake. launch represents the keys that every launch needs.
func TestLaunchFileErrors(t *testing.T) {
	const launch = "grid = 1\nblock = 1\n"
	for _, c := range []struct{ text, want string }{
		{"", "l.toml: there is no launch"},
		{"grid = ", "l.toml:1:7: expected value"},
		{"grid = 1\ngrid = 2", "l.toml:2:1: key grid is already defined"},
		{"grid = 1", "l.toml:1:1: the launch has no block"},
		{launch + "gird = 1", `l.toml:3:1: unknown key "gird"; did you mean "grid"?`},
		{launch + "a.b = 1", `l.toml:3:1: unknown key "a.b"`},
		{launch + "[launches]\nx = 1", `l.toml:3:2: unknown key "launches"; did you mean "launch"?`},
		{launch + "[[launch]]\ngrid = 1\nblock = 1", "l.toml:3:3: [[launch]] and launch keys at the top"},
		{"launch = 1", "l.toml:1:10: launch is an integer"},
		{"grid = [1,1,1,1]\nblock = 1", "l.toml:1:1: grid has 4 numbers"},
		{"grid = 0\nblock = 1", "l.toml:1:8: grid is 0, and should be 1 to 2147483647"},
		{"grid = [1, -1]\nblock = 1", "l.toml:1:12: grid is -1"},
		{"grid = 1.5\nblock = 1", "l.toml:1:8: grid is a number with a fraction"},
		{"grid = 1979-05-27\nblock = 1", "l.toml:1:8: grid is a date"},
		{launch + "shared = 2_000_000", "l.toml:3:10: shared is 2000000"},
		{launch + "query = 1001", "l.toml:3:9: query is 1001, and should be 0 to 1000"},
		{launch + "cooperative = 1", "l.toml:3:15: cooperative is an integer, and should be true or false"},
		{launch + "kernel = 1", "l.toml:3:10: kernel is an integer, and should be a string"},
		{launch + "args = 1", "l.toml:3:8: args is an integer"},
		{launch + "args = [1]", "l.toml:3:9: an argument is an integer"},
		{launch + "args = [{}]", "l.toml:3:9: an argument is a buffer or has one key"},
		{launch + "args = [{int = 1}]", `l.toml:3:10: unknown argument type "int"; one of buffer, bytes`},
		{launch + "args = [{i33 = 1}]", `unknown argument type "i33"; did you mean "i32"?`},
		{launch + "args = [{i8 = 128}]", "l.toml:3:15: 128 does not fit i8"},
		{launch + "args = [{u32 = -1}]", "l.toml:3:16: -1 does not fit u32"},
		{launch + "args = [{i32 = 1.5}]", "l.toml:3:16: an integer is wanted for i32"},
		{launch + `args = [{f32 = "x"}]`, "l.toml:3:16: a number is wanted for f32, this is a string"},
		{launch + `args = [{bytes = "0"}]`, "l.toml:3:18: bytes should be pairs"},
		{launch + `args = [{buffer = "a"}]`, `l.toml:3:9: buffer "a" is mentioned for the first time and needs a type and a shape`},
		{launch + `args = [{buffer = "a", type = "f31", shape = 1}]`, `l.toml:3:31: unknown type "f31"; did you mean "f32"?`},
		{launch + `args = [{buffer = "a", type = "i8", shape = [1, 0]}]`, "l.toml:3:49: shape is 0"},
		{launch + `args = [{buffer = "a", type = "i8", shape = []}]`, "shape has 0 numbers"},
		{launch + `args = [{buffer = "a", type = "i8", shape = [99999999999]}]`, "shape is 99999999999"},
		{launch + `args = [{buffer = "a", type = "i8", shape = [4294967296, 4294967296]}]`, "more than 17179869184 elements"},
		{launch + `args = [{buffer = "a", type = "f64", shape = [17179869184]}]`, "take more than 16 GiB"},
		{launch + `args = [{buffer = "a", type = "f64", shape = [1073741824], fill = 1}]`, "more than 1 GiB of buffers are filled"},
		{launch + `args = [{buffer = "a", type = "i8", shape = 1, fil = 1}]`, `unknown key "fil"; did you mean "fill"?`},
		{launch + `args = [{buffer = "a", type = "i8", shape = 1, fill = "ioat"}]`, `unknown fill "ioat"; did you mean "iota"?`},
		{launch + `args = [{buffer = "a", type = "i8", shape = 2, fill = [1]}]`, "fill has 1 numbers"},
		{launch + `args = [{buffer = "a", type = "i8", shape = 1, fill = 300}]`, "300 does not fit i8"},
		{launch + `args = [{buffer = "a", type = "i8", shape = 1}, {buffer = "a", shape = 2}]`, "described already"},
		{launch + `args = [{buffer = "a", type = "f32", shape = [2, 3], texture = "2e"}]`, `l.toml:3:64: texture is "2e", and should be "1d", "2d" or "3d"`},
		{launch + `args = [{buffer = "a", type = "f32", shape = [2, 3], surface = "1d"}]`, `the shape of buffer "a" has 2 numbers, and should have one for each dimension, 1`},
		{launch + `args = [{buffer = "a", type = "f32", shape = 2, texture = "1d", filter = "liner"}]`, `unknown filter "liner"; did you mean "linear"?`},
		{launch + `args = [{buffer = "a", type = "f32", shape = 2, texture = "1d", address = "clmp"}]`, `unknown address mode "clmp"; did you mean "clamp"?`},
		{launch + `args = [{buffer = "a", type = "f32", shape = 2, filter = "linear"}]`, "l.toml:3:49: filter is for an argument with texture"},
		{launch + "[[expect]]\nvalue = 1", "l.toml:3:3: [[expect]] needs a buffer"},
		{launch + "args = [{buffer = \"in\", type = \"i8\", shape = 1}]\n[[expect]]\nbuffer = \"im\"\nvalue = 1", `l.toml:5:10: there is no buffer "im"; or did you mean "in"?`},
		{launch + "args = [{buffer = \"in\", type = \"i8\", shape = 1}]\n[[expect]]\nbuffer = \"in\"", "needs either values"},
		{launch + "args = [{buffer = \"in\", type = \"i8\", shape = 1}]\n[[expect]]\nbuffer = \"in\"\nvalues = [1, 2]", "at most 1 numbers"},
		{"grid = " + strings.Repeat("[", 40) + "1" + strings.Repeat("]", 40) + "\nblock = 1", "nested too deep"},
		{strings.Repeat("#", MaxLaunchFile+1), "a launch file has at most"},
	} {
		_, err := ReadLaunchFile("l.toml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.200q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

func FuzzReadLaunchFile(f *testing.F) {
	f.Add(goodLaunch)
	f.Add("[[launch]]\ngrid = [1]\nblock = [32]\n[[expect]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ReadLaunchFile("l.toml", []byte(text))
		if (file == nil) == (err == nil) {
			t.Fatalf("file %v, error %v", file, err)
		}
		if err != nil {
			return
		}
		for _, b := range file.Buffers {
			if b.Bytes() < 1<<16 {
				b.Fill(make([]byte, b.Bytes()), 0)
			}
		}
	})
}
