package report

import (
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/event"
)

// carets are source lines with the text that an access marks in them; "" means the column of the line table. The
// variable is that of the access, or "" if it has no name in the program. The function is one that makes the access.
var carets = []struct {
	line               string
	op                 detect.Op
	variable, function string
	want               string
}{
	{"tile[t] = in[t];", detect.Write, "tile", "", "tile[t]"},
	{"tile[t] = in[t];", detect.Read, "", "", "in[t]"},
	{"if (t < 128) tile[t] += tile[t + 128];", detect.Write, "tile", "", "tile[t]"},
	{"if (t < 128) tile[t] += tile[t + 128];", detect.Read, "tile", "", "tile[t] += tile[t + 128]"}, // either
	{"if (t < 128) tile[t] += in[t + 128];", detect.Read, "tile", "", "tile[t]"},
	{"if (t < 128) tile[t] += in[t + 128];", detect.Read, "", "", "tile[t] += in[t + 128]"},
	{"out[i] = tile[t - 1] + in[t] + tile[t + 1] + c;", detect.Read, "tile", "", "tile[t - 1] + in[t] + tile[t + 1]"},
	{"out[i] = tile[t];", detect.Read, "tile", "", "tile[t]"},
	{"out[i] = s[t];", detect.Read, "tile", "", "s[t]"}, // by a pointer
	{"x = f(a[b[i] + 1]);", detect.Read, "", "", "a[b[i] + 1]"},
	{"x = tile[y][x + 1].w;", detect.Read, "tile", "", "tile[y][x + 1].w"},
	{"hist[data[i]]++;", detect.Write, "", "", "hist[data[i]]"},
	{"hist[data[i]] = 1;", detect.Read, "", "", "data[i]"},
	{"hist[data[i]]++;", detect.Read, "", "", "hist[data[i]]"},
	{"++hist[3];", detect.Write, "", "", "hist[3]"},
	{"count = count + 1; // count = 2", detect.Write, "count", "", "count"},
	{"count += 1;", detect.Read, "count", "", "count"},
	{"while (flag == 0);", detect.Read, "flag", "", "flag"},
	{"if (*flag >= 1) *flag = 0;", detect.Read, "", "", "*flag"},
	{"if (*flag >= 1) *flag = 0;", detect.Write, "", "", "*flag"},
	{"return a * b[i];", detect.Read, "", "", "b[i]"},
	{"return (a + 1) * b[i];", detect.Read, "", "", "b[i]"},
	{"int twice(const int *v) { return 2 * *v; }", detect.Read, "v", "", "*v"},
	{"*out = *(long long *)(x + i);", detect.Read, "x", "", "*(long long *)(x + i)"},
	{"if (c) *p = b[i];", detect.Write, "", "", "*p"},
	{"*p++ = b[i];", detect.Write, "", "", "*p++"},
	{"*(volatile int *)&a[i] = 2;", detect.Write, "", "", "*(volatile int *)&a[i]"},
	{"node->next = other;", detect.Write, "", "", "node->next"},
	{"int *q = &a[i];", detect.Read, "", "", ""},
	{"int a[4] = {0};", detect.Write, "", "", ""},
	{"else a[i] = 4;", detect.Write, "", "", "a[i]"},
	{"r = r + 1;", detect.Write, "", "", "r"}, // a reference of the file
	{"x = r + a[i];", detect.Read, "", "", "r + a[i]"},
	{"x = ELEMENT + a[i];", detect.Read, "", "", ""}, // a macro that reads
	{"x = LOAD(p) + a[i];", detect.Read, "", "", ""},
	{"x = SIZE + a[i + SIZE];", detect.Read, "", "", "a[i + SIZE]"},
	{"x = c ? a[i] : b[i];", detect.Read, "", "", ""},
	{"x = f(a[i],", detect.Read, "", "", ""},
	{"      b[j]) + c;", detect.Read, "", "", ""},
	{"x = (p + 1)[i] + a[i];", detect.Read, "", "", ""},
	{"x = '[' + a[i];", detect.Read, "", "", ""},
	{"x = /* was b[i] */ a[i];", detect.Read, "", "", ""},
	{"if (t == 0) atomicAdd(&a[0], tile[t]);", detect.AtomicOp, "", "atomicAdd", "atomicAdd(&a[0], tile[t])"},
	{"if (t == 0) atomicAdd(&a[0], tile[t]);", detect.Read, "tile", "", "tile[t]"},
	{"atomicAdd(a, 1); atomicAdd(b, 1);", detect.AtomicOp, "", "atomicAdd", ""},
	{"f.store(g[1]);", detect.Write, "", "store<int, 2>", "store(g[1])"},
	{"f.store(g[1]);", detect.Write, "", "save", ""},
	{"asm(a[i]);", detect.AtomicOp, "", "", ""},
	{"x = \xff + a[i];", detect.Read, "", "", "a[i]"},
	{"x = a[", detect.Read, "", "", ""},
	{"x = a.", detect.Read, "", "", ""},
	{"*", detect.Read, "", "", ""},
	{")", detect.Read, "", "", ""},
}

func TestCaret(t *testing.T) {
	for _, c := range carets {
		lines := []string{"#define SIZE (1 << 4)", "#define ELEMENT table[3]", "int &r = a[7];", "\t" + c.line}
		text := &Text{Source: func(string) []string { return lines }}
		a := Access{Op: c.op, Object: Object{Name: c.variable, Named: c.variable != ""}}
		if c.function != "" {
			a.Frames = []event.Frame{{Function: c.function}}
		}
		a.Frames = append(a.Frames, event.Frame{File: "k.cu", Line: 4, Column: 2})
		from, to := text.marked(&a, lines[3], 2)
		if got := lines[3][from:to]; got != c.want || got == "" && from != 1 {
			t.Errorf("%s of %q in %s marks %q at %d, want %q", c.op, c.variable, c.line, got, from, c.want)
		}
		a.Frames[len(a.Frames)-1].File = "k.py"
		if from, to := text.marked(&a, lines[3], 2); from != 1 || to != 1 {
			t.Errorf("in Python, %s marks %q", c.line, lines[3][from:to])
		}
	}
}

// FuzzCaret checks that the caret marks a part of the line, for any line.
func FuzzCaret(f *testing.F) {
	for _, c := range carets {
		f.Add(c.line, c.variable)
	}
	f.Fuzz(func(t *testing.T, line, variable string) {
		if strings.Contains(line, "\n") {
			return
		}
		text := &Text{Source: func(string) []string { return []string{line} }}
		for _, op := range []detect.Op{detect.Read, detect.Write} {
			a := Access{Op: op, Object: Object{Name: variable, Named: true}, Frames: []event.Frame{{File: "k.cu", Line: 1}}}
			if from, to := text.marked(&a, line, 1); from > to || to > len(line) {
				t.Errorf("%q marks %d to %d", line, from, to)
			}
		}
	})
}
