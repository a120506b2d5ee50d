package report

import (
	"fmt"
	"io"
	"strings"

	"fencepost.dev/fencepost/internal/detect"
)

// summaryGroups is the number of causes that a summary shows in full.
const summaryGroups = 20

// Markdown writes a summary: the verdict, a table of the findings by kind, and each cause with its lines. last is the
// last line of the text.
func Markdown(w io.Writer, r *Report, x *Export, last string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## Fencepost: %s\n\n%s\n", r.Verdict, markdown(last))
	counted := Counted(r.Findings)
	if len(counted) > 0 {
		kindTable(&b, counted)
	}
	text := &Text{Dir: x.Dir, Source: CachedSource(x.Source)}
	groups := Groups(counted)
	for i, g := range groups {
		if i == summaryGroups {
			fmt.Fprintf(&b, "\n%d more causes are in the report.\n", len(groups)-i)
			break
		}
		f := g[0]
		fmt.Fprintf(&b, "\n<details%s>\n<summary>%s: %s <code>%s</code></summary>\n\n", map[bool]string{true: " open"}[i < 3], f.Severity, html(text.Title(f)), f.Kind)
		var body strings.Builder
		text.Group(&body, g)
		fence := "```"
		for strings.Contains(body.String(), fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "%stext\n%s\n%s\n\n</details>\n", fence, strings.TrimRight(body.String(), "\n"), fence)
	}
	if n := len(r.Findings) - len(counted); n > 0 {
		fmt.Fprintf(&b, "\n%d suppressed.\n", n)
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "\n- not checked: %s: %s", markdown(s.What), markdown(s.Reason))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\n- %s", markdown(n))
	}
	if len(r.Skipped)+len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// kindTable counts findings by severity and kind.
func kindTable(b *strings.Builder, findings []Finding) {
	type row struct {
		severity detect.Severity
		kind     detect.Kind
	}
	n := map[row]int{}
	var rows []row
	for i := range findings {
		k := row{findings[i].Severity, findings[i].Kind}
		if n[k] == 0 {
			rows = append(rows, k)
		}
		n[k]++
	}
	b.WriteString("\n| severity | kind | findings |\n|---|---|---|\n")
	for _, k := range rows {
		fmt.Fprintf(b, "| %s | %s | %d |\n", k.severity, k.kind, n[k])
	}
}

// html escapes text in a tag of Markdown.
func html(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(clean(s))
}

// markdown escapes text outside of code.
func markdown(s string) string {
	return strings.NewReplacer("\\", `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", "&lt;", "|", `\|`, "\n", " ").Replace(clean(s))
}
