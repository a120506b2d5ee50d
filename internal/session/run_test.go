package session

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/report"
)

// runScript runs a shell script with three seeds in a folder of its own. Its input is a file of which two bytes have
// been read.
func runScript(t *testing.T, o *Options, script string) (r *report.Report, folder string) {
	t.Helper()
	folder = t.TempDir()
	app := filepath.Join(folder, "app")
	if err := os.WriteFile(app, []byte("#!/bin/sh\ncd "+folder+"\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte("whole\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	o.Seeds, o.FailOn = 3, detect.Error
	r, err = Run(context.Background(), o, &Program{Path: app, Stdin: in})
	if err != nil {
		t.Fatal(err)
	}
	return r, folder
}

// TestSeedsOfProgram runs the seeds of a program one after the other, and in parallel if requested. The first run
// continues to read the input where it is, and the others read all of it.
func TestSeedsOfProgram(t *testing.T) {
	alone := "mkdir running || exit 9\ncat > input.$$\nsleep 0.05\nrmdir running\n"
	// Goes on when another run has begun; a second run that never comes ends it after 10 seconds.
	meets := "cat > input.$$\nfor i in $(seq 100); do test $(ls input.* | wc -l) -ge 2 && exit 0; sleep 0.1; done\nexit 9\n"
	for _, c := range []struct {
		script string
		o      Options
	}{{alone, Options{Jobs: 3}}, {alone, Options{Jobs: 1, Apart: true}}, {meets, Options{Jobs: 3, Apart: true}}} {
		r, folder := runScript(t, &c.o, c.script)
		if r.Program == nil || r.Program.Exit != 0 {
			t.Errorf("jobs %d, apart %v: %+v", c.o.Jobs, c.o.Apart, r.Program)
		}
		read := map[string]int{}
		files, err := filepath.Glob(filepath.Join(folder, "input.*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			read[string(text)]++
		}
		if read["ole\n"] != 1 || read["whole\n"] != 2 {
			t.Errorf("jobs %d, apart %v: the runs read %v", c.o.Jobs, c.o.Apart, read)
		}
	}
}
