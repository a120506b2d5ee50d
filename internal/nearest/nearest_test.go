package nearest

import "testing"

func TestWord(t *testing.T) {
	words := []string{"run", "check", "nvcc", "isa", "doctor", "version", "help"}
	for typo, want := range map[string]string{
		"chekc": "check", "ceck": "check", "rnu": "run", "run": "run", "docter": "doctor", "vers": "version",
		"doc": "doctor", "zzz": "", "": "", "halp": "help", "nvc": "nvcc",
	} {
		if got := Word(typo, words); got != want {
			t.Errorf("Word(%q) = %q, want %q", typo, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		d    int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}} {
		if got := distance(c.a, c.b); got != c.d {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.d)
		}
	}
}

func TestHint(t *testing.T) {
	if got := Hint("errr", []string{"error", "warning"}); got != `; did you mean "error"?` {
		t.Error(got)
	}
	if got := Hint("qqqqqq", []string{"warning", "error", "info"}); got != "; one of error, info or warning is expected" {
		t.Error(got)
	}
	if got := Hint("3", []string{"all", "16", "4", "2"}); got != "; one of 2, 4, 16 or all is expected" {
		t.Error(got)
	}
	if got := Hint("q", nil); got != "" {
		t.Error(got)
	}
}
