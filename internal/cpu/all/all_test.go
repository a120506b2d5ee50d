package all

import (
	"os"
	"strings"
	"testing"
)

// TestPageNamesThem checks that docs/detectors.md names every detector.
func TestPageNamesThem(t *testing.T) {
	text, err := os.ReadFile("../../../docs/detectors.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range Detectors() {
		_, section, ok := strings.Cut(string(text), "\n### "+d.Name+"\n")
		section, _, _ = strings.Cut(section, "\n#")
		for _, want := range []string{"*From:*", "*Judges:*", "*Blind:*"} {
			if !ok || !strings.Contains(section, want) {
				t.Errorf("docs/detectors.md, %s, has no %s", d.Name, want)
			}
		}
	}
}
