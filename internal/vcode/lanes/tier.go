package lanes

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/codegen"
)

// Tier is a way in which this package does lists.
type Tier uint32

// The tiers, the slowest first.
const (
	Interpreted Tier = iota // Go code
	Compiling               // lists that are done often as machine code that is made at run time; others by Go code
)

var tierNames = [...]string{"interpret", "compiled"}

func (t Tier) String() string { return tierNames[t] }

// TierVariable is the environment variable that names the tier to use in place of the best one.
const TierVariable = "FENCEPOST_TIER"

// possible is the best tier of this processor and system, current the one in use, and errTier what is wrong with TierVariable.
var (
	possible = func() Tier {
		if !capable || !codegen.Supported {
			return Interpreted
		}
		return Compiling
	}()
	current atomic.Uint32
	errTier = chooseTier(os.Getenv(TierVariable))
)

// Best gives the tier in use.
func Best() Tier { return Tier(current.Load()) }

// TierError says that TierVariable names no tier, or one that this machine does not have; the best is in use then.
func TierError() error { return errTier }

func chooseTier(name string) error {
	current.Store(uint32(possible))
	if name == "" {
		return nil
	}
	for t, n := range tierNames {
		if n != name {
			continue
		}
		if Tier(t) > possible {
			return fmt.Errorf("%s is %q, but the best tier of this machine is %q", TierVariable, name, possible)
		}
		current.Store(uint32(t))
		return nil
	}
	return fmt.Errorf("%s is %q; the tiers are %s", TierVariable, name, strings.Join(tierNames[:], ", "))
}
