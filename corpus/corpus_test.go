package corpus

import "testing"

func TestAll(t *testing.T) {
	programs, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) < 44 {
		t.Skipf("%d programs so far", len(programs))
	}
}
