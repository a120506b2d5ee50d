package repair

import (
	"fmt"
	"slices"
	"strings"

	"fencepost.dev/fencepost/internal/verify/model"
)

// ptxOrders and ptxScopes are the names of orders and scopes in PTX (PTX manual, "Operation types" and "Scope").
var (
	ptxOrders = map[string]model.Order{"weak": model.NA, "volatile": model.NA, "relaxed": model.Relaxed, "acquire": model.Acquire,
		"release": model.Release, "acq_rel": model.AcqRel, "sc": model.SC}
	ptxScopes  = map[string]model.Scope{"cta": model.CTA, "cluster": model.Cluster, "gpu": model.GPU, "sys": model.Sys}
	OrderNames = map[model.Order]string{model.Relaxed: "relaxed", model.Acquire: "acquire", model.Release: "release",
		model.AcqRel: "acq_rel", model.SC: "sc"}
	membars = map[string]model.Scope{"cta": model.CTA, "gl": model.GPU, "sys": model.Sys}
)

// Opcode changes the order and scope of a PTX instruction given by its parts, for example "ld", "global", "u32". The
// error says why the instruction has no such form.
func Opcode(parts []string, c Change) (string, error) {
	op := parts[0]
	if op == "membar" {
		for _, name := range []string{"cta", "gl", "sys"} {
			if scope := membars[name]; scope >= max(c.Scope, membars[parts[1]]) {
				return "membar." + name, nil
			}
		}
	}
	possible := map[string][]model.Order{"ld": {model.Relaxed, model.Acquire}, "st": {model.Relaxed, model.Release},
		"atom": {model.Relaxed, model.Acquire, model.Release, model.AcqRel}, "red": {model.Relaxed, model.Release},
		"fence": {model.AcqRel, model.SC}}[op]
	order, scope := model.NA, model.Thread
	if op == "atom" || op == "red" {
		order, scope = model.Relaxed, model.GPU
	}
	if op == "fence" {
		order = model.AcqRel
	}
	var rest []string
	for _, m := range parts[1:] {
		switch {
		case m == "nc" || m == "v2" || m == "v4" || m == "v8":
			return "", fmt.Errorf("%s cannot be atomic", strings.Join(parts, "."))
		case m == "volatile" || m == "weak":
		case slices.Contains([]string{"relaxed", "acquire", "release", "acq_rel", "sc"}, m):
			order = ptxOrders[m]
		case ptxScopes[m] != model.Thread:
			scope = ptxScopes[m]
		default:
			rest = append(rest, m)
		}
	}
	order, scope = Join(order, c.Order), max(scope, c.Scope)
	if order.Atomic() && scope == model.Thread {
		scope = model.Sys // the default scope of a litmus test
	}
	if !slices.Contains(possible, order) {
		return "", fmt.Errorf("%s has no order %s", op, order)
	}
	return strings.Join(append([]string{op, OrderNames[order], scope.String()}, rest...), "."), nil
}
