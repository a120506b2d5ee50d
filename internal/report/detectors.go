package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Detectors writes a table of the findings and costs of the detectors of a report.
func (t *Text) Detectors(w io.Writer, r *Report) {
	judged := slices.ContainsFunc(r.Detectors, func(d Detector) bool { return d.Judged })
	rows := [][]string{{"detector", "findings"}}
	if judged {
		rows[0] = append(rows[0], "misses", "false alarms")
	}
	rows[0] = append(rows[0], "time/bare", "metadata")
	for _, d := range r.Detectors {
		row := []string{d.Name, fmt.Sprint(len(r.IDs(d.Name)))}
		if judged {
			row = append(row, fmt.Sprint(d.Misses), fmt.Sprint(d.FalseAlarms))
		}
		over, metadata := "-", "-"
		if x := d.Over(); x > 0 {
			over = fmt.Sprintf("%.1f", x)
		}
		if d.Metadata > 0 {
			metadata = byteCount(d.Metadata)
		}
		rows = append(rows, append(row, over, metadata))
	}
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, s := range row {
			width[i] = max(width[i], len(s))
		}
	}
	for n, row := range rows {
		line := fmt.Sprintf("%-*s", width[0], row[0])
		for i, s := range row[1:] {
			line += fmt.Sprintf("  %*s", width[i+1], s)
		}
		line = strings.TrimRight(line, " ")
		if n == 0 {
			line = t.paint(bold, line)
		}
		fmt.Fprintln(w, line)
	}
}

// byteCount writes a number of bytes with three digits: "1.53 MiB".
func byteCount(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, i := float64(n), 0
	for x >= 1000 && i+1 < len(units) {
		x /= 1024
		i++
	}
	switch {
	case i == 0:
		return fmt.Sprintf("%d B", n)
	case x < 10:
		return fmt.Sprintf("%.2f %s", x, units[i])
	case x < 100:
		return fmt.Sprintf("%.1f %s", x, units[i])
	}
	return fmt.Sprintf("%.0f %s", x, units[i])
}
