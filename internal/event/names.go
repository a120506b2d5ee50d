package event

import "fmt"

var kindNames = [...]string{"none", "load", "store", "atomic", "fence", "arrive", "barrier-done", "warp-sync", "exit",
	"kernel-begin", "kernel-end", "branch", "else", "reconverge", "copy-commit", "copy-arrive", "copy-wait", "mbarrier-done",
	"bulk", "bulk-commit", "bulk-wait", "bulk-done", "wgmma", "wgmma-commit", "wgmma-wait", "core", "core-commit", "core-done", "core-wait", "proxy-fence", "init-fence", "map-read", "map-fence", "cluster-arrive", "cluster-wait", "grid-launch", "grid-wait", "device-op", "host", "undefined", "again"}

func (k Kind) String() string { return name(kindNames[:], int(k)) }

func (o Order) String() string {
	return name([]string{"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"}, int(o))
}

func (s Scope) String() string {
	return name([]string{"none", "cta", "cluster", "gpu", "sys"}, int(s))
}

func (s Space) String() string {
	return name([]string{"none", "generic", "global", "shared", "local", "const", "param", "tensor"}, int(s))
}

func (k HostKind) String() string {
	return name([]string{"signal", "wait", "read", "write", "alloc", "free"}, int(k))
}

func (d Dim3) String() string { return fmt.Sprintf("(%d,%d,%d)", d.X, d.Y, d.Z) }

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%d?", i)
}
