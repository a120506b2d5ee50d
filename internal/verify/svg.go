package verify

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// SVG returns the picture of the graph as SVG.
func (d *Drawing) SVG() string {
	width, height, _, _, _ := d.size()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="monospace" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n<defs>\n", escaped(d.Title))
	for _, r := range []string{relationPO, relationRF, relationCO, relationSync} {
		fmt.Fprintf(&b, `<marker id="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`+"\n", r, colours[r])
	}
	b.WriteString("</defs>\n" + `<rect width="100%" height="100%" fill="white"/>` + "\n")
	d.draw((*svg)(&b))
	b.WriteString("</svg>\n")
	return b.String()
}

// svg is the canvas of an SVG.
type svg strings.Builder

func (c *svg) printf(format string, args ...any) {
	fmt.Fprintf((*strings.Builder)(c), format+"\n", args...)
}

func (c *svg) box(at point, width, height, radius int, fill, stroke string, strokeWidth int) {
	if fill == "" {
		fill = "none"
	}
	c.printf(`<rect x="%d" y="%d" width="%d" height="%d" rx="%d" fill="%s" stroke="%s" stroke-width="%d"/>`, at.x, at.y, width, height, radius, fill, stroke, strokeWidth)
}

func (c *svg) text(at point, colour string, s style, text string) {
	attributes := [...]string{plainText: "", boldText: ` font-weight="bold"`, titleText: ` font-size="13" font-weight="bold"`,
		labelText: ` text-anchor="middle" stroke="white" stroke-width="3" paint-order="stroke"`}[s]
	c.printf(`<text x="%d" y="%d" fill="%s"%s>%s</text>`, at.x, at.y, colour, attributes, escaped(text))
}

func (c *svg) edge(relation string, points ...point) {
	end := fmt.Sprintf(` marker-end="url(#%s)"`, relation)
	if relation == relationRace {
		end = ` stroke-dasharray="5 3"`
	}
	path := fmt.Sprintf("M%d %d%c", points[0].x, points[0].y, map[int]rune{2: 'L', 4: 'C'}[len(points)])
	for _, p := range points[1:] {
		path += fmt.Sprintf("%d %d ", p.x, p.y)
	}
	c.printf(`<path class="%s" d="%s" fill="none" stroke="%s" stroke-width="1.4"%s/>`, relation, strings.TrimSpace(path), colours[relation], end)
}

func escaped(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}
