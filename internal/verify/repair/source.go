package repair

import (
	"fmt"
	"regexp"
	"strings"

	"fencepost.dev/fencepost/internal/verify/model"
)

// ptxLine is a line with one instruction: labels, a guard, the opcode, operands.
var ptxLine = regexp.MustCompile(`^(\s*(?:[\w$]+:\s*)*)((?:@!?%?[\w$]+\s+)?)([a-z][\w.:]*)([^;]*;)([^;]*)$`)

// EditPTX makes changes in lines of PTX, which are numbered from 1.
func EditPTX(src string, changes map[int]Change) (string, error) {
	lines := strings.Split(src, "\n")
	for n, c := range changes {
		if n < 1 || n > len(lines) {
			return "", fmt.Errorf("there is no line %d", n)
		}
		m := ptxLine.FindStringSubmatch(lines[n-1])
		if m == nil {
			return "", fmt.Errorf("line %d is not one instruction", n)
		}
		labels, guard, opcode, operands, rest := m[1], m[2], m[3], m[4], m[5]
		if c.Order != model.NA || c.Scope != model.Thread {
			var err error
			if opcode, err = Opcode(strings.Split(opcode, "."), c); err != nil {
				return "", fmt.Errorf("line %d: %w", n, err)
			}
		}
		text := labels
		if c.Barrier {
			text += "bar.sync 0;\n\t"
		}
		text += ptxFence(c.Before, "", "\n\t")
		if !c.Drop {
			text += guard + opcode + operands
		}
		lines[n-1] = text + ptxFence(c.After, "\n\t", "") + rest
	}
	return joined(lines, func(n int) bool { return changes[n].Drop && strings.TrimSpace(lines[n-1]) == "" }), nil
}

// joined joins lines, except those that are removed, by number from 1.
func joined(lines []string, removed func(n int) bool) string {
	var kept []string
	for i, l := range lines {
		if !removed(i + 1) {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

func ptxFence(f Fence, before, after string) string {
	if f.Order == model.NA {
		return ""
	}
	return fmt.Sprintf("%sfence.%s.%s;%s", before, OrderNames[f.Order], f.Scope, after)
}

// CUDA is the changes in a line of CUDA source.
type CUDA struct {
	Change
	Load, Store bool // which accesses become atomic
}

var (
	cudaComment = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	cudaNote    = regexp.MustCompile(`^(.*;)(\s*//.*)$`)
	cudaSimple  = regexp.MustCompile(`^[^{}]*;\s*(//.*)?$`)
	cudaControl = regexp.MustCompile(`^(if|for|while|do|else|switch|case|default)\b`)
	cudaIf      = regexp.MustCompile(`^(if|switch)\b`)
	cudaWaits   = regexp.MustCompile(`^while\b.*\)\s*;\s*(//.*)?$`)
	cudaLoop    = regexp.MustCompile(`^\s*while\s*\(`)
	cudaAtomic  = regexp.MustCompile(`\b(atomic[A-Z][A-Za-z]*)(_block|_system)?\(`)
	cudaFence   = regexp.MustCompile(`__threadfence(_block|_system)?\(`)
	cudaScope   = regexp.MustCompile(`\bthread_scope_(thread|block|device|system)\b`)
	cudaOrder   = regexp.MustCompile(`\bmemory_order(_|::)(relaxed|acquire|release|acq_rel|seq_cst)\b`)
	cudaSync    = regexp.MustCompile(`__syncthreads\(\)`)
	cudaAssign  = regexp.MustCompile(`^(\s*)([^=;]*?[^=;+\-*/!<>&|^%\s])\s*(\+=|=|\+\+)\s*([^=;][^;]*|);(.*)$`)
	cudaName    = regexp.MustCompile(`^\w+`)
	cudaPlace   = regexp.MustCompile(`^\*?[A-Za-z_]\w*(\[[^\[\]]*\])*$`)
	cudaSuffix  = map[model.Scope]string{model.CTA: "", model.Cluster: "", model.GPU: "", model.Sys: "_system"}
	cudaFences  = map[model.Scope]string{model.CTA: "_block", model.Cluster: "", model.GPU: "", model.Sys: "_system"}
	cudaScopes  = map[model.Scope]string{model.CTA: "block", model.Cluster: "device", model.GPU: "device", model.Sys: "system"}
	cudaOrders  = map[string]model.Order{"relaxed": model.Relaxed, "acquire": model.Acquire, "release": model.Release, "acq_rel": model.AcqRel,
		"seq_cst": model.SC}
)

// EditCUDA makes changes in lines of CUDA source, which are numbered from 1. It supports one-line statements; the error
// says what it cannot write. The compiler and the search verify what it writes.
func EditCUDA(src string, changes map[int]CUDA) (string, error) {
	if n := strings.Count(src, "\r\n"); n > 0 && n == strings.Count(src, "\n") {
		text, err := EditCUDA(strings.ReplaceAll(src, "\r\n", "\n"), changes)
		return strings.ReplaceAll(text, "\n", "\r\n"), err
	}
	lines := strings.Split(src, "\n")
	out, behind := append([]string(nil), lines...), make([]string, len(lines))
	for n, c := range changes {
		if n < 1 || n > len(lines) {
			return "", fmt.Errorf("there is no line %d", n)
		}
		text, err := cudaLine(lines, out, behind, n-1, c)
		if err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
		out[n-1] = text
	}
	for i := range out {
		out[i] += behind[i]
	}
	return joined(out, func(n int) bool { return changes[n].Drop && out[n-1] == "" }), nil
}

// cudaLine makes a change in line i. It adds what is to follow a later line to behind.
func cudaLine(lines, out, behindLines []string, i int, c CUDA) (string, error) {
	line := lines[i]
	var err error
	switch {
	case c.Drop:
		if body, _ := bare(lines, i); strings.TrimSpace(line) == "__syncthreads();" && !body {
			return "", nil
		}
		if len(cudaSync.FindAllString(line, -1)) != 1 {
			return "", fmt.Errorf("this is no __syncthreads()")
		}
		return cudaSync.ReplaceAllString(line, ""), nil
	case c.Load || c.Store:
		line, err = cudaMakeAtomic(lines[:i], line, c)
	case c.Order != model.NA || c.Scope != model.Thread:
		line, err = cudaStrengthen(lines, out, i, c)
	}
	if err != nil {
		return "", err
	}
	var before, behind []string
	if c.Barrier {
		before = append(before, "__syncthreads();")
	}
	if f := c.Before; f.Order != model.NA {
		before = append(before, "__threadfence"+cudaFences[f.Scope]+"();")
	}
	if f := c.After; f.Order != model.NA {
		behind = append(behind, "__threadfence"+cudaFences[f.Scope]+"();")
	}
	if len(before)+len(behind) == 0 {
		return line, nil
	}
	trimmed := strings.TrimSpace(line)
	waits := cudaWaits.MatchString(trimmed)
	if body, starts := bare(lines, i); cudaIf.MatchString(trimmed) && starts && !body && len(behind) == 0 {
		space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		return space + strings.Join(before, "\n"+space) + "\n" + line, nil
	}
	if last := cudaLoopEnd(lines, i); (last > i || last == i && !waits) && len(before) == 0 {
		if body, _ := bare(lines, i); body {
			return "", fmt.Errorf("this is not a statement of one line")
		}
		space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		behindLines[last] += "\n" + space + strings.Join(behind, "\n"+space)
		return line, nil
	}
	ends := trimmed == "}" || strings.HasPrefix(trimmed, "return") // where a thread ends
	if !ends && (!cudaSimple.MatchString(trimmed) || cudaControl.MatchString(trimmed) && (!waits || len(before) > 0)) {
		return "", fmt.Errorf("this is not a statement of one line")
	}
	body, starts := bare(lines, i)
	if trimmed == "}" {
		body, starts = false, true
	}
	if !starts {
		return "", fmt.Errorf("this is not a statement of one line")
	}
	space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	if body {
		note := ""
		if m := cudaNote.FindStringSubmatch(trimmed); m != nil {
			trimmed, note = m[1], m[2]
		}
		return space + "{ " + strings.Join(append(append(before, trimmed), behind...), " ") + " }" + note, nil
	}
	inner := space
	if trimmed == "}" {
		inner += "  "
	}
	text := ""
	for _, s := range before {
		text += inner + s + "\n"
	}
	text += line
	for _, s := range behind {
		text += "\n" + space + s
	}
	return text, nil
}

// cudaLoopEnd returns the last line of the while loop that begins with line i, and whose condition is on that line. It is -1 if there is no such
// loop, or if more follows on its last line.
func cudaLoopEnd(lines []string, i int) int {
	text := cudaComment.ReplaceAllStringFunc(strings.Join(lines[i:], "\n"), func(c string) string {
		return strings.Map(func(r rune) rune {
			if r == '\n' {
				return r
			}
			return ' '
		}, c)
	})
	m := cudaLoop.FindStringIndex(text)
	if m == nil {
		return -1
	}
	end := closing(text, m[1]-1)
	if end < 0 || strings.Contains(text[:end], "\n") {
		return -1
	}
	end++
	end += len(text[end:]) - len(strings.TrimLeft(text[end:], " \t\n"))
	if end < len(text) && text[end] == '{' {
		end = closing(text, end)
	} else if end == len(text) || text[end] != ';' {
		return -1
	}
	if end < 0 {
		return -1
	}
	if rest, _, _ := strings.Cut(text[end+1:], "\n"); strings.TrimSpace(rest) != "" {
		return -1
	}
	return i + strings.Count(text[:end], "\n")
}

// closing returns where the bracket that opens at a place of a text is closed, or -1.
func closing(text string, at int) int {
	open := 0
	for k := at; k < len(text); k++ {
		switch text[k] {
		case '(', '{':
			open++
		case ')', '}':
			if open--; open == 0 {
				return k
			}
		}
	}
	return -1
}

// bare says that line i is the body of an if or a loop without braces. starts says that a statement begins with it, as far as the text
// before it tells; a statement that begins after what is no statement and no brace is taken to be such a body, since braces around it do no harm.
func bare(lines []string, i int) (bare, starts bool) {
	before := strings.TrimSpace(cudaComment.ReplaceAllString(strings.Join(lines[:i], "\n"), " "))
	if before == "" || strings.HasSuffix(before, ";") || strings.HasSuffix(before, "{") || strings.HasSuffix(before, "}") || strings.HasSuffix(before, ":") {
		return false, true
	}
	return true, strings.HasSuffix(before, ")") || strings.HasSuffix(before, "else") || strings.HasSuffix(before, "do")
}

// cudaStrengthen changes the order or scope of the only operation of a line.
func cudaStrengthen(lines, out []string, i int, c CUDA) (string, error) {
	line := lines[i]
	if c.Order != model.NA && len(cudaFence.FindAllString(line, -1)) != 1 { // a __threadfence is sc
		m := cudaOrder.FindAllStringSubmatch(line, -1)
		if len(m) != 1 {
			return "", fmt.Errorf("this has no memory_order")
		}
		order := Join(cudaOrders[m[0][2]], c.Order)
		for name, o := range cudaOrders {
			if o == order {
				line = cudaOrder.ReplaceAllString(line, "memory_order${1}"+name)
			}
		}
	}
	if c.Scope == model.Thread {
		return line, nil
	}
	switch {
	case len(cudaScope.FindAllString(line, -1)) == 1:
		return cudaScope.ReplaceAllString(line, "thread_scope_"+cudaScopes[c.Scope]), nil
	case len(cudaAtomic.FindAllString(line, -1)) == 1:
		return cudaAtomic.ReplaceAllString(line, "${1}"+cudaSuffix[c.Scope]+"("), nil
	case len(cudaFence.FindAllString(line, -1)) == 1:
		return cudaFence.ReplaceAllString(line, "__threadfence"+cudaFences[c.Scope]+"("), nil
	}
	at := -1
	for k, l := range lines {
		if n := len(cudaScope.FindAllString(l, -1)); n > 1 || n == 1 && at >= 0 {
			return "", fmt.Errorf("it is not clear which scope is meant")
		} else if n == 1 {
			at = k
		}
	}
	if at < 0 || at == i {
		return "", fmt.Errorf("this has no scope")
	}
	out[at] = cudaScope.ReplaceAllString(lines[at], "thread_scope_"+cudaScopes[c.Scope])
	return line, nil
}

// cudaVolatile returns the type of what name is or points to if the lines before declare that as volatile, and ""
// otherwise. Atomic functions take no pointer to volatile.
func cudaVolatile(before []string, name string) (string, error) {
	declared := regexp.MustCompile(`(?:\bvolatile\s+((?:(?:unsigned|signed|long|short)\s+)*\w+)\s*[*&]?|\w\s*[*&])\s*(?:__restrict__\s+)?` + name + `\b`)
	all := declared.FindAllStringSubmatch(cudaComment.ReplaceAllString(strings.Join(before, "\n"), " "), -1)
	typ := ""
	for _, m := range all {
		if typ != "" && m[1] != typ {
			return "", fmt.Errorf("the type of %s is not clear", name)
		}
		typ = m[1]
	}
	return typ, nil
}

// cudaMakeAtomic writes an assignment, which follows the lines before, with an atomic function.
func cudaMakeAtomic(before []string, line string, c CUDA) (string, error) {
	if c.Order != model.Relaxed {
		return "", fmt.Errorf("the atomic functions are relaxed")
	}
	m := cudaAssign.FindStringSubmatch(line)
	if m == nil || cudaControl.MatchString(strings.TrimSpace(line)) {
		return "", fmt.Errorf("this is no assignment")
	}
	space, left, sign, right, rest := m[1], m[2], m[3], strings.TrimSpace(m[4]), m[5]
	if strings.TrimSpace(cudaComment.ReplaceAllString(rest, "")) != "" {
		return "", fmt.Errorf("this is more than an assignment")
	}
	suffix := cudaSuffix[c.Scope]
	var unclear error
	address := func(s string) string {
		name, pointer := strings.CutPrefix(s, "*")
		typ, err := cudaVolatile(before, cudaName.FindString(name))
		if err != nil {
			unclear = err
		}
		if !pointer {
			name = "&" + s
		}
		if typ != "" {
			name = "(" + typ + " *)" + name
		}
		return name
	}
	if sum, ok := strings.CutPrefix(right, left+" + "); ok && sign == "=" && !strings.ContainsAny(sum, "<>=&|^?,") { // no operator that binds less tightly
		sign, right = "+=", sum
	}
	if sign == "++" && right == "" {
		sign, right = "+=", "1"
	}
	switch {
	case !cudaPlace.MatchString(left) && (c.Store || sign != "="):
		return "", fmt.Errorf("what is assigned to is not simple")
	case sign == "+=" && c.Store:
		return fmt.Sprintf("%satomicAdd%s(%s, %s);%s", space, suffix, address(left), right, rest), unclear
	case sign != "=" || c.Load && !cudaPlace.MatchString(right):
		return "", fmt.Errorf("what is read is not simple")
	}
	if c.Load {
		right = fmt.Sprintf("atomicAdd%s(%s, 0)", suffix, address(right))
	}
	if c.Store {
		return fmt.Sprintf("%satomicExch%s(%s, %s);%s", space, suffix, address(left), right, rest), unclear
	}
	return fmt.Sprintf("%s%s = %s;%s", space, left, right, rest), unclear
}
