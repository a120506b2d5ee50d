package verify

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// maxPixels bounds the size of a PNG.
const maxPixels = 1 << 26

// PNG returns the picture of the graph as PNG. The picture is cut after maxPixels pixels.
func (d *Drawing) PNG() []byte {
	width, height, _, _, _ := d.size()
	width = min(width, maxPixels)
	c := &bitmap{image.NewRGBA(image.Rect(0, 0, width, min(height, maxPixels/width)))}
	draw.Draw(c, c.Bounds(), image.White, image.Point{}, draw.Src)
	d.draw(c)
	var b bytes.Buffer
	_ = png.Encode(&b, c) // a Buffer does not fail
	return b.Bytes()
}

// bitmap is the canvas of a PNG.
type bitmap struct{ *image.RGBA }

// rgba returns the colour "#rrggbb".
func rgba(colour string) *image.Uniform {
	v, err := strconv.ParseUint(colour[1:], 16, 24)
	if err != nil {
		panic("BUG: colour " + colour)
	}
	return image.NewUniform(color.RGBA{uint8(v >> 16), uint8(v >> 8), uint8(v), 255})
}

func (c *bitmap) box(at point, width, height, radius int, fill, stroke string, strokeWidth int) {
	x, y, w, h, r := float64(at.x), float64(at.y), float64(width), float64(height), float64(radius)
	var outline [][2]float64
	for corner, mid := range [4][2]float64{{x + w - r, y + r}, {x + r, y + r}, {x + r, y + h - r}, {x + w - r, y + h - r}} {
		for step := range 5 {
			sin, cos := math.Sincos((float64(corner) + float64(step)/4) * math.Pi / 2)
			outline = append(outline, [2]float64{mid[0] + r*cos, mid[1] - r*sin})
		}
	}
	outline = append(outline, outline[0])
	if fill != "" {
		c.fill(fill, outline)
	}
	c.stroke(stroke, float64(strokeWidth), outline)
}

func (c *bitmap) text(at point, colour string, s style, text string) {
	d := font.Drawer{Dst: c, Src: rgba(colour), Face: basicfont.Face7x13}
	if s == labelText {
		at.x -= charWidth * len(text) / 2
		draw.Draw(c, image.Rect(at.x-1, at.y-9, at.x+charWidth*len(text), at.y+2), image.White, image.Point{}, draw.Src)
	}
	d.Dot = fixed.P(at.x, at.y)
	d.DrawString(text)
	if s == boldText || s == titleText {
		d.Dot = fixed.P(at.x+1, at.y)
		d.DrawString(text)
	}
}

func (c *bitmap) edge(relation string, points ...point) {
	var line [][2]float64
	if len(points) == 2 {
		for _, p := range points {
			line = append(line, [2]float64{float64(p.x), float64(p.y)})
		}
	} else {
		const steps = 64
		for i := range steps + 1 {
			x, y := bezier([4]point(points), float64(i)/steps)
			line = append(line, [2]float64{x, y})
		}
	}
	if relation == relationRace {
		for i := 0; i+2 < len(line); i += 4 {
			c.stroke(colours[relation], 1.4, line[i:i+3])
		}
		return
	}
	c.stroke(colours[relation], 1.4, line)
	n := len(line)
	tip, from := line[n-1], line[n-2]
	dx, dy := unit(from, tip)
	c.fill(colours[relation], [][2]float64{tip, {tip[0] - 9*dx + 4*dy, tip[1] - 9*dy - 4*dx}, {tip[0] - 9*dx - 4*dy, tip[1] - 9*dy + 4*dx}})
}

// unit returns the direction from one point to another.
func unit(from, to [2]float64) (dx, dy float64) {
	dx, dy = to[0]-from[0], to[1]-from[1]
	n := max(math.Hypot(dx, dy), 1e-9)
	return dx / n, dy / n
}

// stroke draws a line through points.
func (c *bitmap) stroke(colour string, width float64, points [][2]float64) {
	for i, to := range points[1:] {
		dx, dy := unit(points[i], to)
		dx, dy = dx*width/2, dy*width/2
		c.fill(colour, [][2]float64{{points[i][0] - dy, points[i][1] + dx}, {points[i][0] + dy, points[i][1] - dx}, {to[0] + dy, to[1] - dx}, {to[0] - dy, to[1] + dx}})
	}
}

// fill fills a polygon.
func (c *bitmap) fill(colour string, points [][2]float64) {
	lo, hi := points[0], points[0]
	for _, p := range points {
		lo, hi = [2]float64{min(lo[0], p[0]), min(lo[1], p[1])}, [2]float64{max(hi[0], p[0]), max(hi[1], p[1])}
	}
	at := image.Rect(int(lo[0])-1, int(lo[1])-1, int(hi[0])+2, int(hi[1])+2)
	r := vector.NewRasterizer(at.Dx(), at.Dy())
	for i, p := range points {
		x, y := float32(p[0]-float64(at.Min.X)), float32(p[1]-float64(at.Min.Y))
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
	r.Draw(c, at, rgba(colour), image.Point{})
}
