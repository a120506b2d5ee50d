// Package diff writes the difference of two texts.
package diff

import (
	"fmt"
	"slices"
	"strings"
)

const context = 3 // lines around a change in a diff

// Unified is the unified diff of two texts of a file, "" if they are equal.
func Unified(name, before, after string) string {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	a, b = slices.DeleteFunc(a, func(s string) bool { return s == "" }), slices.DeleteFunc(b, func(s string) bool { return s == "" })
	type row struct {
		sign byte
		text string
		a, b int // the lines before it
	}
	var rows []row
	// Few lines change: what follows an equal line is found by the next line that both have.
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		if i < len(a) && j < len(b) && a[i] == b[j] {
			rows = append(rows, row{' ', a[i], i, j})
			i, j = i+1, j+1
			continue
		}
		di, dj := resync(a[i:], b[j:])
		for ; di > 0; di-- {
			rows = append(rows, row{'-', a[i], i, j})
			i++
		}
		for ; dj > 0; dj-- {
			rows = append(rows, row{'+', b[j], i, j})
			j++
		}
	}
	var out strings.Builder
	for k := 0; k < len(rows); {
		if rows[k].sign == ' ' {
			k++
			continue
		}
		from, to := max(0, k-context), k+1
		for n := to; n < len(rows) && n <= to+2*context; n++ {
			if rows[n].sign != ' ' {
				to = n + 1
			}
		}
		to = min(len(rows), to+context)
		if out.Len() == 0 {
			fmt.Fprintf(&out, "--- %s\n+++ %s\n", name, name)
		}
		na, nb := 0, 0
		for _, r := range rows[from:to] {
			if r.sign != '+' {
				na++
			}
			if r.sign != '-' {
				nb++
			}
		}
		fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", rows[from].a+1, na, rows[from].b+1, nb)
		for _, r := range rows[from:to] {
			out.WriteByte(r.sign)
			out.WriteString(strings.TrimSuffix(r.text, "\n") + "\n")
			if !strings.HasSuffix(r.text, "\n") {
				out.WriteString("\\ No newline at end of file\n")
			}
		}
		k = to
	}
	return out.String()
}

// resync gives the smallest steps in a and b to lines that are equal.
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
