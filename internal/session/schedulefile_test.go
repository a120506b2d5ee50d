package session

import (
	"strings"
	"testing"
)

// FuzzReadScheduleFile checks that no file causes a crash, that errors have positions within the file, and that a valid
// file is the same after it is written and read.
func FuzzReadScheduleFile(f *testing.F) {
	const head = "kernel k(int*, int)\nlaunch 2\ngrid 2 1 1\nblock 3 1 1\n"
	for _, s := range []string{head, head + "0/0 load\n1/2 atomic a b.cu:7 # R x=1\n", head + "2/0 load", head + "0/9 exit\n0/0 lod\n0/0\n", "# nothing\n",
		"kernel\ngrid 0 1 1\nblock 1 1\n0/0 store :3\n", head + "grid 1 1 1\n", "\x00/\xff load x:0\n", head + "0/1 fence x.cu:99999999999999999999\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ReadScheduleFile("f", []byte(text))
		switch errs := err.(type) {
		case nil:
		case FileErrors:
			for _, e := range errs {
				if lines := strings.Split(text, "\n"); e.Pos.Line < 1 || e.Pos.Line > len(lines) || e.Pos.Column < 1 || e.Pos.Column > len(lines[e.Pos.Line-1])+1 {
					t.Errorf("the error %v is outside of %q", e, text)
				}
			}
			return
		default:
			t.Fatalf("%v", err)
		}
		again, err := ReadScheduleFile("f", []byte(file.String()))
		if err != nil || len(again.Turns) != len(file.Turns) || again.Kernel != file.Kernel || again.Grid != file.Grid {
			t.Fatalf("%v: %q is read as %+v, written as\\n%s\\nand then read as %+v", err, text, file, file, again)
		}
		for i, turn := range file.Turns {
			if other := again.Turns[i]; turn.Kind != other.Kind || turn.Block != other.Block || turn.Thread != other.Thread || turn.File != other.File || turn.Line != other.Line {
				t.Fatalf("turn %d of %q is %+v, and %+v when it is written", i, text, turn, other)
			}
		}
	})
}
