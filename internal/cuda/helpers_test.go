package cuda

import (
	"sync"
	"testing"

	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/event"
)

// log records what a device tells.
type log struct {
	mu       sync.Mutex
	hosts    []event.HostOp
	launches []LaunchReport
	faults   []engine.Fault
}

func (l *log) Events(b *event.Batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range b.Events {
		if e.Kind == event.Host {
			l.hosts = append(l.hosts, b.Hosts[e.Side])
		}
	}
}

// newTestDevice makes a device with the reference engine and a log.
func newTestDevice(t *testing.T) (*Device, *log) {
	t.Helper()
	l := &log{}
	d, err := NewDevice(Config{
		Engine: engine.NewRef(), Sink: l, Needs: event.NeedHost, MemorySize: 1 << 30, MaxSteps: 10_000_000,
		OnFault:  func(f engine.Fault) { l.faults = append(l.faults, f) },
		OnLaunch: func(r LaunchReport) { l.launches = append(l.launches, r) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, l
}
