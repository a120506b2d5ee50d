package litmus

import (
	"reflect"

	"fencepost.dev/fencepost/internal/verify/model"
)

// Symmetric returns for each thread the preceding one in its class of symmetric threads, or -1: see explore.Options.
// Threads of a kernel are symmetric if they execute the same instructions with the same constants, if every other
// thread has the same distance from both, and if neither condition nor filter mentions their variables.
func (t *Test) Symmetric() []int {
	named := map[int]bool{}
	for _, f := range t.Observed() {
		f.registers(func(thread int, _ int32) { named[thread] = true })
	}
	before := make([]int, len(t.Threads))
	var last []int // by class
	for i := range t.Threads {
		before[i] = -1
		if named[i] {
			continue
		}
		found := false
		for c, j := range last {
			if t.symmetric(j, i) {
				before[i], last[c], found = j, i, true
				break
			}
		}
		if !found {
			last = append(last, i)
		}
	}
	return before
}

func (t *Test) symmetric(i, j int) bool {
	a, b := &t.Threads[i], &t.Threads[j]
	for k := range t.Threads {
		if k != i && k != j && model.Need(a.Place, t.Threads[k].Place) != model.Need(b.Place, t.Threads[k].Place) {
			return false
		}
	}
	// The places of instructions are compared too: errors in other places are different errors.
	return reflect.DeepEqual(a.code, b.code) && reflect.DeepEqual(a.init, b.init)
}
