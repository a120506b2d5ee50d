package cuda

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/engine/devmem"
	"fencepost.dev/fencepost/internal/engine/warp"
)

// broken is an engine that panics.
type broken struct{ engine.Engine }

func (broken) Run(context.Context, *engine.Launch) (engine.Stats, error) { panic("BUG: broken") }

// TestMemoryFault checks that a page of device memory which cannot be had ends the launch, in either engine, and that other
// panics are not taken for that.
func TestMemoryFault(t *testing.T) {
	for name, emulator := range map[string]engine.Engine{"ref": engine.NewRef(), "warp": warp.New()} {
		var last LaunchReport
		d, err := NewDevice(Config{Engine: emulator, MemorySize: 1 << 24, OnLaunch: func(r LaunchReport) { last = r }})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		c := d.NewContext()
		m, err := c.LoadModule(Image{"add.ptx", addKernel})
		if err != nil {
			t.Fatal(err)
		}
		k, err := m.Kernel("add")
		if err != nil {
			t.Fatal(err)
		}
		const page = 4096
		p, err := c.Malloc(2*page, devmem.DeviceAlloc)
		if err != nil {
			t.Fatal(err)
		}
		p = (p + page - 1) &^ (page - 1)
		pages := d.backing[p-devmem.GlobalBase:][:page]
		if err := unix.Mprotect(pages, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
		err = c.Launch(context.Background(), k, LaunchConfig{Grid: one, Block: one}, le64(p))
		if err != nil || !errors.Is(last.Err, ErrMemory) || code(c.Synchronize()) != LaunchFailure {
			t.Errorf("%s: a fault gives %v, %v, %v", name, err, last.Err, c.Synchronize())
		}
		d.cfg.Engine = broken{}
		func() {
			defer func() {
				if bug := recover(); bug != "BUG: broken" {
					t.Errorf("a panic becomes %v", bug)
				}
			}()
			d.execute(context.Background(), &engine.Launch{})
		}()
		if err := unix.Ftruncate(int(d.file.Fd()), 0); !errors.Is(err, unix.EPERM) {
			t.Errorf("the memory can be shortened: %v", err)
		}
	}
}
