// Package papers makes the page docs/papers.md. For each table and figure of the papers that Fencepost implements, the
// page has the command that reproduces it, the published values, the output of the command, and the reasons for
// differences. The package runs the commands and copies their output.
package papers

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cli"
)

// Item is a table or a figure of a paper, or several that are reproduced together.
type Item struct {
	Name, Title string
	// Command is executed like a shell command. If it is empty, Other says where the result is, or that there is none.
	Command string
	// Full is the command of a full run. If it is empty, it is the same as Command.
	Full string
	// Keep selects the blocks of the output that the page shows, by texts in their titles. nil selects all blocks. A
	// block ends at an empty line.
	Keep []string
	// Measure is a function that replaces a command if the tool has none. Command then describes the measurement.
	Measure func(full bool) (string, error)
	// Plot is the name of the plot of the first block. If it is empty, there is no plot.
	Plot    string
	Printed string // the contents of the paper
	Why     string // why the result differs, or what the figures mean
	Other   string // where it is reproduced instead, or why it is not
}

// Paper is a paper with the tables and figures of its results.
type Paper struct {
	Title string
	Items []Item
}

// writer writes the page.
type writer struct {
	full    bool
	outputs map[string]string // by command, of commands that have been run
	log     io.Writer
	dir     string            // has the files that the commands use
	plots   map[string]string // SVG by name
	failed  error
}

// Main runs the command and returns the exit code.
func Main(args []string, out, errs io.Writer) int {
	f := flag.NewFlagSet("papers", flag.ContinueOnError)
	f.SetOutput(errs)
	full := f.Bool("full", false, "run the large sizes too, however long they take")
	to := f.String("out", "docs/papers.md", "the page")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if f.NArg() > 0 {
		fmt.Fprintf(errs, "papers: %q is no flag\n", f.Arg(0))
		return 2
	}
	var page bytes.Buffer
	plots, err := Write(&page, errs, *full)
	if err == nil {
		err = os.WriteFile(*to, page.Bytes(), 0o666)
	}
	for name, svg := range plots {
		if err == nil {
			err = os.WriteFile(filepath.Join(filepath.Dir(*to), name), []byte(svg), 0o666)
		}
	}
	if err != nil {
		fmt.Fprintln(errs, "papers:", err)
		return 1
	}
	fmt.Fprintln(out, *to)
	return 0
}

// Write writes the page to to, and progress to log. It returns the plots that the page shows, as SVG by file name.
func Write(to, log io.Writer, full bool) (plots map[string]string, err error) {
	dir, err := os.MkdirTemp("", "papers")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w := &writer{full: full, outputs: map[string]string{}, plots: map[string]string{}, log: log, dir: dir}
	for name, text := range files() {
		if err := os.WriteFile(w.path(name), []byte(text), 0o666); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	b.WriteString("<!-- Made by \"go run ./cmd/papers\". Do not edit. -->\n# What do the papers print, and what do we get?\n\n" +
		"This page has each table and figure with results of the five papers, in their order. The command that makes this page runs the commands\n" +
		"below, and the blocks show their output. Times are from the machine that made the page. ")
	if full {
		b.WriteString("These are the large sizes (`go run ./cmd/papers -full`).\n")
	} else {
		b.WriteString("These are the quick sizes; `go run ./cmd/papers -full` runs the large ones.\n")
	}
	for _, p := range Papers() {
		fmt.Fprintf(&b, "\n## %s\n", p.Title)
		for i := range p.Items {
			w.item(&b, &p.Items[i])
		}
	}
	if w.failed != nil {
		return nil, w.failed
	}
	_, err = io.WriteString(to, b.String())
	return w.plots, err
}

// item writes a table or figure.
func (w *writer) item(b *strings.Builder, it *Item) {
	fmt.Fprintf(b, "\n### %s: %s\n\n", it.Name, it.Title)
	if it.Printed != "" {
		fmt.Fprintf(b, "Printed: %s\n\n", it.Printed)
	}
	if it.Other != "" {
		fmt.Fprintf(b, "%s\n", it.Other)
		return
	}
	command := it.Command
	if w.full {
		command = cmp.Or(it.Full, it.Command)
	}
	var text string
	var err error
	if it.Measure != nil {
		fmt.Fprintf(b, "Ours, %s:\n\n", command)
		text, err = it.Measure(w.full)
	} else {
		fmt.Fprintf(b, "Ours, `%s`:\n\n", command)
		text, err = w.run(command)
	}
	if err == nil {
		text, err = keep(text, it.Keep)
	}
	if err != nil {
		w.failed = errors.Join(w.failed, fmt.Errorf("%s: %w", it.Name, err))
		return
	}
	fmt.Fprintf(b, "```\n%s```\n", text)
	if it.Plot != "" {
		block, _, _ := strings.Cut(text, "\n\n")
		t, err := readTable(block)
		if err != nil {
			w.failed = errors.Join(w.failed, fmt.Errorf("%s: %w", it.Name, err))
			return
		}
		w.plots[it.Plot] = t.svg()
		fmt.Fprintf(b, "\n![%s](%s)\n", it.Title, it.Plot)
	}
	if it.Why != "" {
		fmt.Fprintf(b, "\n%s\n", it.Why)
	}
}

// run runs commands of the tool that are separated by &&, and returns their output.
func (w *writer) run(commands string) (string, error) {
	var all strings.Builder
	for command := range strings.SplitSeq(commands, " && ") {
		text, err := w.one(command)
		if err != nil {
			return "", err
		}
		all.WriteString(text)
	}
	return all.String(), nil
}

// one runs a command. Findings are not a failure.
func (w *writer) one(command string) (string, error) {
	if text, ok := w.outputs[command]; ok {
		return text, nil
	}
	began := time.Now()
	args := strings.Fields(command)
	for i := range args {
		if _, ok := files()[args[i]]; ok {
			args[i] = w.path(args[i])
		}
	}
	var out, errs bytes.Buffer
	code := cli.Main(args, strings.NewReader(""), &out, &errs)
	fmt.Fprintf(w.log, "%s: %.1f s\n", command, time.Since(began).Seconds())
	if code > 1 {
		return "", fmt.Errorf("%s: exit code %d\n%s", command, code, errs.Bytes())
	}
	text := strings.ReplaceAll(out.String(), w.dir+string(os.PathSeparator), "")
	w.outputs[command] = text
	return text, nil
}

func (w *writer) path(name string) string { return w.dir + string(os.PathSeparator) + name }

// keep returns the blocks of a text whose first lines contain one of titles, in their order.
func keep(text string, titles []string) (string, error) {
	if titles == nil {
		return strings.TrimRight(text, "\n") + "\n", nil
	}
	var kept []string
	found := make([]bool, len(titles))
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.Trim(block, "\n")
		first, _, _ := strings.Cut(block, "\n")
		for i, t := range titles {
			if strings.Contains(first, t) {
				kept = append(kept, block)
				found[i] = true
				break
			}
		}
	}
	for i, t := range titles {
		if !found[i] {
			return "", fmt.Errorf("the output has no block %q", t)
		}
	}
	return strings.Join(kept, "\n\n") + "\n", nil
}
