package lanes

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"fencepost.dev/fencepost/internal/codegen"
)

// Tier is a way in which this package executes lists.
type Tier uint32

// The tiers, the slowest first.
const (
	Interpreted Tier = iota // Go code
	Compiling               // machine code, made at run time, for lists that are executed often, and Go code for others
)

var tierNames = [...]string{"interpret", "compiled"}

func (t Tier) String() string { return tierNames[t] }

// TierVariable is the environment variable that names the tier to use in place of the best one.
const TierVariable = "FENCEPOST_TIER"

// possible is the best tier of this processor and system, current the one in use, and errTier the error in
// TierVariable.
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

// Best returns the tier in use.
func Best() Tier { return Tier(current.Load()) }

// TierError returns an error if TierVariable names no tier, or one that this machine does not have. The best tier is in
// use then.
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
