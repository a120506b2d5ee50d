// Package irregular contains kernels that walk graphs, like those of the Indigo suite by which HiRace was evaluated
// (HiRace, section V): six patterns, each for threads, warps and blocks and for two types of data, without a bug and
// with planted bugs. The accesses of a kernel depend on its graph, and so does whether a bug shows: a kernel by itself
// is neither racy nor correct.
//
// A pattern is one source, NAME.cu, a template in which each line KERNELS(...) makes two kernels; graph.cuh contains
// the code that patterns share. NAME.ptx is what nvcc makes of it ("go generate ./corpus"). The package does not depend
// on detectors; internal/session runs kernels on graphs and judges.
package irregular

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// The pattern matches .cu, .cuh and .ptx, and does not fail if the .ptx have not been made yet.
//
//go:embed *.[cp][ut]*
var files embed.FS

// Kernel is a kernel of the suite.
type Kernel struct {
	Pattern string // "push"
	Type    string // of the data: "int", "float", "long long"
	Unit    string // the unit that works on a vertex: "thread", "warp" or "block"
	Bugs    []string
	pattern *pattern
}

// pattern is a source and its PTX.
type pattern struct {
	source string
	parts  []string // of the PTX: those with odd index are kernels
}

var (
	instances = regexp.MustCompile(`(?m)^KERNELS\((\w+), (\w[\w ]*), (\w[\w ]*), (thread|warp|block), ([a-z |]+)\)$`)
	bugNames  = []string{"atomic", "guard", "sync", "reuse", "bounds", "leader", "inplace"} // by bit, as in graph.cuh
	unitNames = []string{"thread", "warp", "block"}
	entries   = regexp.MustCompile(`(?ms)^(?:\t// \.weak[^\n]*\n)?(?:\.visible |\.weak )\.entry .*?^}$`)
)

// Kernels returns every kernel, by pattern, type, unit, and in the order of its source. The error names an invalid
// file.
func Kernels() ([]*Kernel, error) {
	sources, err := fs.Glob(files, "*.cu")
	if err != nil {
		return nil, err
	}
	var out []*Kernel
	for _, file := range sources {
		ks, err := load(strings.TrimSuffix(file, ".cu"))
		if err != nil {
			return nil, err
		}
		out = append(out, ks...)
	}
	return out, nil
}

func load(name string) ([]*Kernel, error) {
	source, err := files.ReadFile(name + ".cu")
	if err != nil {
		return nil, err
	}
	ptx, err := files.ReadFile(name + ".ptx")
	if err != nil {
		return nil, err
	}
	p := &pattern{string(source), parts(string(ptx))}
	var lists [2][]*Kernel
	for _, m := range instances.FindAllStringSubmatch(p.source, -1) {
		if m[1] != name {
			return nil, fmt.Errorf("%s.cu: a kernel of pattern %s", name, m[1])
		}
		var bugs []string
		for _, b := range strings.Split(m[5], " | ") {
			switch {
			case slices.Contains(bugNames, b):
				bugs = append(bugs, b)
			case b != "none":
				return nil, fmt.Errorf("%s.cu: no bug is called %q", name, b)
			}
		}
		for i := range lists {
			lists[i] = append(lists[i], &Kernel{name, m[2+i], m[4], bugs, p})
		}
	}
	out := slices.Concat(lists[:]...)
	if made := len(p.parts) / 2; made != len(out) {
		return nil, fmt.Errorf("%s.ptx has %d kernels, %s.cu asks for %d", name, made, name, len(out))
	}
	return out, nil
}

// parts splits PTX into its kernels and the text between them.
func parts(ptx string) (out []string) {
	from := 0
	for _, at := range entries.FindAllStringIndex(ptx, -1) {
		out = append(out, ptx[from:at[0]], ptx[at[0]:at[1]])
		from = at[1]
	}
	return append(out, ptx[from:])
}

// Name is "push/int/block/atomic+sync"; a kernel without a bug is called "push/int/block/none".
func (k *Kernel) Name() string {
	return strings.Join([]string{k.Pattern, strings.ReplaceAll(k.Type, " ", "-"), k.Unit, k.Planted()}, "/")
}

// Planted names the kernel's bugs: "atomic+sync", "none".
func (k *Kernel) Planted() string {
	if len(k.Bugs) == 0 {
		return "none"
	}
	return strings.Join(k.Bugs, "+")
}

// Has reports whether a bug is planted in the kernel.
func (k *Kernel) Has(bug string) bool { return slices.Contains(k.Bugs, bug) }

// Call is the kernel's demangled name without parameters: "push<int, 2, 5>".
func (k *Kernel) Call() string {
	bugs := 0
	for _, b := range k.Bugs {
		bugs |= 1 << slices.Index(bugNames, b)
	}
	return fmt.Sprintf("%s<%s, %d, %d>", k.Pattern, k.Type, slices.Index(unitNames, k.Unit), bugs)
}

// linkerTypes maps types to their spelling in linker names.
var linkerTypes = map[string]string{"int": "i", "float": "f", "long long": "x"}

// symbol is the prefix of the kernel's linker name.
func (k *Kernel) symbol() string {
	call := k.Call()
	args := strings.Split(strings.TrimSuffix(call[strings.Index(call, "<")+1:], ">"), ", ")
	return fmt.Sprintf("_Z%d%sI%sLi%sELi%sEEv", len(k.Pattern), k.Pattern, linkerTypes[k.Type], args[1], args[2])
}

// PTX is the PTX of the kernel's pattern, in which the other kernels are replaced by empty lines.
func (k *Kernel) PTX() string {
	var b strings.Builder
	for i, part := range k.pattern.parts {
		if i%2 == 1 && !strings.Contains(part, ".entry "+k.symbol()) {
			part = strings.Repeat("\n", strings.Count(part, "\n"))
		}
		b.WriteString(part)
	}
	return b.String()
}

// Files are the sources that the kernels' PTX names, with their text.
func Files() map[string]string {
	out := map[string]string{}
	for _, glob := range []string{"*.cu", "*.cuh"} {
		names, err := fs.Glob(files, glob)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		for _, name := range names {
			text, err := files.ReadFile(name)
			if err != nil {
				panic("BUG: " + err.Error())
			}
			out[name] = string(text)
		}
	}
	return out
}
