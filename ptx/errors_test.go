package ptx

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

// TestErrors parses invalid modules. Each `error: text` means that an error with the text is reported for its line. All
// errors must be expected, and all expected errors must occur.
func TestErrors(t *testing.T) {
	for path, src := range files(t, "errors") {
		t.Run(path, func(t *testing.T) { checkErrors(t, path, src) })
	}
}

func checkErrors(t *testing.T, path, src string) {
	_, err := Parse(path, src)
	var got ErrorList
	if !errors.As(err, &got) {
		t.Fatalf("error is %v", err)
	}
	want := make(map[int32][]string)
	for i, line := range strings.Split(src, "\n") {
		for _, text := range strings.Split(line, "error: ")[1:] {
			want[int32(i+1)] = append(want[int32(i+1)], strings.TrimSuffix(text, " // "))
		}
	}
	for _, e := range got {
		l := want[e.Pos.Line]
		found := false
		for i, text := range l {
			if strings.Contains(e.Msg, text) {
				want[e.Pos.Line] = append(l[:i:i], l[i+1:]...)
				found = true
				break
			}
		}
		if !found {
			t.Errorf("unexpected: %v", e)
		}
	}
	for line, l := range want {
		for _, text := range l {
			t.Errorf("%s:%d: no error %q", path, line, text)
		}
	}
}

// TestHostile parses texts for which a careless parser would recurse without end, or take time or report errors
// quadratic in the size of the text. Each is so long that the test would then never end.
func TestHostile(t *testing.T) {
	size := 1 << 20
	if testing.Short() {
		size = 1 << 16
	}
	const begin = ".version 9.0\n.target sm_90\n"
	const body = begin + ".entry k () {\n"
	for _, c := range []struct{ begin, repeat, end string }{
		{"", "{", ""}, {"", "}", ""}, {"", ";", ""}, {"", "\x00 ", ""}, {"", "\"", ""}, {"", "/*", ""}, {"", "/", ""},
		{"", "@@", ""}, {"", "@", ""}, {"", "#", ""}, {"", "# 1\n", ""}, {"", ".", ""}, {"", "é", ""}, {"", "\r", ""},
		{body, "{", ""}, {body, "{;", ""}, {body, "{;}", ""}, {body, "{}", "}"}, {body, "}", ""}, {body, "a:", "}"}, {body, "a;", "}"},
		{body, "@p ", ""}, {body, ".loc } ", ""}, {body, ".loc 1 2 3 ", "}"}, {body, ".entry k () {\n", ""},
		{body + "mov a, ", "{", ""}, {body + "mov a, ", "[", ""}, {body + "mov a, ", "(", ""}, {body + "mov a, ", "-", "1;}"},
		{body + "call ", "(", ""}, {body + "mov a, ", "!", "p;}"}, {body + "mov a, ", "a[", ""}, {body + "mov a, ", "1?1:", "1;}"},
		{body + "mov a, ", "1+", "1;}"}, {body + "mov a, ", "1?", ""}, {body + "mov a, ", "a|", "b;}"}, {body + "mov a, b", "+1", ";}"},
		{body + "mov ", "a,", "b;}"}, {body + "mov", ".a", " b;}"}, {body + "mov", " .a", " b;}"}, {body + "mov ", "a", ";}"},
		{body + "mov a, 1", "0", ";}"}, {body + "mov a, 1.", "0", ";}"}, {body + "mov a, 0x", "0", ";}"}, {body + "mov a, 0x", "z", ";}"},
		{body, "mov a, 5 5; ", "}"}, {body, "mov a, {[(", ""}, {body, ".reg .b32 a[", ""}, {body, ".reg .b32 a", ""},
		{begin + ".global .b8 x[] = ", "{", ""}, {begin + ".global .b8 x[] = {", "1,", "1};"}, {begin + ".global .b8 x[] = {", "0xFF(", ""},
		{begin + ".global .b8 x", "[1]", ";"}, {begin, ".global .b8 x<", ""}, {begin, ".global", ""}, {begin, ".global .b8 x, ", ""},
		{begin, ".entry f(", ""}, {begin, ".entry f() .x(", ""}, {begin + ".entry f() ", ".x ", ";"}, {begin + ".entry f() ", ".pragma \"x\";", ""},
		{begin + ".func ", ".x(.y(", ""}, {begin, ".func (", ""}, {begin + ".section .x {", "a ", "}"}, {begin + ".section .x {", "a:", "}"},
		{begin + ".section .x {", ".b8 1 ", "}"}, {begin, ".section .x {", "}"}, {begin, ".section .x }", "}"}, {begin + ".section ", ".x", "{}"},
		{begin + ".target a", ",a", ""}, {begin, ".visible ", ""}, {begin, ".file 1 } ", ""}, {begin, ".pragma \"a\",", ""}, {begin, ".alias a,", ""},
	} {
		src := c.begin + strings.Repeat(c.repeat, size/len(c.repeat)) + c.end
		name := c.begin[max(0, len(c.begin)-20):] + c.repeat
		if m, err := Parse(name, src); err == nil {
			roundTripText(t, m)
		}
	}
	var targets strings.Builder
	targets.WriteString(".version 9.0\n.target a")
	for i := range 200000 {
		targets.WriteString(", t" + strconv.Itoa(i))
	}
	if _, err := Parse("targets", targets.String()); err == nil {
		t.Error("200000 targets are accepted")
	}
}

func roundTripText(t *testing.T, m *Module) {
	t.Helper()
	text := printed(t, m)
	if again := printed(t, mustParse(t, m.Name, text)); again != text {
		t.Error(m.Name, firstDiff(text, again))
	}
}
