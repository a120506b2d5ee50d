package isa

import (
	"slices"
	"strings"

	"fencepost.dev/fencepost/ptx"
)

// legacyModifiers are the modifiers that PTX ISA 1.0 to 1.3 took for granted where none stand ("Floating Point
// Instructions", the notes of each), and those of mad on targets sm_1x, whose product was not rounded: as for the
// later devices that ran such programs it is fused here.
var legacyModifiers = map[string]string{
	"mad.f32": ".rn.ftz", "mad.f64": ".rn", "div.f32": ".approx.ftz", "div.f64": ".rn", "rcp.f32": ".approx.ftz", "rcp.f64": ".rn",
	"sqrt.f32": ".approx.ftz", "sqrt.f64": ".rn", "rsqrt.f32": ".approx.ftz", "rsqrt.f64": ".approx",
	"sin.f32": ".approx.ftz", "cos.f32": ".approx.ftz", "lg2.f32": ".approx.ftz", "ex2.f32": ".approx.ftz",
}

// legacy says that a module is of the first versions or for the first devices.
func legacy(m *ptx.Module) bool {
	return m.Version.Major == 1 && m.Version.Minor < 4 ||
		slices.ContainsFunc(m.Targets, func(t string) bool { return len(t) == len("sm_10") && strings.HasPrefix(t, "sm_1") })
}

// lastModifier is the last of some modifiers with its dot, "" when there is none.
func lastModifier(mods string) string { return mods[max(strings.LastIndexByte(mods, '.'), 0):] }

// withoutBank leaves the bank of constant memory out of the modifiers of ld: names tell the variables apart.
func withoutBank(mods string) string {
	head, rest, ok := strings.Cut(mods, "[")
	if _, tail, closed := strings.Cut(rest, "]"); ok && closed {
		return head + tail
	}
	return mods
}
