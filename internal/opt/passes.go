package opt

import "fmt"

// Pass is one transformation.
type Pass struct {
	Name string
	Doc  string
	// Run changes f in place and reports whether it did.
	Run func(f *Func) bool
}

// Passes are the transformations in the order of a round.
func Passes() []Pass {
	return []Pass{
		{"fold", "constants are computed, and what is known of the launch's shape is a constant", Fold},
		{"algebra", "algebraic identities and strength reduction; constant offsets move into addresses", Algebra},
		{"cleanup", "branches on constants, empty blocks, blocks in a row", Cleanup},
		{"spaces", "generic addresses that can only be shared, local or global lose their tag", Spaces},
		{"promote", "local memory whose address never escapes becomes values", Promote},
		{"cse", "equal pure computations are shared where one dominates the other", CSE},
		{"dce", "pure computations nobody uses are removed", DCE},
		{"licm", "pure computations that do not change in a loop move before it", LICM},
		{"unroll", "loops whose number of turns is known are written out", Unroll},
	}
}

// maxRounds bounds the runs of the list. Three runs reach the fixed point on all but contrived input.
const maxRounds = 4

// Optimise runs the passes until nothing changes, orders the blocks and analyses shapes. It calls check, if that is not
// nil, after each pass (tests verify the function there).
func Optimise(f *Func, check func(pass string, f *Func)) {
	fixpoint(f, Passes(), check)
	Order(f)
	AnalyseShapes(f)
	if check != nil {
		check("order", f)
	}
}

// fixpoint runs the list again and again, until each pass has changed nothing since it last ran, at most maxRounds
// times.
func fixpoint(f *Func, list []Pass, check func(pass string, f *Func)) {
	idle := 0
	for i := range maxRounds * len(list) {
		p := list[i%len(list)]
		if idle++; p.Run(f) {
			idle = 0
		}
		if check != nil {
			check(fmt.Sprintf("%s, round %d", p.Name, i/len(list)), f)
		}
		if idle == len(list) {
			return
		}
	}
}
