package litmus

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/model"
	"fencepost.dev/fencepost/internal/verify/repair"
)

// Edit makes the changes of a repair in the source of a test, which must be valid. The error says what it cannot write.
func Edit(src string, p repair.Patch) (string, error) {
	tokens, err := lex("", src)
	if err != nil {
		return "", err
	}
	e := &editor{tokens: tokens, lines: []int{0, 0}}
	for i := range src {
		if src[i] == '\n' {
			e.lines = append(e.lines, i+1)
		}
	}
	for _, pos32 := range p.Places() {
		i := slices.IndexFunc(tokens, func(t token) bool { return int32(t.pos) == pos32 })
		if i < 0 {
			return "", fmt.Errorf("the place of a change is not found")
		}
		edit := e.scopedC
		if tokens[0].text == "PTX" {
			edit = e.ptx
		}
		if err := edit(src, i, p[pos32]); err != nil {
			line, _ := Line(pos32)
			return "", fmt.Errorf("line %d: %w", line, err)
		}
	}
	return repair.Apply(src, e.edits)
}

type editor struct {
	tokens []token
	lines  []int // the start of each line, from line 1
	edits  []repair.Edit
}

func (e *editor) offset(i int) int {
	line, col := Line(int32(e.tokens[i].pos))
	return e.lines[line] + col - 1
}

func (e *editor) end(i int) int { return e.offset(i) + len(e.tokens[i].text) }

func (e *editor) replace(i int, text string) {
	e.edits = append(e.edits, repair.Edit{At: e.offset(i), Len: len(e.tokens[i].text), Text: text})
}

func (e *editor) insert(at int, text string) {
	e.edits = append(e.edits, repair.Edit{At: at, Text: text})
}

func (e *editor) is(i int, texts ...string) bool {
	return i >= 0 && slices.Contains(texts, e.tokens[i].text) && e.tokens[i].kind != text
}

// close returns the token that closes the bracket at token i.
func (e *editor) close(i int) int {
	for depth := 0; i < len(e.tokens); i++ {
		switch {
		case e.is(i, "(", "[", "{"):
			depth++
		case e.is(i, ")", "]", "}"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(e.tokens) - 1
}

// open returns the token that opens the bracket at token i.
func (e *editor) open(i int) int {
	for depth := 0; i >= 0; i-- {
		switch {
		case e.is(i, ")", "]", "}"):
			depth++
		case e.is(i, "(", "[", "{"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

// statement returns the first and last token of the statement that contains token i, and whether it is the body of an
// if or a loop without braces. For a change after it, i may be in the condition of a waiting loop, one without a body.
func (e *editor) statement(i int, behind bool) (from, to int, bare bool, err error) {
	from = i
	for j := i - 1; ; j-- {
		if e.is(j, ")", "]") {
			if k := e.open(j); e.is(k-1, "if", "while", "for") {
				from, bare = j+1, true
				break
			} else {
				j = k
			}
			continue
		}
		if e.is(j, ";", "{", "}") {
			from = j + 1
			break
		}
		if e.is(j, "else", "do") {
			from, bare = j+1, true
			break
		}
		if e.is(j, "(") && e.is(j-1, "if", "while", "for") {
			to = e.close(j)
			switch {
			case e.is(j-1, "if") && !behind:
			case e.is(j-1, "while") && behind && e.is(to+1, ";"):
				i = to
			default:
				return 0, 0, false, fmt.Errorf("the condition of a %q is not split", e.tokens[j-1].text)
			}
			j--
		}
	}
	for to = i; to < len(e.tokens)-1 && !e.is(to, ";"); to++ {
		if e.is(to, "(", "[") {
			to = e.close(to)
		}
		if e.is(to, "}") && to == i {
			return to, to, false, nil
		}
	}
	return from, to, bare, nil
}

// indent is the white space at the beginning of the line of offset at.
func indent(src string, at int) string {
	line := src[strings.LastIndexByte(src[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// put inserts statements before or after the statement of token i.
func (e *editor) put(src string, i int, before, behind []string) error {
	from, to, bare, err := e.statement(i, len(before) == 0)
	if err != nil {
		return err
	}
	at := e.offset(from)
	space := "\n" + indent(src, at)
	if e.is(i, "}") && strings.TrimSpace(space) == "" && indent(src, at) == src[strings.LastIndexByte(src[:at], '\n')+1:at] {
		for _, s := range before { // at the end of a block
			e.insert(at, "  "+s+space)
		}
		return nil
	}
	if bare {
		e.insert(at, "{ "+strings.Join(append(slices.Clone(before), ""), " "))
		e.insert(e.end(to), strings.Join(append([]string{""}, behind...), " ")+" }")
		return nil
	}
	for _, s := range before {
		e.insert(at, s+space)
	}
	for _, s := range behind {
		e.insert(e.end(to), space+s)
	}
	return nil
}

func (e *editor) scopedC(src string, i int, c repair.Change) error {
	var before, behind []string
	if c.Barrier {
		before = append(before, "barrier();")
	}
	if f := c.Before; f.Order != model.NA {
		before = append(before, fmt.Sprintf("fence(%s, %s);", f.Order, f.Scope))
	}
	if f := c.After; f.Order != model.NA {
		behind = append(behind, fmt.Sprintf("fence(%s, %s);", f.Order, f.Scope))
	}
	if len(before)+len(behind) > 0 {
		if err := e.put(src, i, before, behind); err != nil {
			return err
		}
	}
	switch {
	case c.Drop:
		return e.drop(src, i)
	case c.Order == model.NA && c.Scope == model.Thread:
		return nil
	case e.is(i+1, "("):
		return e.call(i, c)
	}
	return e.plain(i, c)
}

// drop removes the statement "barrier();" at token i.
func (e *editor) drop(src string, i int) error {
	_, to, bare, err := e.statement(i, false)
	if err != nil {
		return err
	}
	at, end := e.offset(i), e.end(to)
	if bare {
		e.edits = append(e.edits, repair.Edit{At: at, Len: e.offset(to) - at})
		return nil
	}
	line := strings.LastIndexByte(src[:at], '\n') + 1
	if next := strings.IndexByte(src[end:], '\n'); next >= 0 && strings.TrimSpace(src[line:at]) == "" && strings.TrimSpace(src[end:end+next]) == "" {
		at, end = line, end+next+1
	}
	e.edits = append(e.edits, repair.Edit{At: at, Len: end - at})
	return nil
}

// call changes the order and scope of an operation.
func (e *editor) call(i int, c repair.Change) error {
	at := map[string]int{"load": 1, "fence": 0, "cas": 3, "barrier": -1, "arrive": -1}
	n, ok := at[e.tokens[i].text]
	if !ok {
		n = 2
	}
	var args []int
	end := e.close(i + 1)
	for j := i + 2; j < end; j++ {
		if len(args) == 0 || e.is(j-1, ",") {
			args = append(args, j)
		}
		if e.is(j, "(", "[") {
			j = e.close(j)
		}
	}
	if n < 0 || n >= len(args) {
		return fmt.Errorf("this has no order")
	}
	order, ok := orders[e.tokens[args[n]].text]
	if !ok {
		return fmt.Errorf("this has no order")
	}
	if c.Order != model.NA {
		e.replace(args[n], repair.Join(order, c.Order).String())
	}
	if n+1 < len(args) && scopes[e.tokens[args[n+1]].text] < c.Scope {
		e.replace(args[n+1], c.Scope.String())
	}
	return nil
}

// plain makes the access of the shared variable at token i atomic.
func (e *editor) plain(i int, c repair.Change) error {
	if c.Order == model.NA {
		return fmt.Errorf("this is not atomic")
	}
	last := i
	if e.is(i+1, "[") {
		last = e.close(i + 1)
	}
	how := fmt.Sprintf(", %s, %s)", c.Order, c.Scope)
	if !e.is(last+1, "=", "+=", "-=", "++", "--") {
		e.insert(e.offset(i), "load(")
		e.insert(e.end(last), how)
		return nil
	}
	end := last + 2
	for ; end < len(e.tokens)-1 && !e.is(end, ";", ")"); end++ {
		if e.is(end, "(", "[") {
			end = e.close(end)
		}
	}
	name, mark := "fetch_add(", ","
	switch {
	case e.is(last+1, "="):
		name = "store("
	case e.is(last+1, "-="):
		mark, how = ", -(", ")"+how
	case e.is(last+1, "++"):
		mark = ", 1"
	case e.is(last+1, "--"):
		mark = ", -1"
	}
	e.insert(e.offset(i), name)
	e.edits = append(e.edits, repair.Edit{At: e.end(last), Len: e.end(last+1) - e.end(last), Text: mark})
	e.insert(e.end(end-1), how)
	return nil
}

func (e *editor) ptx(src string, i int, c repair.Change) error {
	first, column, columns := i, 0, 1
	for first > 0 && !e.is(first-1, ";") {
		first--
		if e.is(first, "|") {
			column++
		}
	}
	row := i
	for row < len(e.tokens)-1 && !e.is(row, ";") {
		row++
	}
	for j := first; j < row; j++ {
		if e.is(j, "|") {
			columns++
		}
	}
	line := func(s string) string {
		cells := make([]string, columns)
		cells[column] = s
		return " " + strings.Join(cells, " | ") + " ;\n"
	}
	if c.Barrier || c.Before.Order != model.NA || c.After.Order != model.NA {
		if i < first || e.tokens[i].kind == eof || e.is(i, "exists", "forall", "filter", "~") {
			return fmt.Errorf("nothing is inserted at the end of a thread")
		}
	}
	above := strings.LastIndexByte(src[:e.offset(first)], '\n') + 1
	if c.Barrier {
		e.insert(above, line("bar.cta.sync 0"))
	}
	if f := c.Before; f.Order != model.NA {
		e.insert(above, line(fmt.Sprintf("fence.%s.%s", repair.OrderNames[f.Order], f.Scope)))
	}
	if f := c.After; f.Order != model.NA {
		below := strings.IndexByte(src[e.end(row):], '\n')
		if below < 0 {
			return fmt.Errorf("no line follows")
		}
		e.insert(e.end(row)+below+1, line(fmt.Sprintf("fence.%s.%s", repair.OrderNames[f.Order], f.Scope)))
	}
	last := i
	parts := []string{e.tokens[i].text}
	for ; e.is(last+1, "."); last += 2 {
		parts = append(parts, e.tokens[last+2].text)
	}
	if c.Drop {
		e.edits = append(e.edits, repair.Edit{At: e.offset(i), Len: e.end(last+1) - e.offset(i)})
		return nil
	}
	if c.Order == model.NA && c.Scope == model.Thread {
		return nil
	}
	text, err := repair.Opcode(parts, c)
	if err != nil {
		return err
	}
	e.edits = append(e.edits, repair.Edit{At: e.offset(i), Len: e.end(last) - e.offset(i), Text: text})
	return nil
}
