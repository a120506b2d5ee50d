//go:build amd64

package lanes

import (
	"testing"
	"unsafe"
)

// grouped reports whether an operation is compiled into groups.
func grouped(c Code) bool {
	t := &translator{}
	return vectorCode[c] != nil || t.isScalar(c) || t.isLoad(c)
}

// TestCodeLayout holds the layouts that compiled code knows.
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
