package hirace

import "testing"

func TestDiff(t *testing.T) {
	m, all := derive(), meanings()
	n := 0
	for s, row := range published {
		for i := range 48 {
			a, y, r := action(i/12), synced(i/4%3), relation(i%4)
			want := state(row[i+int(a)] - 'a')
			if got := m.at(state(s), labelOf(a, y, r)).state(); got != want {
				t.Log(all[s].name, a, y, r, "derived", all[got].name, "published", all[want].name)
				n++
			}
		}
	}
	t.Log(n)
}
