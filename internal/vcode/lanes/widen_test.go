package lanes

import (
	"math/rand/v2"
	"testing"
)

func TestWiden(t *testing.T) {
	gen := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var a V32
		for i := range a {
			a[i] = gen.Uint32() >> gen.UintN(32)
		}
		var got struct {
			before, d, after V64
		}
		var want V64
		for i := range want {
			got.d[i] = gen.Uint64()
		}
		ZExt64(&want, &a, ^uint32(0))
		if Widen(&got.d, &a); got.d != want || got.before != (V64{}) || got.after != (V64{}) {
			t.Fatalf("got %x, want %x", got, want)
		}
	}
}
