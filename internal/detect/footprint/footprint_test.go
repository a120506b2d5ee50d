package footprint

import "testing"

type node struct {
	next *node
	_    [4]uint64
}

type mixed struct {
	name  string
	by    map[uint32]*node
	plain map[uint32]uint64
	list  []node
	any   any
	call  func()
}

func TestBytes(t *testing.T) {
	ring := &node{}
	ring.next = &node{next: ring}
	shared := &node{}
	buffer := make([]uint64, 3, 8)
	for _, c := range []struct {
		name  string
		roots []any
		want  uint64
	}{
		{"nothing", nil, 0},
		{"a nil pointer", []any{(*node)(nil)}, 0},
		{"a ring", []any{ring}, 2 * 40},
		{"twice the same", []any{shared, shared}, 40},
		{"a slice has its capacity", []any{&buffer}, 24 + 64},
		{"two slices of one array", []any{&[2][]uint64{buffer, buffer[:1]}}, 48 + 64},
		{"a map to pointers, some the same", []any{&mixed{by: map[uint32]*node{1: shared, 2: shared, 3: ring}}}, 80 + 3*12 + 40 + 80},
		{"a map of numbers", []any{&mixed{plain: map[uint32]uint64{1: 2}}}, 80 + 12},
		{"structs in a slice", []any{&mixed{list: []node{{next: shared}, {}}}}, 80 + 2*40 + 40},
		{"a string, an interface and a function", []any{&mixed{name: "four", any: shared, call: func() {}}}, 80 + 4 + 40},
		{"a struct and its first field", []any{&struct{ n node }{node{next: shared}}}, 40 + 40},
	} {
		if got := Bytes(c.roots...); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}
