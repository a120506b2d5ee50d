package papers

import (
	"encoding/xml"
	"io"
	"os"
	"strings"
	"testing"
)

// TestItems checks that each item is reproduced, or tells where it is or why it is not, and that the page has each
// item.
func TestItems(t *testing.T) {
	page, err := os.ReadFile("../../docs/papers.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Papers() {
		for _, it := range p.Items {
			if (it.Command == "") == (it.Other == "") {
				t.Errorf("%s, %s: wants a command, or where it is", p.Title, it.Name)
			}
			heading := "\n### " + it.Name + ": " + it.Title + "\n"
			at := strings.Index(string(page), heading)
			if at < 0 {
				t.Errorf("docs/papers.md lacks %q: run go run ./cmd/papers", strings.TrimSpace(heading))
				continue
			}
			section, _, _ := strings.Cut(string(page)[at+len(heading):], "\n### ")
			for _, text := range []string{it.Printed, it.Why, it.Other} {
				if it.Plot != "" {
					if _, err := os.Stat("../../docs/" + it.Plot); err != nil || !strings.Contains(section, it.Plot) {
						t.Errorf("docs lacks %s: run go run ./cmd/papers", it.Plot)
					}
				}
				if !strings.Contains(section, text) {
					t.Errorf("docs/papers.md, %s lacks %q: run go run ./cmd/papers", it.Name, text)
				}
			}
		}
	}
}

// TestItem checks that an item fails if its command fails or does not print the expected blocks.
func TestItem(t *testing.T) {
	for _, c := range []struct {
		it   Item
		want string // in the text, or in the error after "error: "
	}{
		{Item{Command: "fencepost verify lb3.litmus && fencepost verify lb7.litmus"}, "7 executions"},
		{Item{Command: "fencepost verify lb3.litmus && fencepost verify lb7.litmus"}, "127 executions"},
		{Item{Command: "fencepost simulate --hw parsnip --program sor --events 2000", Keep: []string{"(figure 4.10)"}}, "capability"},
		{Item{Command: "fencepost simulate --hw parsnip --program sor --events 2000", Keep: []string{"(figure 9)"}}, "error: no block"},
		{Item{Command: "fencepost simulate --hw nothing"}, "error: exit code 2"},
	} {
		w := &writer{outputs: map[string]string{}, log: io.Discard, dir: t.TempDir()}
		for name, text := range files() {
			if err := os.WriteFile(w.path(name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		var b strings.Builder
		w.item(&b, &c.it)
		if want, ok := strings.CutPrefix(c.want, "error: "); ok {
			if w.failed == nil || !strings.Contains(w.failed.Error(), want) {
				t.Errorf("%s: %v, want %q", c.it.Command, w.failed, want)
			}
		} else if w.failed != nil || !strings.Contains(b.String(), c.want) {
			t.Errorf("%s gives %s%v, want %q", c.it.Command, b.String(), w.failed, c.want)
		}
		if strings.Contains(b.String(), w.dir) {
			t.Errorf("%s: the page names a folder of this machine:\n%s", c.it.Command, b.String())
		}
	}
}

// TestPlot checks that a plot is XML and has a bar of the correct height for each number.
func TestPlot(t *testing.T) {
	tab, err := readTable("Cycles <of> two (figure 8)\n            a    b\n  one      1.00  2.00\n  two words     4.00     -\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(tab.rows) != 2 || tab.rows[1].name != "two words" || len(tab.rows[1].values) != 1 || tab.rows[0].values[1] != 2 {
		t.Fatalf("%+v", tab)
	}
	text := tab.svg()
	for _, want := range []string{`height="220.0" fill="#4477aa"`, `height="110.0" fill="#ee6677"`, `height="55.0" fill="#4477aa"`, "&lt;of&gt;", ">two words<"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("the plot has %q %d times, want once:\n%s", want, strings.Count(text, want), text)
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"title\n a\n", "title\n  a\n  row    x\n"} {
		if _, err := readTable(bad); err == nil {
			t.Errorf("%q can be plotted", bad)
		}
	}
}
