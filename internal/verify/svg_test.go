package verify

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/verify/litmus"
)

// drawings has programs with one race, the edges of its drawing, and the boxes around its threads.
var drawings = []struct {
	name, src, model string
	edges            string
	frames           string
}{
	{"a lock with a narrow release", `C a
int lock, x;
grid 2, 1;
kernel {
  while (exchange(lock, 1, acq, gpu) != 0) ;
  x = x + 1;
  store(lock, 0, rel, cta);
}`, SRC11, `R lock=0 acq gpu po W lock=1 rlx gpu
R lock=0 acq gpu po W lock=1 rlx gpu
R lock=0 acq gpu po W lock=1 rlx gpu
W lock=0 rel cta co W lock=1 rlx gpu
W lock=0 rel cta rf R lock=0 acq gpu`, "cta 0 0-0, cta 1 1-1"},
	{"what a barrier and a flag order", `C a
int x[2], f, y;
thread A @ cta 0 { x[0] = 1; barrier(); store(f, 1, rel, gpu); y = 1; }
thread B @ cta 1 { if (load(f, acq, gpu) == 1) { y = x[1]; } }
thread C @ cta 0 { x[1] = 1; barrier(); }`, SRC11, `W f=1 rel gpu rf R f=1 acq gpu
W f=1 rel gpu sync R f=1 acq gpu
arrives at barrier 0 sync leaves barrier 0
W x[1]=1 na rf R x[1]=1 na
W y=1 na race W y=1 na`, "cta 0 0-1, cta 1 2-2"},
	{"the model PTX", `PTX a
 P0@cta 0,gpu 0      | P1@cta 0,gpu 1 ;
 st.weak x, 1        | ld.acquire.sys r0, y ;
 st.release.sys y, 1 | bne r0, 1, E ;
 st.weak z, 1        | ld.weak r1, x ;
                     | st.weak z, 1 ;
                     | E: ;
`, PTX, `W y=1 rel sys rf R y=1 acq sys
W y=1 rel sys sync R y=1 acq sys
W x=1 na rf R x=1 na
W z=1 na race W z=1 na`, "gpu 0 0-0, gpu 1 1-1, cta 0 0-0, cta 0 1-1"},
}

func TestDrawings(t *testing.T) {
	for _, c := range drawings {
		r := verifyText(t, c.name, c.src, litmus.Options{PTX: c.model == PTX}, Options{Model: c.model, Drawings: true})
		i := slices.IndexFunc(r.Findings, func(f Finding) bool {
			return slices.ContainsFunc(f.Drawing.Edges, func(e DrawnEdge) bool { return e.Relation == relationRace })
		})
		if i < 0 {
			t.Errorf("%s: no race: %+v", c.name, r.Findings)
			continue
		}
		for k := range r.Findings {
			wellFormed(t, c.name, r.Findings[k].Drawing)
		}
		for line := range strings.Lines(c.edges) {
			line = strings.TrimSpace(line)
			if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
				return slices.ContainsFunc(f.Drawing.Edges, func(e DrawnEdge) bool {
					return line == fmt.Sprintf("%s %s %s", f.Drawing.Nodes[e.From].Text, e.Relation, f.Drawing.Nodes[e.To].Text)
				})
			}) {
				t.Errorf("%s: no edge %q", c.name, line)
			}
		}
		var frames []string
		for _, row := range r.Findings[i].Drawing.frames() {
			for _, f := range row {
				frames = append(frames, fmt.Sprintf("%s %d-%d", f.name, f.from, f.to))
			}
		}
		if got := strings.Join(frames, ", "); got != c.frames {
			t.Errorf("%s: the boxes are %s, want %s", c.name, got, c.frames)
		}
	}
}

// TestPNG checks that the bitmap has the boxes, the texts and the edges of the drawing in their places.
func TestPNG(t *testing.T) {
	for _, c := range drawings {
		r := verifyText(t, c.name, c.src, litmus.Options{PTX: c.model == PTX}, Options{Model: c.model, Drawings: true})
		for i := range r.Findings {
			d := r.Findings[i].Drawing
			img, err := png.Decode(bytes.NewReader(d.PNG()))
			if err != nil {
				t.Fatal(err)
			}
			width, height, left, widths, top := d.size()
			if got := img.Bounds(); got != image.Rect(0, 0, width, height) {
				t.Fatalf("%s: the bitmap is %v, want %d x %d", c.name, got, width, height)
			}
			of := map[color.Color]int{}
			for y := range height {
				for x := range width {
					of[img.At(x, y)]++
				}
			}
			for _, e := range d.Edges {
				if same := d.Nodes[e.From].Thread == d.Nodes[e.To].Thread; of[paintOf(e.Relation)] == 0 && !(same && e.Relation == relationCO) {
					t.Errorf("%s: no edge of %s", c.name, e.Relation)
				}
			}
			for n, node := range d.Nodes {
				x, y := left[node.Thread], top+rowHeight*n
				black := 0
				for dy := range nodeHeight {
					for dx := range widths[node.Thread] {
						if img.At(x+dx, y+dy) == color.Color(color.RGBA{0, 0, 0, 255}) {
							black++
						}
					}
				}
				if got := img.At(x+widths[node.Thread]/2, y+2); got != color.Color(color.RGBA{0xfa, 0xfa, 0xfa, 255}) || black < 10*len(node.Text) {
					t.Errorf("%s: the box of node %d has colour %v, and %d black pixels", c.name, n+1, got, black)
				}
			}
		}
	}
}

// paintOf returns the colour of a relation.
func paintOf(relation string) color.Color { return rgba(colours[relation]).C }

// wellFormed checks that the drawing is XML with a path for each edge and the text of each node.
func wellFormed(t *testing.T, name string, d *Drawing) {
	svg := d.SVG()
	paths, texts := 0, map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, svg)
		}
		switch x := token.(type) {
		case xml.StartElement:
			if x.Name.Local == "path" && slices.ContainsFunc(x.Attr, func(a xml.Attr) bool { return a.Name.Local == "class" }) {
				paths++
			}
		case xml.CharData:
			texts[string(x)]++
		}
	}
	edges := 0
	for _, e := range d.Edges {
		if e.Relation != relationCO || d.Nodes[e.From].Thread != d.Nodes[e.To].Thread {
			edges++
		}
	}
	if paths != edges {
		t.Errorf("%s: %d paths for %d edges", name, paths, edges)
	}
	for _, n := range d.Nodes {
		if texts[fmt.Sprintf("%d: %s", n.Number, n.Text)] != 1 {
			t.Errorf("%s: node %d stands %d times in the drawing", name, n.Number, texts[fmt.Sprintf("%d: %s", n.Number, n.Text)])
		}
	}
}
