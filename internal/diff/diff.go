// Package diff writes the difference of two texts.
package diff

import (
	"fmt"
	"slices"
	"strings"
)

const context = 3 // lines around a change in a diff

// row is a line of the difference: ' ' is in both texts, '-' only in the first, '+' only in the second.
type row struct {
	sign byte
	text string
	a, b int // the lines before it
}

// Unified is the unified diff of two texts of a file, "" if they are equal.
func Unified(name, before, after string) string {
	list := rows(lines(before), lines(after))
	var out strings.Builder
	for k := 0; k < len(list); {
		if list[k].sign == ' ' {
			k++
			continue
		}
		from, to := max(0, k-context), k+1
		for n := to; n < len(list) && n <= to+2*context; n++ {
			if list[n].sign != ' ' {
				to = n + 1
			}
		}
		to = min(len(list), to+context)
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
		}
		writeHunk(&out, list[from:to])
		k = to
	}
	return out.String()
}

// lines splits a text after each line end.
func lines(text string) []string {
	return slices.DeleteFunc(strings.SplitAfter(text, "\n"), func(s string) bool { return s == "" })
}

// rows is the difference of two texts. It expects few changed lines: after a change it continues at the next line that
// both have.
func rows(a, b []string) (out []row) {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			out = append(out, row{' ', a[i], i, j})
			i, j = i+1, j+1
			continue
		}
		di, dj := resync(a[i:], b[j:])
		for ; di > 0; di-- {
			out = append(out, row{'-', a[i], i, j})
			i++
		}
		for ; dj > 0; dj-- {
			out = append(out, row{'+', b[j], i, j})
			j++
		}
	}
	return out
}

// writeHunk writes rows that follow each other, with a heading.
func writeHunk(out *strings.Builder, list []row) {
	na, nb := 0, 0
	for _, r := range list {
		if r.sign != '+' {
			na++
		}
		if r.sign != '-' {
			nb++
		}
	}
	fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", list[0].a+1, na, list[0].b+1, nb)
	for _, r := range list {
		out.WriteByte(r.sign)
		out.WriteString(strings.TrimSuffix(r.text, "\n") + "\n")
		if !strings.HasSuffix(r.text, "\n") {
			out.WriteString("\\ No newline at end of file\n")
		}
	}
}

// resync returns the smallest steps in a and b to equal lines.
func resync(a, b []string) (int, int) {
	for n := 1; n <= len(a)+len(b); n++ {
		for i := max(0, n-len(b)); i <= min(n, len(a)); i++ {
			if j := n - i; i == len(a) && j == len(b) || i < len(a) && j < len(b) && a[i] == b[j] {
				return i, j
			}
		}
	}
	return len(a), len(b)
}
