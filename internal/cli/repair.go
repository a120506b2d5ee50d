package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/internal/cuda"
	"fencepost.dev/fencepost/internal/engine"
	"fencepost.dev/fencepost/internal/session"
	"fencepost.dev/fencepost/internal/verify"
)

// repairer repairs a kernel. Like the explorer it is an engine, because the search needs the launch.
type repairer struct {
	explorer
	text   verify.Text
	repair *verify.Repair
	places []verify.Place
}

// Run implements engine.Engine.
func (x *repairer) Run(ctx context.Context, l *engine.Launch) (engine.Stats, error) {
	var condition *verify.Condition
	if condition, x.err = x.claim(l); x.err == nil {
		x.repair, x.places, x.err = verify.RepairKernel(ctx, l, x.expected(l), condition, x.options, x.text)
	}
	return engine.Stats{}, nil
}

// repairKernel searches for a repair of the launch of in, whose file is name, and explores the repaired kernel. It
// first considers the changes that can be written in the file and then, for CUDA, those that can be written in its PTX.
func repairKernel(ctx context.Context, e *env, o *options, name string, in *session.Input, claims claims, opts verify.Options) (*verify.Repair, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	opts.First = false
	cu := strings.EqualFold(filepath.Ext(name), ".cu")
	ptx := func(places []verify.Place) ([]cuda.Image, error) {
		var out []cuda.Image
		for _, i := range in.Images {
			var own []verify.Place
			for _, p := range places {
				if p.Frames[0].PTXFile == i.Name {
					own = append(own, p)
				}
			}
			edited, err := verify.EditPTX(i.Text, own)
			if err != nil {
				return nil, err
			}
			out = append(out, cuda.Image{Name: i.Name, Text: edited})
		}
		return out, nil
	}
	writable := func(places []verify.Place) bool { _, err := ptx(places); return err == nil }
	inSource := func(places []verify.Place) bool {
		_, err := verify.EditCUDA(name, string(text), places)
		return err == nil
	}
	search := func(text verify.Text) (*repairer, error) {
		x := &repairer{explorer: explorer{options: opts, claims: claims}, text: text}
		s := o.session
		s.Bare, s.Seeds, s.Engine = true, 1, func() engine.Engine { return x }
		_, err := session.Check(ctx, &s, in)
		if err == nil {
			err = x.err
		}
		return x, err
	}
	prove := func(images []cuda.Image) (*verify.Result, error) {
		changed := *in
		changed.Images = images
		changed.Launch.Expects, changed.Launch.Condition = claims.expects, claims.condition
		r, _, err := exploreLaunch(ctx, o.session, &changed, opts)
		return r, err
	}
	if cu {
		x, err := search(verify.Text{CUDA: true, Can: inSource})
		if err != nil || x.repair == nil {
			return x.repair, err
		}
		if r := x.repair; r.Reason == "" {
			edited, err := verify.EditCUDA(name, string(text), x.places)
			if err != nil {
				return nil, err
			}
			images, err := compileText(ctx, e, o, name, edited)
			if err == nil {
				r.Proof, err = prove(images)
			}
			if err == nil && r.Proof != nil && r.Proof.Repaired() {
				r.Diff = verify.Diff(name, string(text), edited)
				return r, nil
			}
		}
	}
	x, err := search(verify.Text{Can: writable})
	if err != nil || x.repair == nil || x.repair.Reason != "" {
		return x.repair, err
	}
	images, err := ptx(x.places)
	if err != nil {
		return nil, err
	}
	r := x.repair
	if r.Proof, err = prove(images); err == nil && !cu && len(images) == 1 {
		r.Diff = verify.Diff(name, in.Images[0].Text, images[0].Text)
	}
	return r, err
}

// compileText compiles a changed text of a CUDA source file.
func compileText(ctx context.Context, e *env, o *options, name, text string) ([]cuda.Image, error) {
	file, beside, cleanup, err := writeChanged(name, text)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	return compilePTX(ctx, e, o, file, beside)
}

// writeChanged writes a changed text of a source file to a folder of its own, which cleanup removes. With the flag
// beside, included files are found in the original's folder.
func writeChanged(name, text string) (file, beside string, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "fencepost-repair-")
	if err != nil {
		return "", "", nil, err
	}
	file = filepath.Join(dir, filepath.Base(name))
	old, err := filepath.Abs(filepath.Dir(name))
	if err == nil {
		err = os.WriteFile(file, []byte(text), 0o600)
	}
	if err != nil {
		os.RemoveAll(dir)
		return "", "", nil, err
	}
	return file, "-I" + old, func() { os.RemoveAll(dir) }, nil
}
