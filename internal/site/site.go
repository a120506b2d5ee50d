// Package site makes a web site of the documentation: the README, the pages of docs, a page for each kind of finding as
// printed by "fencepost explain", and the manual page. The files need no server.
package site

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	htmlrender "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"

	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/cli"
)

//go:embed site.css
var css string

// page is one page of the site.
type page struct {
	name  string // of the file, "/" for folders
	from  string // the file from which it is made, relative to the root of the module; "" for none
	title string
	group string // in the list of pages
	text  string // Markdown
}

// Main runs the command with its arguments and gives the exit code. It runs in the root of the module.
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("site", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "dist/site", "the `folder` to write to")
	if flags.Parse(args) != nil {
		return 2
	}
	n, err := build(".", *out)
	if err != nil {
		fmt.Fprintf(stderr, "site: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "%d pages in %s: open %s\n", n, *out, filepath.Join(*out, "index.html"))
	return 0
}

// build writes the site of the module in root, and returns the number of its pages.
func build(root, out string) (int, error) {
	pages, err := collect(root)
	if err != nil {
		return 0, err
	}
	files := map[string][]byte{"style.css": []byte(css)}
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "*.svg"))
	if err != nil {
		return 0, err
	}
	for _, name := range pictures {
		if files[filepath.Base(name)], err = os.ReadFile(name); err != nil {
			return 0, err
		}
	}
	for i := range pages {
		if files[pages[i].name], err = render(&pages[i], pages); err != nil {
			return 0, fmt.Errorf("%s: %w", pages[i].name, err)
		}
	}
	for name, data := range files {
		name = filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			return 0, err
		}
		if err := os.WriteFile(name, data, 0o666); err != nil {
			return 0, err
		}
	}
	return len(pages), nil
}

// comment matches the comment at the start of generated pages.
var comment = regexp.MustCompile(`^<!--.*-->\n+`)

// collect returns the pages in the order of the list.
func collect(root string) ([]page, error) {
	read := func(name string) (string, error) {
		data, err := os.ReadFile(filepath.Join(root, name))
		return comment.ReplaceAllString(string(data), ""), err
	}
	readme, err := read("README.md")
	if err != nil {
		return nil, err
	}
	pages := []page{{"index.html", "README.md", "Fencepost", "", readme}}
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		base := filepath.Base(name)
		text, err := read("docs/" + base)
		if err != nil {
			return nil, err
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		pages = append(pages, page{strings.TrimSuffix(base, ".md") + ".html", "docs/" + base, title, "Pages", text})
	}
	manual, err := command("help")
	if err != nil {
		return nil, err
	}
	commands := "# Which commands and flags are there?\n\n```text\n" + manual + "```\n"
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) {2,}`).FindAllStringSubmatch(manual[strings.Index(manual, "\nCommands"):strings.Index(manual, "\nFlags")], -1) {
		help, err := command("help", m[1])
		if err != nil {
			return nil, err
		}
		commands += fmt.Sprintf("\n## fencepost %s\n\n```text\n%s```\n", m[1], help)
	}
	pages = append(pages, page{"commands.html", "", "Commands and flags", "Pages", commands})
	for _, kind := range docs.Kinds() {
		text, err := command("explain", kind)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page{"kinds/" + kind + ".html", "", kind, "Kinds of findings", text})
	}
	return pages, nil
}

// command returns the output of the command line.
func command(args ...string) (string, error) {
	var out, errs bytes.Buffer
	if code := cli.Main(append([]string{"fencepost"}, args...), nil, &out, &errs); code != 0 {
		return "", fmt.Errorf("fencepost %s: exit code %d: %s", strings.Join(args, " "), code, &errs)
	}
	return out.String(), nil
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(htmlrender.WithUnsafe())) // the texts are trusted

// render returns the file of a page.
func render(p *page, pages []page) ([]byte, error) {
	source := []byte(p.text)
	tree := markdown.Parser().Parse(text.NewReader(source))
	up := strings.Repeat("../", strings.Count(p.name, "/"))
	if err := relink(tree, source, p, pages, up); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<link rel="stylesheet" href="%sstyle.css">
</head>
<body>
<nav aria-label="Pages"><p><a href="%[2]sindex.html">Fencepost</a></p>
`, html.EscapeString(p.title), up)
	group := ""
	for i := range pages {
		q := &pages[i]
		if q.group == "" {
			continue
		}
		if q.group != group {
			if group != "" {
				b.WriteString("</ul></details>\n")
			}
			group = q.group
			fmt.Fprintf(&b, "<details%s><summary>%s</summary><ul>\n", map[bool]string{true: " open"}[p.group == group || p.group == "" && group == "Pages"], group)
		}
		here := ""
		if q.name == p.name {
			here = ` aria-current="page"`
		}
		fmt.Fprintf(&b, "<li><a href=\"%s%s\"%s>%s</a></li>\n", up, q.name, here, html.EscapeString(q.title))
	}
	b.WriteString("</ul></details></nav>\n<main>\n")
	if err := markdown.Renderer().Render(&b, source, tree); err != nil {
		return nil, err
	}
	b.WriteString("</main>\n</body>\n</html>\n")
	return b.Bytes(), nil
}

// relink makes links to files of the module lead to their pages. Links to files without a page become plain text.
func relink(tree ast.Node, source []byte, p *page, pages []page, up string) error {
	var plain []*ast.Link
	err := ast.Walk(tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		link, ok := n.(*ast.Link)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		to, anchor, hasAnchor := strings.Cut(string(link.Destination), "#")
		if strings.Contains(to, "://") || to == "" {
			return ast.WalkContinue, nil
		}
		file := filepath.ToSlash(filepath.Join(filepath.Dir(p.from), to))
		if p.from == "" {
			file = filepath.ToSlash(filepath.Join("docs", to)) // the text of findings.md
		}
		i := slices.IndexFunc(pages, func(q page) bool { return q.from == file })
		if i < 0 {
			plain = append(plain, link)
			return ast.WalkContinue, nil
		}
		link.Destination = []byte(up + pages[i].name)
		if hasAnchor {
			link.Destination = append(link.Destination, "#"+anchor...)
		}
		return ast.WalkContinue, nil
	})
	for _, link := range plain {
		parent := link.Parent()
		for c := link.FirstChild(); c != nil; c = link.FirstChild() {
			parent.InsertBefore(parent, link, c)
		}
		parent.RemoveChild(parent, link)
	}
	return err
}
