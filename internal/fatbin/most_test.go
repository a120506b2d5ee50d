package fatbin

import (
	"os"
	"testing"
)

// TestMaxPTX checks that the maximum size of a module is what the smallest of the machine's memories has room for.
func TestMaxPTX(t *testing.T) {
	const meminfo, group = "/proc/meminfo", "/sys/fs/cgroup/memory.max"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"nothing is known", nil, 128 << 20},
		{"64 GiB", map[string]string{meminfo: "MemTotal:       67108864 kB\nMemFree: 1 kB\n", group: "max\n"}, 128 << 20},
		{"4.5 GiB", map[string]string{meminfo: "MemTotal:       4718592 kB\nMemFree: 1 kB\n"}, 64 << 20},
		{"a group of 2.25 GiB", map[string]string{meminfo: "MemTotal: 67108864 kB\n", group: "2415919104\n"}, 32 << 20},
		{"damaged", map[string]string{meminfo: "MemTotal:", group: ""}, 128 << 20},
		{"zero", map[string]string{meminfo: "MemTotal: 0 kB", group: "-1"}, 128 << 20},
	} {
		got := maxPTX(func(name string) ([]byte, error) {
			text, ok := c.files[name]
			if !ok {
				return nil, os.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
