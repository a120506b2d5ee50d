package cli

import (
	"context"
	"fmt"
	"strings"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/nearest"
)

const explainLong = `
fencepost explain missing-barrier
  prints what a kind of finding means, the rule, a program that has it, and the fix. Without a kind it lists the kinds. The
  kind is the word in brackets at the end of a finding's first line.`

func explainCommand() *command {
	return &command{name: "explain", args: "[KIND]", doc: "explain a kind of finding, with a program that has it", long: explainLong,
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			kinds := docs.Kinds()
			switch {
			case len(args) == 0:
				for _, k := range kinds {
					fmt.Fprintf(e.stdout, "%-26s %s\n", k, docs.Pages()[k].Rule)
				}
				return exitClean, nil
			case len(args) > 1:
				return 0, usagef("explain takes one kind")
			}
			page, err := explain(args[0])
			if err != nil {
				return 0, err
			}
			fmt.Fprint(e.stdout, page)
			return exitClean, nil
		}}
}

// explain gives the page of a kind.
func explain(kind string) (string, error) {
	text := docs.Kind(kind)
	if text == "" {
		return "", usagef("there is no kind %q%s", kind, nearest.Hint(kind, docs.Kinds()))
	}
	p := docs.Pages()[kind]
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n%s\n## Program\n\n", kind, p.Rule, text)
	program := p.Program
	if p.Corpus != "" {
		chosen, _, err := corpusPrograms("corpus/" + p.Corpus)
		if err != nil {
			return "", err
		}
		program = strings.TrimSpace(source(chosen[0]))
	}
	fmt.Fprintf(&b, "```cuda\n%s\n```\n\n", strings.TrimSpace(program))
	if p.Corpus != "" {
		fmt.Fprintf(&b, "`fencepost check corpus/%s` shows the finding.\n\n", p.Corpus)
	}
	fmt.Fprintf(&b, "## Fix\n\n```cuda\n%s\n```\n\n## Manual\n\n%s\n", strings.TrimSpace(p.Fix), p.Manual)
	return b.String(), nil
}

// source gives a program of the corpus without its expectations.
func source(p *corpus.Program) string { return wantComment.ReplaceAllString(p.Source, "") }
