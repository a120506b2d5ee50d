package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/model"
)

// Relations of a Drawing.
const (
	relationPO   = "po"   // program order
	relationRF   = "rf"   // reads from
	relationCO   = "co"   // coherence order
	relationSync = "sync" // synchronises with, barriers included
	relationRace = "race"
)

// Drawing is an execution graph to be drawn.
type Drawing struct {
	Title   string
	Threads []DrawnThread // those of a CTA side by side
	Nodes   []DrawnNode   // in an order that extends program order
	Edges   []DrawnEdge
	Left    string // describes what is left out; "" for nothing
}

// DrawnThread is a column.
type DrawnThread struct {
	Name    string
	Of      string // "block 1, thread 0"
	Groups  []string
	Numbers [3]int32 // of the GPU, the cluster and the CTA
}

// DrawnNode is an event.
type DrawnNode struct {
	Thread int // index in Threads
	Number int // as in the drawing as text
	Text   string
	Place  string // "lock.cu:3"
	Marked bool   // an access of the race
}

// DrawnEdge relates two nodes.
type DrawnEdge struct {
	From, To int
	Relation string
}

// maxRelated is the greatest number of events of an execution whose synchronisation is drawn. It is computed with whole
// relations.
const maxRelated = 600

// drawing makes the drawing of an execution. It has the events that are drawn as text, with the same numbers.
func (v *verifier) drawing(x explore.Execution, events []explore.Event, e explore.Error, title string) *Drawing {
	shown, left := v.shown(x, events, e)
	d := &Drawing{Title: title}
	if left > 0 {
		d.Left = leftOut(left, e)
	}
	var threads []int
	for i := range events {
		if t := events[i].Thread; shown[i] && !slices.Contains(threads, t) {
			threads = append(threads, t)
		}
	}
	for _, t := range threads {
		d.Threads = append(d.Threads, v.drawnThread(t))
	}
	order := make([]int, len(threads))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(slices.Compare(d.Threads[a].Numbers[:], d.Threads[b].Numbers[:]), cmp.Compare(threads[a], threads[b]))
	})
	sorted, column := make([]DrawnThread, len(order)), map[int]int{}
	for c, i := range order {
		sorted[c], column[threads[i]] = d.Threads[i], c
	}
	d.Threads = sorted
	node, last := make([]int, len(events)), map[int]int{}
	for i := range events {
		if node[i] = -1; !shown[i] {
			continue
		}
		ev := &events[i]
		n := len(d.Nodes)
		node[i] = n
		file, line, _ := place(v.subject.frames(ev.Op.Pos))
		text, _, _ := strings.Cut(v.eventText(ev, nil), " <- ")
		d.Nodes = append(d.Nodes, DrawnNode{Thread: column[ev.Thread], Number: n + 1, Text: text,
			Place: fmt.Sprintf("%s:%d", file[strings.LastIndex(file, "/")+1:], line), Marked: i == e.A || i == e.B})
		if before, ok := last[ev.Thread]; ok {
			d.Edges = append(d.Edges, DrawnEdge{before, n, relationPO})
		}
		last[ev.Thread] = n
	}
	edge := func(a, b int, relation string) {
		if a >= 0 && b >= 0 && node[a] >= 0 && node[b] >= 0 {
			d.Edges = append(d.Edges, DrawnEdge{node[a], node[b], relation})
		}
	}
	v.relate(x, events, edge)
	if e.A >= 0 && e.B >= 0 {
		edge(e.A, e.B, relationRace)
	}
	return d
}

// drawnThread describes a thread by its place.
func (v *verifier) drawnThread(t int) DrawnThread {
	name, of, p := v.subject.thread(t)
	d := DrawnThread{Name: name, Of: of, Numbers: [3]int32{p.GPU, p.Cluster, p.CTA}}
	d.Groups = []string{fmt.Sprintf("gpu %d", p.GPU), fmt.Sprintf("cluster %d", p.Cluster), fmt.Sprintf("cta %d", p.CTA)}
	if v.test != nil { // numbers of a litmus test count within the enclosing cluster or GPU
		d.Groups[1], d.Groups[2] = fmt.Sprintf("cluster %d", p.Cluster&(1<<10-1)), fmt.Sprintf("cta %d", p.CTA&(1<<10-1))
	}
	return d
}

// relate calls edge for the pairs of rf, co and sync.
func (v *verifier) relate(x explore.Execution, events []explore.Event, edge func(a, b int, relation string)) {
	locs, arrived := map[int32]bool{}, map[int]int{}
	for i := range events {
		switch ev := &events[i]; ev.Kind {
		case model.R:
			edge(ev.RF, i, relationRF)
			locs[ev.Loc] = true
		case model.W:
			locs[ev.Loc] = true
		case model.Arrival:
			arrived[ev.Thread] = i
		case model.Leave:
			relation := relationSync
			if ev.Op.Exchanges { // it orders nothing: only values come from there
				relation = relationRF
			}
			for _, a := range x.Arrivals(arrived[ev.Thread]) {
				if int(a) != arrived[ev.Thread] {
					edge(int(a), i, relation)
				}
			}
		}
	}
	for _, loc := range slices.Sorted(maps.Keys(locs)) {
		co := x.Coherence(loc)
		for i := 1; i < len(co); i++ {
			edge(int(co[i-1]), int(co[i]), relationCO)
		}
	}
	if len(events) > maxRelated {
		return
	}
	var synchronises func(a, b int) bool
	if of, ok := x.(interface{ Synchronizes(a, b int) bool }); ok {
		synchronises = of.Synchronizes
	} else {
		m, first := modelExecution(x, events)
		sw := model.SRC11{Incl: v.options.Incl}.Relations(m).SW
		synchronises = func(a, b int) bool { return sw.Has(first+a, first+b) }
	}
	barrier := func(i int) bool { return events[i].Kind == model.Arrival || events[i].Kind == model.Leave }
	for a := range events {
		for b := range events {
			if events[a].Thread != events[b].Thread && !barrier(a) && !barrier(b) && synchronises(a, b) {
				edge(a, b, relationSync)
			}
		}
	}
}

// modelExecution converts an execution to the form of package model, with the initial writes of the locations first.
// Event e becomes event first + e.
func modelExecution(x explore.Execution, events []explore.Event) (m *model.Execution, first int) {
	initial := map[int32]int{} // by location
	for i := range events {
		if ev := &events[i]; ev.Kind == model.R || ev.Kind == model.W {
			if _, ok := initial[ev.Loc]; !ok {
				initial[ev.Loc] = len(initial)
			}
		}
	}
	first = len(initial)
	n := first + len(events)
	m = &model.Execution{E: make([]model.Event, first, n), PO: model.NewRel(n), RF: model.NewRel(n), CO: model.NewRel(n), RMW: model.NewRel(n), Bar: model.NewRel(n)}
	for loc, l := range initial {
		m.E[l] = model.Event{Thread: -1, Kind: model.W, Loc: loc}
		co := x.Coherence(loc)
		for i, w := range co {
			m.CO.Add(l, first+int(w))
			for _, later := range co[i+1:] {
				m.CO.Add(first+int(w), first+int(later))
			}
		}
	}
	of := map[int][]int{} // by thread: its events
	for i := range events {
		ev := &events[i]
		m.E = append(m.E, ev.Event)
		for l := range first {
			m.PO.Add(l, first+i)
		}
		before := of[ev.Thread]
		for _, b := range before {
			m.PO.Add(b, first+i)
		}
		if ev.RMW && ev.Kind == model.W {
			m.RMW.Add(before[len(before)-1], first+i)
		}
		if ev.Kind == model.Leave && !ev.Op.Exchanges {
			for _, a := range x.Arrivals(before[len(before)-1] - first) {
				m.Bar.Add(first+int(a), first+i)
			}
		}
		of[ev.Thread] = append(before, first+i)
		switch {
		case ev.Kind == model.R && ev.RF >= 0:
			m.RF.Add(first+ev.RF, first+i)
		case ev.Kind == model.R:
			m.RF.Add(initial[ev.Loc], first+i)
		}
	}
	return m, first
}

// The measures of a picture, in pixels.
const (
	nodeHeight, rowHeight     = 34, 52
	columnGap, margin         = 70, 20
	charWidth, headHeight     = 7, 46
	frameHeight, legendHeight = 20, 40
)

// colours are the colours of relations. grey is that of what explains them.
var colours = map[string]string{relationPO: "#999999", relationRF: "#228833", relationCO: "#b26a00", relationSync: "#2255aa", relationRace: "#cc2233"}

const grey = "#666666"

// point is a point of a picture.
type point struct{ x, y int }

// style is the style of a text.
type style uint8

const (
	plainText style = iota
	boldText
	titleText
	labelText // centred, with a white edge
)

// canvas is a format of pictures. Colours are in the form "#rrggbb".
type canvas interface {
	// box draws a box with rounded corners. Fill may be empty.
	box(at point, width, height, radius int, fill, stroke string, strokeWidth int)
	text(at point, colour string, s style, text string)
	// edge draws the edge of a relation: a line, or a cubic Bézier curve through four points. Except for races it ends
	// with an arrow.
	edge(relation string, points ...point)
}

// size returns the size of the picture, the left edges and widths of the columns, and the top of the first row.
func (d *Drawing) size() (width, height int, left, widths []int, top int) {
	widths = make([]int, len(d.Threads))
	for c, t := range d.Threads {
		widths[c] = charWidth * max(len(t.Name), len(t.Of)) // text of 11 pixels
	}
	for _, n := range d.Nodes {
		widths[n.Thread] = max(widths[n.Thread], charWidth*(len(n.Text)+len(fmt.Sprint(n.Number))+2), charWidth*len(n.Place))
	}
	left, x := make([]int, len(d.Threads)), margin+columnGap/2
	for c := range d.Threads {
		widths[c] += 16
		left[c] = x
		x += widths[c] + columnGap
	}
	legend := 2 * margin
	for _, r := range d.legend() {
		legend += charWidth * (len(r) + len(relations[r]) + 4)
	}
	frames := frameHeight * len(d.frames())
	top = 30 + frames + headHeight
	return max(x, charWidth*max(len(d.Title), len(d.Left))+2*margin, legend), top + rowHeight*len(d.Nodes) + frames + legendHeight, left, widths, top
}

// relations explains the relations.
var relations = map[string]string{relationPO: "program order", relationRF: "reads from", relationCO: "coherence order", relationSync: "synchronises",
	relationRace: "these two accesses"}

// legend returns the relations that are drawn.
func (d *Drawing) legend() (out []string) {
	for _, r := range []string{relationPO, relationRF, relationCO, relationSync, relationRace} {
		if slices.ContainsFunc(d.Edges, func(e DrawnEdge) bool { return e.Relation == r }) {
			out = append(out, r)
		}
	}
	return out
}

// draw draws the graph: a column for each thread, within boxes for the CTAs, clusters and GPUs if there are several; a
// row for each event; an edge for each pair of a relation. Coherence edges within a thread that follow program order
// are left out.
func (d *Drawing) draw(to canvas) {
	_, height, left, widths, top := d.size()
	frames := d.frames()
	to.text(point{margin, 18}, "#000000", titleText, d.Title)
	for level, row := range frames {
		for _, f := range row {
			inset := 4 * level
			to.box(point{left[f.from] - 26 + inset, 28 + frameHeight*level}, left[f.to]+widths[f.to]-left[f.from]+52-2*inset,
				top-28+rowHeight*len(d.Nodes)+frameHeight*(len(frames)-2*level)-2, 6, "", "#bbbbbb", 1)
			to.text(point{left[f.from] - 20 + inset, 42 + frameHeight*level}, grey, plainText, f.name)
		}
	}
	for c, t := range d.Threads {
		to.text(point{left[c], top - 26}, "#000000", boldText, t.Name)
		to.text(point{left[c], top - 12}, grey, plainText, t.Of)
	}
	d.drawEdges(to, left, widths, top)
	for i, n := range d.Nodes {
		y, stroke, width := top+rowHeight*i, "#444444", 1
		if n.Marked {
			stroke, width = colours[relationRace], 2
		}
		to.box(point{left[n.Thread], y}, widths[n.Thread], nodeHeight, 4, "#fafafa", stroke, width)
		to.text(point{left[n.Thread] + 8, y + 14}, "#000000", plainText, fmt.Sprintf("%d: %s", n.Number, n.Text))
		to.text(point{left[n.Thread] + 8, y + 28}, grey, plainText, n.Place)
	}
	at := margin
	for _, r := range d.legend() {
		text := r + ": " + relations[r]
		to.text(point{at, height - 14}, colours[r], plainText, text)
		at += charWidth * (len(text) + 2)
	}
	if d.Left != "" {
		to.text(point{margin, height - 28}, grey, plainText, d.Left)
	}
}

// frame is a box around consecutive columns.
type frame struct {
	from, to int
	name     string
}

// frames returns the boxes of GPUs and clusters if there are several, and those of all CTAs.
func (d *Drawing) frames() (rows [][]frame) {
	for level := range 3 {
		var row []frame
		for c, t := range d.Threads {
			if c > 0 && slices.Equal(t.Numbers[:level+1], d.Threads[c-1].Numbers[:level+1]) {
				row[len(row)-1].to = c
				continue
			}
			row = append(row, frame{c, c, t.Groups[level]})
		}
		// A cluster of one CTA is not worth a box.
		if level == 2 || level == 0 && len(row) > 1 || level == 1 && len(row) > 1 && slices.ContainsFunc(row, func(f frame) bool {
			return d.Threads[f.from].Numbers[2] != d.Threads[f.to].Numbers[2]
		}) {
			rows = append(rows, row)
		}
	}
	return rows
}

// drawEdges draws the pairs of the relations. Edges within a column, and the labels, keep clear of the nodes.
func (d *Drawing) drawEdges(to canvas, left, widths []int, top int) {
	for _, e := range d.Edges {
		from, dest := &d.Nodes[e.From], &d.Nodes[e.To]
		y1, y2 := top+rowHeight*e.From+nodeHeight/2, top+rowHeight*e.To+nodeHeight/2
		switch {
		case e.Relation == relationPO:
			x := left[from.Thread] + 14
			to.edge(e.Relation, point{x, y1 + nodeHeight/2}, point{x, y2 - nodeHeight/2})
			continue
		case e.Relation == relationCO && from.Thread == dest.Thread:
			continue
		}
		x1, x2 := left[from.Thread]+widths[from.Thread], left[dest.Thread]
		c1, c2 := x1+columnGap/2, x2-columnGap/2
		switch {
		case from.Thread == dest.Thread:
			x2, c2 = x1, c1
		case x2 < x1:
			x1, x2 = left[from.Thread], left[dest.Thread]+widths[dest.Thread]
			c1, c2 = x1-columnGap/2, x2+columnGap/2
		}
		// Relations of one pair of nodes are drawn apart.
		shift := map[string]int{relationRF: -5, relationCO: 5, relationSync: 0, relationRace: 10}[e.Relation]
		curve := [4]point{{x1, y1 + shift}, {c1, y1 + shift}, {c2, y2 + shift}, {x2, y2 + shift}}
		to.edge(e.Relation, curve[:]...)
		// The label is at a quarter of the curve, or at three quarters.
		quarter := 1.0
		if e.Relation == relationCO || e.Relation == relationRace {
			quarter = 3
		}
		x, y := bezier(curve, quarter/4)
		to.text(point{int(x), int(y) + 3}, colours[e.Relation], labelText, e.Relation)
	}
}

// bezier returns a point of a cubic curve, by Bernstein polynomials.
func bezier(p [4]point, t float64) (x, y float64) {
	for i, w := range [4]float64{(1 - t) * (1 - t) * (1 - t), 3 * t * (1 - t) * (1 - t), 3 * t * t * (1 - t), t * t * t} {
		x, y = x+w*float64(p[i].x), y+w*float64(p[i].y)
	}
	return x, y
}
