package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fencepost.dev/fencepost/docs"
	"fencepost.dev/fencepost/internal/nearest"
)

const completionLong = `
fencepost completion bash > /etc/bash_completion.d/fencepost
fencepost completion zsh > "${fpath[1]}/_fencepost"
fencepost completion fish > ~/.config/fish/completions/fencepost.fish
  write completions of commands, flags and the kinds of "fencepost explain".`

func completionCommand() *command {
	shells := map[string]func(io.Writer){"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
	return &command{name: "completion", args: "bash | zsh | fish", doc: "write completions for a shell", long: completionLong,
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			if len(args) != 1 {
				return 0, usagef("completion takes the name of a shell: bash, zsh or fish")
			}
			write := shells[args[0]]
			if write == nil {
				return 0, usagef("there are no completions for %q%s", args[0], nearest.Hint(args[0], []string{"bash", "fish", "zsh"}))
			}
			write(e.stdout)
			return exitClean, nil
		}}
}

// words are the words that a command completes besides files.
func (c *command) words() []string {
	var words []string
	switch c.name {
	case "explain":
		words = docs.Kinds()
	case "help":
		words = []string{"detectors"}
		for _, c := range commands() {
			words = append(words, c.name)
		}
	case "completion":
		words = []string{"bash", "fish", "zsh"}
	}
	return words
}

func bashCompletion(w io.Writer) {
	fmt.Fprint(w, "_fencepost() {\n  local cur=${COMP_WORDS[COMP_CWORD]} words=\n  if ((COMP_CWORD == 1)); then\n    words='")
	for _, c := range commands() {
		fmt.Fprintf(w, "%s ", c.name)
	}
	fmt.Fprint(w, "'\n  else\n    case ${COMP_WORDS[1]} in\n")
	for _, c := range commands() {
		if words := append(c.flagNames(), c.words()...); len(words) > 0 {
			fmt.Fprintf(w, "    %s) words='%s' ;;\n", c.name, strings.Join(words, " "))
		}
	}
	fmt.Fprint(w, "    esac\n  fi\n  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -o bashdefault -o default -F _fencepost fencepost\n")
}

func zshCompletion(w io.Writer) {
	quote := strings.NewReplacer("'", `'\''`, ":", `\:`, "[", `\[`, "]", `\]`)
	fmt.Fprint(w, "#compdef fencepost\nlocal -a commands\ncommands=(\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  '%s:%s'\n", c.name, quote.Replace(c.doc))
	}
	fmt.Fprint(w, ")\nif ((CURRENT == 2)); then\n  _describe command commands\n  return\nfi\nshift words\n((CURRENT--))\ncase $words[1] in\n")
	for _, c := range commands() {
		if len(c.flags)+len(c.words()) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s)\n  _arguments", c.name)
		for _, f := range c.flags {
			value := ""
			if f.arg != "" {
				value = ":" + quote.Replace(f.arg) + ":_files"
			}
			fmt.Fprintf(w, " \\\n    '--%s[%s]%s'", f.name, quote.Replace(f.doc), value)
		}
		rest := "*:file:_files"
		if words := c.words(); len(words) > 0 {
			rest = "*:word:(" + strings.Join(words, " ") + ")"
		}
		fmt.Fprintf(w, " \\\n    '%s' ;;\n", rest)
	}
	fmt.Fprint(w, "*) _files ;;\nesac\n")
}

func fishCompletion(w io.Writer) {
	quote := strings.NewReplacer(`\`, `\\`, "'", `\'`)
	for _, c := range commands() {
		fmt.Fprintf(w, "complete -c fencepost -n __fish_use_subcommand -f -a %s -d '%s'\n", c.name, quote.Replace(c.doc))
		for _, f := range c.flags {
			value := ""
			if f.arg != "" {
				value = " -r"
			}
			fmt.Fprintf(w, "complete -c fencepost -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'\n", c.name, f.name, value, quote.Replace(f.doc))
		}
		if words := c.words(); len(words) > 0 {
			fmt.Fprintf(w, "complete -c fencepost -n '__fish_seen_subcommand_from %s' -f -a '%s'\n", c.name, strings.Join(words, " "))
		}
	}
}

const manLong = `
fencepost man > /usr/local/share/man/man1/fencepost.1
  writes the manual page of all commands, in the format of man(7).`

func manCommand() *command {
	return &command{name: "man", doc: "write the manual page", long: manLong,
		run: func(ctx context.Context, e *env, o *options, args []string) (int, error) {
			if len(args) > 0 {
				return 0, usagef("man takes no arguments")
			}
			writeMan(e.stdout)
			return exitClean, nil
		}}
}

// writeMan writes the manual page. Nothing in it depends on the day it is written on.
func writeMan(w io.Writer) {
	text := strings.NewReplacer(`\`, `\e`, "-", `\-`)
	// lines keeps text as it is laid out. A line that begins with a dot or a quote would be a request.
	lines := func(s string) {
		fmt.Fprintln(w, ".nf")
		for line := range strings.Lines(strings.Trim(s, "\n") + "\n") {
			fmt.Fprint(w, `\&`+text.Replace(line))
		}
		fmt.Fprintln(w, ".fi")
	}
	fmt.Fprint(w, ".TH FENCEPOST 1 \"\" \"Fencepost\" \"\"\n.SH NAME\nfencepost \\- find data races in CUDA programs\n.SH SYNOPSIS\n.B fencepost\nCOMMAND [flags] [arguments]\n")
	fmt.Fprintln(w, ".SH EXAMPLES")
	lines(strings.TrimPrefix(helpExamples, "Examples:\n"))
	fmt.Fprintln(w, ".SH COMMANDS")
	for _, c := range commands() {
		fmt.Fprintf(w, ".SS \"fencepost %s\"\n%s.\n", text.Replace(strings.TrimSpace(c.name+" "+c.args)), `\&`+text.Replace(upperFirst(c.doc)))
		if c.long != "" {
			lines(c.long)
		}
		for _, f := range c.flags {
			fmt.Fprintf(w, ".TP\n\\fB%s\\fR\n%s\n", text.Replace(strings.TrimSpace("--"+f.name+" "+f.arg)), `\&`+text.Replace(f.doc))
		}
	}
	fmt.Fprintln(w, ".SH EXIT STATUS")
	lines(strings.TrimPrefix(helpCodes, "\nExit codes:\n"))
}
