package papers

import (
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// table is a block of output: a title, a row with the names of columns, and rows with a name and numbers.
type table struct {
	title   string
	columns []string
	rows    []row
}

type row struct {
	name   string
	values []float64
}

// readTable parses a block. Names of columns have no blanks. It omits columns that are not numeric, and all columns to
// the right of one.
func readTable(block string) (*table, error) {
	lines := strings.Split(strings.Trim(block, "\n"), "\n")
	if len(lines) < 3 {
		return nil, errors.New("a block has no rows to plot")
	}
	t := &table{title: lines[0], columns: strings.Fields(lines[1])}
	for _, line := range lines[2:] {
		// The name is the text before the first numeric column. Two or more blanks end it.
		line = strings.TrimSpace(line)
		name, rest, _ := strings.Cut(line, "  ")
		r := row{name: name}
		for i, cell := range strings.Fields(rest) {
			x, err := strconv.ParseFloat(cell, 64)
			if err != nil || i == len(t.columns) {
				break
			}
			r.values = append(r.values, x)
		}
		if len(r.values) == 0 {
			return nil, fmt.Errorf("%q has no number to plot", line)
		}
		t.rows = append(t.rows, r)
	}
	return t, nil
}

const (
	plotHeight  = 220 // of the bars, in pixels
	barWidth    = 9
	groupGap    = 12
	labelHeight = 120
)

var colours = []string{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb"}

// svg draws a table as bars, with a group for each row.
func (t *table) svg() string {
	most := 0.0
	for _, r := range t.rows {
		for _, v := range r.values {
			most = max(most, v)
		}
	}
	step := math.Pow(10, math.Floor(math.Log10(max(most, 1e-6))))
	if most/step < 3 {
		step /= 2
	}
	top := math.Ceil(most/step) * step
	group := len(t.columns)*barWidth + groupGap
	width := 60 + len(t.rows)*group + 20
	width = max(width, 60+110*len(t.columns), 60+7*len(t.title))
	const left, up = 50, 50
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, up+plotHeight+labelHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="16" font-size="13">%s</text>`+"\n", left, escaped(t.title))
	for i, c := range t.columns {
		fmt.Fprintf(&b, `<rect x="%d" y="26" width="9" height="9" fill="%s"/><text x="%d" y="35">%s</text>`+"\n",
			left+110*i, colours[i%len(colours)], left+13+110*i, escaped(c))
	}
	for v := 0.0; v <= top+step/2; v += step {
		y := up + plotHeight*(1-v/top)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.4g</text>`+"\n",
			left, width-10, y, y, left-4, y+4, v)
	}
	for i, r := range t.rows {
		x := left + groupGap/2 + i*group
		for k, v := range r.values {
			h := plotHeight * v / top
			fmt.Fprintf(&b, `<rect x="%d" y="%.1f" width="%d" height="%.1f" fill="%s"/>`+"\n", x+k*barWidth, up+plotHeight-h, barWidth-1, h, colours[k%len(colours)])
		}
		at := x + len(t.columns)*barWidth/2
		fmt.Fprintf(&b, `<text transform="translate(%d,%d) rotate(-60)" text-anchor="end">%s</text>`+"\n", at+4, up+plotHeight+12, escaped(r.name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}
