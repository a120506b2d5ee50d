package detect

import "testing"

// TestHostThreads checks that a race which only unseen order of host threads could exclude is a warning.
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

// TestStagedCopy checks that a copy which only the letter of the manual leaves unordered is a warning, and any other
// unordered host operation an error.
func TestStagedCopy(t *testing.T) {
	read, write := Side{Unit: 4}, Side{Write: true}
	if c := Classify(write, read, Relation{}); c != CrossLaunch || c.Severity() != Error || c.Kind() != InterKernel {
		t.Errorf("a host write: category %d, %s %s", c, c.Severity(), c.Kind())
	}
	write.Staged = true
	for _, c := range []Category{Classify(write, read, Relation{}), Classify(read, write, Relation{})} {
		if c != StagedCopy || c.Severity() != Warning || c.Kind() != InterKernel {
			t.Errorf("a staged copy: category %d, %s %s", c, c.Severity(), c.Kind())
		}
		if f := NewRace("x", &Facts{Category: c, Earlier: Access{Host: "cudaMemcpy"}}); f.Message == "" || f.Fix == "" {
			t.Error("a staged copy has no message")
		}
	}
}
