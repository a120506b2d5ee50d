package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/isa"
	"fencepost.dev/fencepost/internal/nearest"
)

var markdownFlag = &flag{"markdown", "FILE", "write the page docs/isa.md instead",
	func(o *options, v string) error { o.markdown = v; return nil }}

func isaCommand() *command {
	return &command{name: "isa", args: "[INSTRUCTION]", doc: "list the supported PTX instructions",
		flags: []*flag{markdownFlag}, anywhere: true, run: runISA,
		long: `
Without an argument it lists the instructions; with one, the forms of it: fencepost isa atom`}
}

func runISA(ctx context.Context, e *env, o *options, args []string) (int, error) {
	if o.markdown != "" {
		var b bytes.Buffer
		if err := writeISAPage(&b); err != nil {
			return 0, err
		}
		return exitClean, os.WriteFile(o.markdown, b.Bytes(), 0o666)
	}
	if len(args) > 1 {
		return 0, usagef("isa takes one instruction")
	}
	if len(args) == 0 {
		writeInstructions(e.stdout)
		return exitClean, nil
	}
	name := strings.TrimPrefix(args[0], ".")
	op, mods, _ := strings.Cut(name, ".")
	mod, _, _ := strings.Cut(mods, ".")
	var ops []string
	known, found := false, false
	for _, r := range isa.Rows() {
		if r.Op == op {
			known = true
			if spells(r, mod) {
				writeRow(e.stdout, r)
				found = true
			}
		}
		ops = append(ops, r.Op)
	}
	switch {
	case found:
		return exitClean, nil
	case known:
		fmt.Fprintf(e.stdout, "%s is not supported: a kernel that holds it is not run, and listed as not checked. \"fencepost isa %s\" shows the forms that are.\n", name, op)
		return exitNotChecked, nil
	case isa.Unsupported(op):
		fmt.Fprintf(e.stdout, "%s is not supported: a kernel that holds it is not run, and listed as not checked.\n", op)
		return exitNotChecked, nil
	}
	return 0, usagef("there is no instruction %q in the table%s", op, nearest.Hint(op, ops))
}

// spells says that a row is of the instruction of a family that a modifier names: tcgen05.ld of tcgen05. A row that the manual does not
// describe as a member of a family is of any.
func spells(r *isa.Row, mod string) bool {
	_, title, _ := strings.Cut(r.Doc, ": ")
	if mod == "" || !strings.HasPrefix(title, r.Op+".") {
		return true
	}
	return slices.ContainsFunc(r.Forms, func(f isa.Form) bool {
		return slices.Contains(strings.FieldsFunc(f.Display(r.Op), func(c rune) bool { return strings.ContainsRune(".,;{}[] ", c) }), mod)
	})
}

// chapter is the chapter of the PTX manual a row belongs to: "Integer Arithmetic" of "Integer Arithmetic: add".
func chapter(r *isa.Row) string {
	title, _, _ := strings.Cut(r.Doc, ":")
	return title
}

// writeInstructions lists the instructions by chapter, in the order of the table.
func writeInstructions(w io.Writer) {
	var order []string
	ops := map[string][]string{}
	all := map[string]bool{}
	forms := 0
	for _, r := range isa.Rows() {
		c := chapter(r)
		if ops[c] == nil {
			order = append(order, c)
		}
		if !slices.Contains(ops[c], r.Op) {
			ops[c] = append(ops[c], r.Op)
		}
		all[r.Op] = true
		forms += len(r.Forms)
	}
	for _, c := range order {
		fmt.Fprintf(w, "%s\n", c)
		line := " "
		for _, op := range ops[c] {
			if len(line)+1+len(op) > 100 {
				fmt.Fprintln(w, line)
				line = " "
			}
			line += " " + op
		}
		fmt.Fprintf(w, "%s\n\n", line)
	}
	fmt.Fprintf(w, "%d instructions in %d forms; \"fencepost isa NAME\" shows those of one.\n", len(all), forms)
}

func writeRow(w io.Writer, r *isa.Row) {
	fmt.Fprintf(w, "%s (PTX manual, %s)\n", r.Op, r.Doc)
	for _, f := range r.Forms {
		fmt.Fprintf(w, "  %s\n", f.Display(r.Op))
	}
	if r.Note != "" {
		fmt.Fprintf(w, "  %s\n", r.Note)
	}
	fmt.Fprintln(w)
}

// writeISAPage writes docs/isa.md.
func writeISAPage(w io.Writer) error {
	fmt.Fprint(w, `<!-- Made by "go generate ./docs" from the instruction table. Do not edit. -->

# Which PTX instructions are supported?

This page lists the instructions and forms that Fencepost executes, in the notation of the PTX manual. A kernel that uses
another instruction does not run. It counts as not checked, and the report names the line and the instruction. The other
kernels of the program run.

PTX of ISA 1.0 to 1.3 and for devices sm_1x may omit modifiers that were implied at that time (mad.f32, div.f32, sin.f32 and
similar). PTX of ISA 2.0 to 3.1 may omit the rounding of mad.f32. Addresses have 64 bits, or 32 bits if the module does not
contain .address_size 64.

`)
	return isa.WriteMarkdown(w)
}
