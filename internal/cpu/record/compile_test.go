package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/cpu"
)

// TestArguments checks that the recorder is linked into programs, and only into programs.
func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"a.c":                    "instrumented linked",
		"a.o b.o -o prog":        "instrumented linked",
		"-c a.c -o a.o":          "instrumented",
		"-E a.c":                 "instrumented",
		"-fsyntax-only a.c":      "instrumented",
		"-shared a.o -o liba.so": "instrumented",
		"-shared -c a.c":         "instrumented",
		"-o prog -lm":            "instrumented linked",
		"-l m -o prog":           "instrumented linked",
		"a.h":                    "instrumented",
		"-x c++-header a":        "instrumented",
		"a.h b.c":                "instrumented linked",
		"@files":                 "instrumented linked",
		"--version":              "",
		"-v":                     "",
		"-print-file-name=x.o":   "",
		"-o x":                   "",
		"-static a.c":            "refused",
		"-static -c a.c":         "instrumented",
		"-static-libstdc++ a.o":  "instrumented linked",
	} {
		for _, clang := range []bool{false, true} {
			c := Compiler{Clang: clang, Recorder: func() (string, error) { return "/r", nil }}
			out, err := c.Arguments(strings.Fields(args))
			var usage *UsageError
			var got []string
			switch {
			case errors.As(err, &usage):
				got = append(got, "refused")
			case err != nil:
				t.Fatal(err)
			default:
				if slices.Contains(out, "-static-libstdc++") {
					got = append(got, "static")
				}
				if slices.Contains(out, "-fsanitize=thread") {
					got = append(got, "instrumented")
				}
				if slices.Contains(out, "/r/"+objectFile) {
					got = append(got, "linked")
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("clang %v: %s: %q, want %q: %q", clang, args, got, want, out)
			}
		}
	}
}

// TestCompilesSource checks that objects are distinguished from sources: clang warns of flags that a link does not use.
func TestCompilesSource(t *testing.T) {
	for args, want := range map[string]bool{"a.c": true, "-c x/a.cpp -o a.o": true, "a.o b.c": true, "-x c++ a": true, "-": true,
		"a.o -o a": false, "a.o -o a.c": false, "-c a.s": false, "liba.a -lm": false} {
		if compilesSource(strings.Fields(args)) != want {
			t.Errorf("%s: not %t", args, want)
		}
	}
}

// TestMemory checks which variables an access touches, which become parts, and which are forgotten.
func TestMemory(t *testing.T) {
	var got []string
	a := newAssembler(func(events []cpu.Event) {
		for _, e := range events {
			s := fmt.Sprintf("%s %d", e.Op, e.Object)
			if e.Op == cpu.Part {
				s += fmt.Sprintf(" of %d", e.Location)
			}
			got = append(got, s)
		}
	})
	m, who := &a.memory, &thread{}
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"a word", func() { m.access(who, 64, 8, cpu.Write, 1) }, "write 0"},
		{"again", func() { m.access(who, 64, 8, cpu.Read, 1) }, "read 0"},
		{"its second half", func() { m.access(who, 68, 4, cpu.Write, 1) }, "part 1 of 0, write 0"},
		{"its first half", func() { m.access(who, 64, 4, cpu.Read, 1) }, "read 1"},
		{"the word", func() { m.access(who, 64, 8, cpu.Write, 1) }, "write 1, write 0"},
		{"a byte in the middle", func() { m.access(who, 65, 1, cpu.Write, 1) }, "part 2 of 1, part 3 of 1, write 1"},
		{"over the end of the word", func() { m.access(who, 70, 4, cpu.Write, 1) }, "part 4 of 0, write 0, write 5"},
		{"a byte of its own", func() { m.access(who, 80, 1, cpu.Write, 1) }, "write 6"},
		{"its neighbour", func() { m.access(who, 81, 1, cpu.Write, 1) }, "write 7"},
		{"the block is freed", func() { m.overwrite(who, 64, 16, 1) }, "write 2, write 1, write 3, write 4, write 0, write 5"},
		{"and used again", func() { m.forget(who, 64, 16) }, "forget 2, forget 1, forget 3, forget 4, forget 0, forget 5"},
		{"by others", func() { m.access(who, 64, 4, cpu.Write, 1) }, "write 5"},
	} {
		got = nil
		step.do()
		a.flush()
		if s := strings.Join(got, ", "); s != step.want {
			t.Errorf("%s: %s, want %s", step.name, s, step.want)
		}
	}
}
