package isa

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fencepost.dev/fencepost/ptx"
)

// newest is the newest version of the PTX ISA from which the table was written.
var newest = ptx.Version{Major: 9, Minor: 5}

// targets are the devices that the PTX manual names ("Directives: .target"), without the suffix for features of one
// architecture or family.
var targets = []int{10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89,
	90, 100, 101, 103, 110, 120, 121}

// platform are the words of .target that are not devices.
var platform = []string{"debug", "map_f64_to_f32", "texmode_unified", "texmode_independent"}

// Unknown names what Fencepost does not know in the header of a module: a version of the ISA, or a target. It returns
// "" if it knows everything. Instructions are judged one by one all the same: those in the table keep their meaning.
func Unknown(m *ptx.Module) string {
	var what []string
	if v := m.Version; v.Major > newest.Major || v.Major == newest.Major && v.Minor > newest.Minor || v.Major < 1 {
		what = append(what, fmt.Sprintf("version %d.%d of the PTX ISA (1.0 to %d.%d are known)", v.Major, v.Minor, newest.Major, newest.Minor))
	}
	for _, t := range m.Targets {
		if !knownTarget(t) {
			what = append(what, "target "+t)
		}
	}
	return strings.Join(what, " and ")
}

func knownTarget(t string) bool {
	if slices.Contains(platform, t) {
		return true
	}
	rest, ok := strings.CutPrefix(t, "sm_")
	if !ok {
		if rest, ok = strings.CutPrefix(t, "compute_"); !ok {
			return false
		}
	}
	number := strings.TrimRight(rest, "af")
	n, err := strconv.Atoi(number)
	known := err == nil && slices.Contains(targets, n) && number == strconv.Itoa(n)
	return known && (rest == number || n >= 90 && len(rest) == len(number)+1)
}
