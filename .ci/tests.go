//go:build ignore

// Tests reads the output of "go test -json" and prints the closing line of each package, the output of failing tests,
// and every skipped test with its reason. It exits with 1 if a test fails, or skips although allowed-skips does not
// allow it: where all tools are installed, a test that finds none would otherwise never be noticed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// event is a line of "go test -json" (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
}

const module = "fencepost.dev/fencepost/"

// mostSaid bounds the output printed for a failing test.
const mostSaid = 4000

// allowed is the list of allowed skips: package and test, then the reason.
func allowed(name string) map[string]string {
	text, err := os.ReadFile(name)
	if err != nil {
		die("%v", err)
	}
	list := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			die("%s: a line is a package, a test and a reason: %s", name, line)
		}
		list[words[0]+" "+words[1]] = strings.Join(words[2:], " ")
	}
	return list
}

func die(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "ci: "+format+"\n", args...)
	os.Exit(1)
}

func main() {
	allow := allowed(os.Args[1])
	said := map[string]string{}
	var skips, wrong, failed []string
	passed := 0
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var e event
		if err := json.Unmarshal(in.Bytes(), &e); err != nil {
			fmt.Println(in.Text()) // output of go itself
			continue
		}
		key := strings.TrimPrefix(e.Package, module) + " " + e.Test
		switch e.Action {
		case "output", "build-output":
			switch {
			case e.Action == "build-output":
				fmt.Print(e.Output)
			case e.Test == "" && (strings.HasPrefix(e.Output, "ok ") || strings.HasPrefix(e.Output, "FAIL") || strings.HasPrefix(e.Output, "?")):
				fmt.Print(e.Output)
			case len(said[key]) < mostSaid && !strings.HasPrefix(e.Output, "=== "):
				said[key] += e.Output
			}
		case "pass":
			if e.Test != "" {
				passed++
			}
			delete(said, key)
		case "fail":
			failed = append(failed, key)
			fmt.Printf("--- FAIL %s\n%s", key, said[key])
			delete(said, key)
		case "skip":
			if e.Test == "" {
				break // a package without tests
			}
			line := key + ": " + reason(said[key])
			if why, ok := allow[key]; ok {
				line += " (allowed: " + why + ")"
			} else {
				wrong = append(wrong, line)
			}
			skips = append(skips, line)
		}
	}
	if err := in.Err(); err != nil {
		die("%v", err)
	}
	slices.Sort(skips)
	fmt.Printf("%d tests passed, %d failed, %d skipped\n", passed, len(failed), len(skips))
	for _, s := range skips {
		fmt.Println("skipped: " + s)
	}
	switch {
	case len(failed) > 0:
		die("tests fail: %s", strings.Join(failed, ", "))
	case len(wrong) > 0:
		die("%d tests were skipped that .ci/allowed-skips does not name:\n%s", len(wrong), strings.Join(wrong, "\n"))
	case passed == 0:
		die("no test ran")
	}
}

// reason is the output of a test before it was skipped: usually the line of t.Skip.
func reason(said string) string {
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "---") {
			return line
		}
	}
	return "no reason given"
}
