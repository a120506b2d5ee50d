package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/verify/litmus"
)

// growth is a program of figure 4 and of tables 6 to 9 of the paper, which grows with the number of threads or blocks.
type growth struct {
	name, what string
	from       int
	printed    []float64 // seconds, by size; NaN where the paper's text lacks the number
	rows       []int     // sizes that the page has in its table; the picture has all
	run        func(t *testing.T, n int) *Result
	wrong      string // what the first error is; "" if all executions are explored
}

var missing = math.NaN()

// growths returns the programs, with the numbers of tables 6 to 9.
func growths() []growth {
	all := func(format string) func(t *testing.T, n int) *Result {
		return func(t *testing.T, n int) *Result {
			return verifyText(t, "growth", fmt.Sprintf(format, n), litmus.Options{}, Options{})
		}
	}
	first := func(name string, block int) func(t *testing.T, n int) *Result {
		return func(t *testing.T, n int) *Result {
			src, _, _ := strings.Cut(read(t, name), "~exists")
			return verifyText(t, name, src, litmus.Options{Grid: n, Block: block}, Options{First: true})
		}
	}
	return []growth{
		{"LB", "table 6: load buffering of n threads, all executions", 2, []float64{0.07, 0.03, 0.03, 0.03, 0.03, 0.04, 0.06, 0.11, 0.24, 0.54,
			1.22, 2.82, 6.54, 15.43, 43.13, 101.24, 227.66, 511.81, 1139.96, 2540.37, 5646.41}, []int{2, 3, 7, 12, 16, 18, 20, 22}, all(lb), ""},
		{"SB", "table 9: store buffering of n threads, until all of them read 0", 2, []float64{0.02, 0.02, 0.02, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03,
			0.03, 0.03, 0.04, 0.04, 0.05, 0.05, 0.05, 0.06, 0.06, 0.07, 0.08, 0.08, 0.10, 3.02}, []int{2, 8, 16, 20, 24, 25}, func(t *testing.T, n int) *Result {
			var none []string
			for i := range n {
				none = append(none, fmt.Sprintf("P%d:a == 0", i))
			}
			return verifyText(t, "growth", fmt.Sprintf(sb, n)+"\n~exists ("+strings.Join(none, ` /\ `)+")", litmus.Options{}, Options{First: true})
		}, "the condition"},
		{"1dconv", "table 7: convolution of n blocks of 4 threads, until the first heterogeneous race", 2, []float64{7.82, 2.02, 1.78, 4.16, 5.46, 7.19, 9.21, 6.54, 8.15,
			9.93, 21.74, 15.41, 17.02, 22.83, 24.45, 26.64, 29.80, 34.07, 38.96, 50.92, 47.28, 52.87, 57.54, 61.81, 63.95, 62.72, missing, 76.89, 82.24},
			[]int{2, 4, 8, 12, 16, 20, 25, 30}, first("1dconv", 4), "heterogeneous race"},
		{"gcon", "table 8: graph connectivity of n threads, until the first heterogeneous race", 2, []float64{0.44, 1.01, 0.53, 0.59, 0.80, 1.02, 1.31, 1.65, 2.04, 2.48, 3.00,
			missing, 4.22, 4.92, 5.74, 6.60, 7.63, missing, 9.87, 11.50, 13.04, 14.69, 16.47, 18.26, 20.34, 22.43, 24.73, 27.13, 29.87, 32.36, 35.48,
			38.41, 41.91, 45.37, 49.24, 53.77, 58.00, 62.42, 66.70, 71.93, 76.77, 82.59, 87.75, 93.86, 101.57, 108.03, 114.05, 121.86, 128.67},
			[]int{2, 8, 16, 24, 32, 40, 50}, first("gcon", 1), "heterogeneous race"},
	}
}

// growthSection explores the programs, and returns the section of the page and the plot. It calls check with each part
// of a line that is the same in every run.
func growthSection(t *testing.T, check func(line string)) (text string, picture []byte) {
	var b strings.Builder
	b.WriteString(growthHead)
	var lines []curve
	for _, g := range growths() {
		fmt.Fprintf(&b, "\n### %s: %s\n\n| n | executions | seconds | printed |\n|---|---|---|---|\n", g.name, g.what)
		ours, theirs := curve{name: g.name}, curve{name: g.name + ", printed", dashed: true}
		for i, printed := range g.printed {
			n := g.from + i
			if few := slices.Contains(g.rows, n) && n <= 16; !*update && !few && (!testsize.Long() || g.wrong == "" && n > 18) {
				continue
			}
			begin := time.Now()
			r := g.run(t, n)
			seconds := time.Since(begin).Seconds()
			switch {
			case g.wrong == "" && (r.Verdict() != OK || r.Executions != 1<<n-1):
				t.Errorf("%s %d: %s, want %d executions without error", g.name, n, r.Summary(), 1<<n-1)
			case g.wrong == "the condition" && (r.Holds || r.Counterexample == nil),
				g.wrong != "" && g.wrong != "the condition" && (len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Title, g.wrong)):
				t.Errorf("%s %d: %s %+v, want %s", g.name, n, r.Summary(), r.Findings, g.wrong)
			}
			ours.add(n, seconds)
			theirs.add(n, printed)
			if !slices.Contains(g.rows, n) {
				continue
			}
			line := fmt.Sprintf("| %d | %d |", n, r.Executions)
			check(line)
			fmt.Fprintf(&b, "%s %.3f | %s |\n", line, seconds, strings.Replace(fmt.Sprint(printed), "NaN", "", 1))
		}
		lines = append(lines, ours, theirs)
	}
	return b.String(), growthPicture(lines)
}

const growthHead = `
## Figure 4 and tables 6 to 9: growth

![seconds by size, ours and printed](verify-growth.svg)

*Executions* are those that the search has completed when it ends. For LB it ends after all executions, 2^n - 1. For SB it ends with the first
one that the condition forbids, and for the others with the first error. The paper's figure also shows memory. Ours does not grow:
[verify.md](verify.md#time-and-memory).
`

// curve is a line of the picture.
type curve struct {
	name   string
	dashed bool
	x      []int
	y      []float64
}

func (c *curve) add(x int, y float64) {
	if !math.IsNaN(y) {
		c.x, c.y = append(c.x, x), append(c.y, y)
	}
}

// growthPicture draws curves in pairs, each pair in one colour: the logarithm of seconds by size.
func growthPicture(lines []curve) []byte {
	const (
		left, top, width, height = 60, 20, 560, 320
		low, high                = -4, 4 // powers of ten
		most                     = 50
	)
	colours := []string{"#4477aa", "#ee6677", "#228833", "#aa7700"}
	at := func(x int, y float64) (float64, float64) {
		p := math.Log10(max(y, math.Pow10(low)))
		return left + width*float64(x)/most, top + height*(high-p)/(high-low)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", left+width+150, top+height+45)
	b.WriteString(`<rect width="100%" height="100%" fill="white"/>` + "\n")
	for p := low; p <= high; p++ {
		_, y := at(0, math.Pow10(p))
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g s</text>`+"\n", left, left+width, y, y, left-4, y+4, math.Pow10(p))
	}
	for n := 0; n <= most; n += 10 {
		x, _ := at(n, 1)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x, top+height+16, n)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">threads; of 1dconv blocks</text>`+"\n", left+width/2, top+height+34)
	for i, c := range lines {
		dash := ""
		if c.dashed {
			dash = ` stroke-dasharray="5 3"`
		}
		var points []string
		for k := range c.x {
			x, y := at(c.x[k], c.y[k])
			points = append(points, fmt.Sprintf("%.1f,%.1f", x, y))
		}
		y := top + 12 + 18*i
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"%s/>`+"\n", strings.Join(points, " "), colours[i/2], dash)
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="1.5"%s/><text x="%d" y="%d">%s</text>`+"\n",
			left+width+14, left+width+40, y, y, colours[i/2], dash, left+width+46, y+4, c.name)
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
