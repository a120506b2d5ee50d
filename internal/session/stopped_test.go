package session

import (
	"context"
	"strings"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/detect"
)

// TestWhereabouts checks that a run ended by --timeout reports where its threads were, so that an endless loop is
// found.
func TestWhereabouts(t *testing.T) {
	r := mustCheck(t, &Options{Timeout: 200 * time.Millisecond}, "kernel = \"spin\"\ngrid = 2\nblock = 33")
	requireSkipped(t, r, "launch 1 of spin: stopped: the --timeout has passed; it had 66 threads at k.ptx:")
}

// TestWhereaboutsOfPhases checks threads that query the active lanes. It is unknown whether they wait forever, but what
// they wait for is reported.
func TestWhereaboutsOfPhases(t *testing.T) {
	const text = `.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {
	.reg .pred %done, %first; .reg .b32 %t; .shared .b64 bar;
	mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0;
	@%first mbarrier.init.shared.b64 [bar], 3; bar.sync 0;
	@%first mbarrier.arrive.shared.b64 _, [bar];
again: activemask.b32 %t;
	mbarrier.try_wait.parity.shared.b64 %done, [bar], 0; @!%done bra again;
	ret;
}
`
	l, err := ReadLaunchFile("l.toml", []byte("grid = 1\nblock = 64\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Check(context.Background(), &Options{FailOn: detect.Error, Jobs: 1, Timeout: 200 * time.Millisecond}, &Input{Images: []cuda.Image{{Name: "k.ptx", Text: text}}, Launch: l})
	if err != nil {
		t.Fatal(err)
	}
	requireSkipped(t, r, "launch 1 of k: stopped: the --timeout has passed; it had 64 threads at k.ptx:")
	if got := r.Skipped[0].Reason; !strings.HasSuffix(got, "; phase 0 (parity 0) of the mbarrier bar lacks 2 of 3 arrivals") {
		t.Errorf("%q", got)
	}
}
