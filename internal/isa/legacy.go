package isa

import (
	"slices"
	"strings"

	"fencepost.dev/fencepost/ptx"
)

// era is a period of PTX, distinguished by the modifiers that instructions could omit.
type era int

const (
	today era = iota
	early     // ISA 2.0 to 3.1
	first     // ISA 1.0 to 1.3, and targets sm_1x
)

// implied are the modifiers that are assumed if none are given ("Floating Point Instructions", the notes of each). The
// product of mad was not rounded on targets sm_1x. Here it is fused, as on the later devices that ran such programs.
var implied = [...]map[string]string{
	early: {"mad.f32": ".rn"},
	first: {
		"mad.f32": ".rn.ftz", "mad.f64": ".rn", "div.f32": ".approx.ftz", "div.f64": ".rn", "rcp.f32": ".approx.ftz", "rcp.f64": ".rn",
		"sqrt.f32": ".approx.ftz", "sqrt.f64": ".rn", "rsqrt.f32": ".approx.ftz", "rsqrt.f64": ".approx",
		"sin.f32": ".approx.ftz", "cos.f32": ".approx.ftz", "lg2.f32": ".approx.ftz", "ex2.f32": ".approx.ftz",
	},
}

// eraOf is the era of a module. NVIDIA's assembler accepts mad.f32 without rounding up to ISA 3.1.
func eraOf(m *ptx.Module) era {
	switch {
	case m.Version.Major == 1 && m.Version.Minor < 4,
		slices.ContainsFunc(m.Targets, func(t string) bool { return len(t) == len("sm_10") && strings.HasPrefix(t, "sm_1") }):
		return first
	case m.Version.Major == 2, m.Version.Major == 3 && m.Version.Minor < 2:
		return early
	}
	return today
}

// lastModifier is the last of some modifiers with its dot, "" if there is none.
func lastModifier(mods string) string { return mods[max(strings.LastIndexByte(mods, '.'), 0):] }

// withoutBank removes the bank of constant memory from the modifiers of ld: names distinguish the variables.
func withoutBank(mods string) string {
	head, rest, ok := strings.Cut(mods, "[")
	if _, tail, closed := strings.Cut(rest, "]"); ok && closed {
		return head + tail
	}
	return mods
}
