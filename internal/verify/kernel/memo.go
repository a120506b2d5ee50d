package kernel

import "sync/atomic"

// list is a list that only grows. One goroutine at a time adds, and any goroutine reads what has been added.
type list[T any] struct{ all atomic.Pointer[[]*T] }

func (l *list[T]) len() int {
	if all := l.all.Load(); all != nil {
		return len(*all)
	}
	return 0
}

func (l *list[T]) at(i int32) *T { return (*l.all.Load())[i] }

func (l *list[T]) add(v *T) {
	var all []*T
	if old := l.all.Load(); old != nil {
		all = *old
	}
	all = append(all, v) // after the elements that readers of the old list see
	l.all.Store(&all)
}

// hop is the result of resuming a state with a value.
type hop struct {
	value   int64
	state   int32
	back    bool         // control has jumped backwards
	attempt atomic.Int32 // see attempts.go
}

// hops are the hops of a state: a hash table by value with open addressing, which is replaced by a larger one before it
// is full. One goroutine at a time adds, and any goroutine looks up.
type hops struct {
	table atomic.Pointer[[]atomic.Pointer[hop]]
	n     int
}

// slot is the slot at which the search for a value begins.
func slot(value int64) int { return int(uint64(value) * 0x9e3779b97f4a7c15 >> 32) }

func (h *hops) find(value int64) *hop {
	table := h.table.Load()
	if table == nil {
		return nil
	}
	for i := slot(value); ; i++ {
		if p := (*table)[i&(len(*table)-1)].Load(); p == nil || p.value == value {
			return p
		}
	}
}

// add adds a hop with a new value.
func (h *hops) add(p *hop) {
	table := h.table.Load()
	if h.n++; table == nil || 2*h.n > len(*table) {
		size := 4 // a power of two
		if table != nil {
			size = 2 * len(*table)
		}
		larger := make([]atomic.Pointer[hop], size)
		if table != nil {
			for i := range *table {
				if old := (*table)[i].Load(); old != nil {
					insert(larger, old)
				}
			}
		}
		insert(larger, p)
		h.table.Store(&larger)
		return
	}
	insert(*table, p)
}

func insert(table []atomic.Pointer[hop], p *hop) {
	i := slot(p.value)
	for table[i&(len(table)-1)].Load() != nil {
		i++
	}
	table[i&(len(table)-1)].Store(p)
}
