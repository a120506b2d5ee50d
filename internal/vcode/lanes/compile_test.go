//go:build amd64 || arm64

package lanes

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// grouped reports whether an operation is compiled into groups.
func grouped(c Code) bool {
	t := &translator{}
	return vectorCode[c] != nil || t.isScalar(c) || t.isLoad(c)
}

// TestCodeLayout checks the layouts that compiled code relies on.
func TestCodeLayout(t *testing.T) {
	var x Regs
	var a Access
	var l Log
	if unsafe.Offsetof(x.Reach) != reachAt || unsafe.Offsetof(x.Steps) != stepsAt || unsafe.Offsetof(x.Limit) != limitAt || unsafe.Offsetof(x.Marks) != marksAt ||
		unsafe.Offsetof(x.V32) != 0 || unsafe.Offsetof(x.V64) != 8 || unsafe.Offsetof(x.Preds) != 16 || unsafe.Offsetof(x.Scalars) != 24 ||
		unsafe.Offsetof(x.lanes32) != lanes32At || unsafe.Offsetof(x.lanes64) != lanes64At {
		t.Error("compiled code has another layout of Regs")
	}
	if unsafe.Offsetof(x.Log) != logAt || unsafe.Offsetof(a.Told) != toldAt || unsafe.Offsetof(l.N) != 0 || headSize != 1<<4 {
		t.Error("compiled code has another layout of what accesses note")
	}
	if unsafe.Offsetof(a.Origin) != originAt || unsafe.Offsetof(a.Room) != roomAt || unsafe.Offsetof(a.Base) != baseAt || unsafe.Offsetof(a.Row) != rowAt ||
		unsafe.Offsetof(a.Last) != lastAt {
		t.Error("compiled code has another layout of Access")
	}
}

// TestPossible checks that every ARM under Linux has machine code, so that its tests are not skipped there.
func TestPossible(t *testing.T) {
	if runtime.GOOS == "linux" && runtime.GOARCH == "arm64" && possible != Compiling {
		t.Errorf("the best tier is %s", possible)
	}
}

// TestLeftToGo lists the operations without machine code.
func TestLeftToGo(t *testing.T) {
	want := map[string]string{"amd64": "Clz32 Clz64 F32toS64Z F32toU64Z F64toS64Z F64toU32Z F64toU64Z S64toF32 S64toF64 U64toF32 U64toF64", "arm64": ""}
	for _, masked := range []bool{false, true} {
		var names []string
		for c := Code(1); c < OpGoto; c++ {
			if (&translator{masked: masked}).translates(&Op{Code: c}) {
				continue
			}
			names = append(names, generated[c-1].name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != want[runtime.GOARCH] {
			t.Errorf("%d operations are left to Go code: %s; want %s", len(names), got, want[runtime.GOARCH])
		}
	}
}
