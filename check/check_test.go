package check_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"fencepost.dev/fencepost/check"
)

func kernels(ptx, launch string, o *check.Options) (*check.Report, error) {
	return check.Kernels(context.Background(), []check.Module{{Name: "bump.ptx", PTX: ptx}}, check.Launch{Name: "bump.toml", TOML: []byte(launch)}, o)
}

// TestErrors checks that the errors of runs that are not possible have a reason.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		ptx, launch string
		o           check.Options
		want        string
	}{
		{bump, launch, check.Options{Model: "cdua"}, `unknown model "cdua"`},
		{bump, launch, check.Options{FailOn: "eror"}, `unknown severity "eror"`},
		{bump, launch, check.Options{Detectors: []string{"bh"}}, `"bh"`},
		{"nonsense", launch, check.Options{}, "bump.ptx"},
		{bump, "gird = 2", check.Options{}, "bump.toml:1:1"},
	} {
		if _, err := kernels(c.ptx, c.launch, &c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// TestVerdicts compares verdicts, and the formats with each other.
func TestVerdicts(t *testing.T) {
	one := strings.Replace(launch, "grid = 2", "grid = 1", 1)
	r, err := kernels(bump, one, nil)
	if err != nil || r.Verdict != check.Clean || len(r.Findings) > 0 {
		t.Errorf("one thread: %+v, %v", r, err)
	}
	same := strings.Replace(strings.Replace(bump, "  ld.global.u32 %r1, [%rd1];\n", "", 1), "add.u32 %r2, %r1, 1", "mov.u32 %r2, 1", 1)
	for failOn, want := range map[check.Severity]check.Verdict{"": check.Clean, check.Error: check.Clean, check.Warning: check.Failed} {
		if r, err = kernels(same, launch, &check.Options{FailOn: failOn}); err != nil || r.Verdict != want || len(r.Findings) != 1 || r.Findings[0].Severity != check.Warning {
			t.Errorf("same value, %q: %+v, %v", failOn, r, err)
		}
	}
	strange := strings.Replace(bump, "add.u32", "frobnicate.u32", 1)
	if r, err = kernels(strange, launch, nil); err == nil && (r.Verdict != check.NotChecked || len(r.Skipped) == 0) {
		t.Errorf("an unknown instruction: %+v", r)
	}
	r, err = kernels(bump, launch, &check.Options{Seeds: 2, Detectors: []string{"hb", "iguard"}})
	if err != nil || r.Verdict != check.Failed {
		t.Fatalf("%+v, %v", r, err)
	}
	var j, s, h bytes.Buffer
	var doc struct{ Findings []struct{ ID string } }
	if err := r.JSON(&j); err != nil || json.Unmarshal(j.Bytes(), &doc) != nil || doc.Findings[0].ID != r.Findings[0].ID {
		t.Errorf("%v\n%s", err, &j)
	}
	if err := r.SARIF(&s, ""); err != nil || !strings.Contains(s.String(), r.Findings[0].ID) {
		t.Errorf("%v\n%s", err, &s)
	}
	if err := r.HTML(&h); err != nil || !strings.Contains(h.String(), r.Findings[0].ID) {
		t.Errorf("%v", err)
	}
}
