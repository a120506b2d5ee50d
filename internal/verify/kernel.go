package verify

import (
	"context"

	"fencepost.dev/fencepost/internal/report"
	"fencepost.dev/fencepost/internal/simt"
	"fencepost.dev/fencepost/internal/verify/explore"
	"fencepost.dev/fencepost/internal/verify/kernel"
)

// Expected is a value that memory is to have at the end of every execution.
type Expected struct {
	Addr  uint64
	Bytes []byte
}

// Kernel explores a launch of a kernel, with the memory as it is. The error says why it cannot begin.
func Kernel(ctx context.Context, l *simt.Launch, o Options) (*Result, error) {
	p, err := kernel.New(l, o.Unroll)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	v := newVerifier(kernelLaunch{p}, report.ShortName(report.BareName(l.Kernel)), o)
	v.explore(ctx, nil)
	if refusal := p.Refusal(); refusal != nil {
		v.result.Refusal = refusal.Reason
		for _, at := range refusal.Places {
			s := Side{What: "here", frames: v.subject.frames(int32(at))}
			s.File, s.Line, s.Col = place(s.frames)
			v.result.Refused = append(v.result.Refused, s)
		}
	}
	return v.finish(), nil
}

var _ explore.Program = (*kernel.Program)(nil)
