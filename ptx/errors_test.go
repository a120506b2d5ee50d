package ptx

import (
	"errors"
	"strings"
	"testing"
)

// TestErrors reads broken modules. Each `error: text` says that an error holding text is reported for its line; all
// errors must be claimed, and all claims met.
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
