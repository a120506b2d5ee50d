package detect

import (
	"strings"
	"testing"
)

// TestHostThreads checks that a race which only invisible order of host threads could exclude is a warning.
func TestHostThreads(t *testing.T) {
	write, read, atomic := Side{Write: true}, Side{}, Side{Write: true, Atomic: true, RMW: true, Unit: 4}
	for _, other := range []Side{write, read, atomic} {
		c := Classify(write, other, Relation{Assumed: true})
		if c != HostThreads || c.Severity() != Warning || c.Kind() != InterKernel {
			t.Errorf("%+v: category %d, %s, %s", other, c, c.Severity(), c.Kind())
		}
	}
	if c := Classify(atomic, atomic, Relation{Assumed: true}); c != HostThreads {
		t.Errorf("atomic operations of one block: category %d", c)
	}
}

// TestStagedCopy checks that a copy which is unordered by the manual but not in practice is a warning, and any other
// unordered host operation an error.
func TestStagedCopy(t *testing.T) {
	read, write := Side{Unit: 4}, Side{Write: true}
	if c := Classify(write, read, Relation{}); c != CrossLaunch || c.Severity() != Error || c.Kind() != InterKernel {
		t.Errorf("a host write: category %d, %s %s", c, c.Severity(), c.Kind())
	}
	write.Staged = true
	c := Classify(write, read, Relation{})
	if c != StagedCopy || c.Severity() != Warning || c.Kind() != InterKernel {
		t.Errorf("a staged copy: category %d, %s %s", c, c.Severity(), c.Kind())
	}
	if f := NewRace("x", &Facts{Category: c, Earlier: Access{Host: "cudaMemcpy"}}); f.Message == "" || f.Fix == "" {
		t.Error("a staged copy has no message")
	}
	for later, want := range map[string]string{"": "the kernel's stream does not wait", "host code": "the host does not wait", "cudaMemsetAsync (stream 2)": "the other stream does not wait"} {
		if f := NewRace("x", &Facts{Category: c, Earlier: Access{Host: "cudaMemcpy"}, Later: Access{Host: later}}); !strings.Contains(f.Message, want) {
			t.Errorf("before %q: %s", later, f.Message)
		}
	}
	if c := Classify(read, write, Relation{}); c != CrossLaunch {
		t.Errorf("a staged copy after what it does not wait for: category %d", c)
	}
}

// TestOtherDevice checks that two atomic operations on different devices are morally strong only at system scope.
func TestOtherDevice(t *testing.T) {
	side := func(wide, system bool) Side {
		return Side{Write: true, Atomic: true, RMW: true, Wide: wide, System: system, Unit: 4}
	}
	device, system, block := side(true, false), side(true, true), side(false, false)
	other := Relation{OtherDevice: true}
	for _, c := range []struct {
		a, b Side
		r    Relation
		want Category
	}{
		{device, device, Relation{}, NoRace},
		{device, device, other, ScopeRace},
		{device, system, other, ScopeRace},
		{system, block, other, ScopeRace},
		{system, system, other, NoRace},
		{device, device, Relation{OtherDevice: true, Assumed: true}, HostThreads},
		{system, Side{Write: true, Unit: 4}, other, CrossDevice},
		{system, Side{Write: true, Atomic: true, Wide: true, System: true, Unit: 8}, other, CrossDevice},
	} {
		if got, back := Classify(c.a, c.b, c.r), Classify(c.b, c.a, c.r); got != c.want || back != c.want {
			t.Errorf("%+v, %+v, %+v: categories %d and %d, want %d", c.a, c.b, c.r, got, back, c.want)
		}
	}
}

// TestVolatileLaunches checks that volatile accesses by a kernel and by kernels that its threads launch are judged like
// those of one kernel.
func TestVolatileLaunches(t *testing.T) {
	read, write, add := Side{Volatile: true}, Side{Volatile: true, Write: true}, Side{Write: true, Atomic: true, RMW: true, Wide: true, Unit: 4}
	for _, c := range []struct {
		a, b Side
		r    Relation
		want Category
	}{
		{read, write, Relation{Nested: true}, VolatileRace},
		{read, add, Relation{Nested: true}, VolatileRace},
		{read, add, Relation{}, CrossLaunch},
		{write, Side{}, Relation{Nested: true}, CrossLaunch},
		{read, add, Relation{Nested: true, OtherDevice: true}, CrossDevice},
		{read, add, Relation{Nested: true, Assumed: true}, HostThreads},
	} {
		if got, back := Classify(c.a, c.b, c.r), Classify(c.b, c.a, c.r); got != c.want || back != c.want {
			t.Errorf("%+v, %+v, %+v: categories %d and %d, want %d", c.a, c.b, c.r, got, back, c.want)
		}
	}
}
