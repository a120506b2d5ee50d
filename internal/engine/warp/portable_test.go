package warp

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
	"fencepost.dev/fencepost/internal/vcode/lanes"
)

// tierTests run on the lower tiers of package lanes too; the tests from NoSpin on only in long mode.
const tierTests = "Lists|ListedStores|ListedBytes|VectorValues|Shapes|AtomicsNoDiff|NoSpin|Again|ShufflesNoDiff|InStep"

// TestTiers runs tests of this binary like on a processor without machine code, where package lanes is Go code, and
// like on a system without memory for machine code. A list of operations may then end elsewhere.
func TestTiers(t *testing.T) {
	if forced := os.Getenv(lanes.TierVariable); forced != "" {
		if got := lanes.Best().String(); got != forced {
			t.Errorf("%s is used, not %s", got, forced)
		}
		return
	}
	names := tierTests
	if !testsize.Long() {
		names, _, _ = strings.Cut(names, "|NoSpin")
	}
	for tier := range lanes.Best() {
		t.Run(tier.String(), func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.short", "-test.run=^Test(Tiers|"+names+")$")
			cmd.Env = append(os.Environ(), lanes.TierVariable+"="+tier.String())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
