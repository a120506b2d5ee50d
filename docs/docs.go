// Package docs contains the manual. isa.md is generated from the instruction table.
package docs

import (
	_ "embed"
	"regexp"
	"strings"
)

//go:generate go run ../cmd/fencepost isa --markdown isa.md

//go:embed findings.md
var findings string

var section = regexp.MustCompile(`(?m)^### (.*)\n`)

// severityMark follows kinds in the title of a section: "(warning)".
var severityMark = regexp.MustCompile(` \([a-z]+\)$`)

// kindWord matches the name of a kind, which is not the title of any other section.
var kindWord = regexp.MustCompile(`^[a-z-]+$`)

// each calls yield with every section of findings.md that explains kinds.
func each(yield func(kinds []string, text string)) {
	at := section.FindAllStringSubmatchIndex(findings, -1)
	for i, m := range at {
		end := len(findings)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		text := findings[m[1]:end]
		if j := strings.Index(text, "\n## "); j >= 0 {
			text = text[:j]
		}
		kinds := strings.Split(severityMark.ReplaceAllString(findings[m[2]:m[3]], ""), ", ")
		if kindWord.MatchString(kinds[0]) {
			yield(kinds, strings.TrimSpace(text)+"\n")
		}
	}
}

// Kinds lists the kinds of findings in the order of the page.
func Kinds() (all []string) {
	each(func(kinds []string, _ string) { all = append(all, kinds...) })
	return all
}

// Kind returns the text about a kind in findings.md, in Markdown; "" if the page does not describe it.
func Kind(kind string) (text string) {
	each(func(kinds []string, t string) {
		for _, k := range kinds {
			if k == kind {
				text = t
			}
		}
	})
	return text
}
