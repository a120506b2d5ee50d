package history

import (
	"fmt"
	"os"
)

var dbg struct{ step, hit, within, miss, split, lanes, strange, lists int }

func (h *Fast) Debug() {
	fmt.Fprintf(os.Stderr, "%+v histories %d kinds %d shapes %d stamps %d lists %d words %d cold %d\n", dbg, len(h.histories), len(h.kinds), len(h.shapes), len(h.stamps), len(h.lists), len(h.words), len(h.cold.list))
	dbg.step = 0
}
