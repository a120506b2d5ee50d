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
		unsafe.Offsetof(x.keep32) != keep32At || unsafe.Offsetof(x.keep64) != keep64At || unsafe.Offsetof(x.checked) != checkedAt {
		t.Error("compiled code has another layout of Regs")
	}
	if unsafe.Offsetof(x.Log) != logAt || unsafe.Offsetof(x.checked) != checkedAt || unsafe.Offsetof(a.Told) != toldAt || unsafe.Offsetof(l.N) != 0 || headSize != 1<<4 {
		t.Error("compiled code has another layout of what accesses note")
	}
	if unsafe.Offsetof(a.Origin) != originAt || unsafe.Offsetof(a.Room) != roomAt || unsafe.Offsetof(a.Base) != baseAt || unsafe.Offsetof(a.Row) != rowAt ||
		unsafe.Offsetof(a.Last) != lastAt {
		t.Error("compiled code has another layout of Access")
	}
}
