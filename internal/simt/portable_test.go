package simt

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/lanes"
)

// portableTests run without the assembly of package lanes too, from NoSpin on in long runs only.
const portableTests = "Lists|ListedStores|VectorValues|Shapes|AtomicsNoDiff|NoSpin|Again|ShufflesNoDiff"

// TestWithoutAssembly runs tests of this binary as on a processor without AVX2, where package lanes is Go code: it may end a
// list of operations elsewhere.
func TestWithoutAssembly(t *testing.T) {
	const off = "cpu.avx2=off"
	if strings.Contains(os.Getenv("GODEBUG"), off) {
		if lanes.Best() != lanes.Interpreted {
			t.Error("the assembly is used")
		}
		return
	}
	if lanes.Best() == lanes.Interpreted {
		t.Skip("all tests run so")
	}
	names := portableTests
	if testing.Short() {
		names, _, _ = strings.Cut(names, "|NoSpin")
	}
	cmd := exec.Command(os.Args[0], "-test.short", "-test.run=^Test(WithoutAssembly|"+names+")$")
	cmd.Env = append(os.Environ(), "GODEBUG="+off)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
