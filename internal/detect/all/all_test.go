package all

import (
	"os"
	"strings"
	"testing"
)

// TestPageNamesThem checks that docs/detectors.md names every detector, with every option and its values, the default
// first.
func TestPageNamesThem(t *testing.T) {
	text, err := os.ReadFile("../../../docs/detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Detectors() {
		_, section, ok := strings.Cut(string(text), "\n### "+d.Name+"\n")
		if !ok {
			t.Errorf("docs/detectors.md has no section %q", "### "+d.Name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n#")
		for _, want := range []string{"*From:*", "*Judges:*", "*Blind:*"} {
			if !strings.Contains(section, want) {
				t.Errorf("docs/detectors.md, %s, has no %s", d.Name, want)
			}
		}
		for _, o := range d.Options {
			if want := "`" + d.Name + ":" + o.Name + "=" + strings.Join(o.Values, "|") + "`"; !strings.Contains(section, want) {
				t.Errorf("docs/detectors.md, %s, has no option %s", d.Name, want)
			}
		}
		if n := strings.Count(section, "`"+d.Name+":"); n != len(d.Options) {
			t.Errorf("docs/detectors.md, %s, has %d options, the detector %d", d.Name, n, len(d.Options))
		}
	}
}
