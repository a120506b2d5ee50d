package site

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fencepost.dev/fencepost/docs"
)

// TestSite makes the site and checks every link of every page.
func TestSite(t *testing.T) {
	out := t.TempDir()
	n, err := build(filepath.Join("..", ".."), out)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	err = filepath.WalkDir(out, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(out, name)
		texts[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range docs.Kinds() {
		if text := texts["kinds/"+kind+".html"]; !strings.Contains(text, ">Manual</h2>") || !strings.Contains(text, "<pre><code class=\"language-cuda\">") {
			t.Errorf("the page of %s has no program, or no section of the manual", kind)
		}
	}
	for _, name := range []string{"index.html", "ci.html", "ARCHITECTURE.html", "commands.html", "style.css", "papers-4.8.svg"} {
		if texts[name] == "" {
			t.Errorf("there is no %s", name)
		}
	}
	if !strings.Contains(texts["commands.html"], `id="fencepost-verify"`) {
		t.Error("the commands have no section of verify")
	}
	links, pages := 0, 0
	reference := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for name, text := range texts {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		pages++
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.HasPrefix(to, "https://") {
				continue
			}
			links++
			file := name
			if to != "" {
				file = path.Join(path.Dir(name), to)
			}
			target, ok := texts[file]
			if !ok || anchor != "" && !strings.Contains(target, `id="`+anchor+`"`) {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
	if pages != n || links < 1000 {
		t.Errorf("%d pages of %d, %d links", pages, n, links)
	}
}
