package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"fencepost.dev/fencepost/corpus/irregular"
	"fencepost.dev/fencepost/internal/nearest"
	"fencepost.dev/fencepost/internal/session"
)

// irregularWords reports whether a name means runs of the suite corpus/irregular, and returns the words that select
// them.
func irregularWords(name string) (words []string, ok bool) {
	rest, ok := strings.CutPrefix(filepath.ToSlash(filepath.Clean(name)), "corpus/irregular")
	if !ok || !isCorpus(name) || rest != "" && rest[0] != '/' {
		return nil, false
	}
	return strings.FieldsFunc(rest, func(c rune) bool { return c == '/' }), true
}

// compareIrregular judges detectors on runs of the suite. It prints the findings of a single run.
func compareIrregular(ctx context.Context, e *env, o *options, args, words []string) (int, error) {
	if len(args) > 1 {
		return 0, usagef("compare takes one name of the corpus; flags stand before it")
	}
	runs, err := session.IrregularRuns(words...)
	var unknown *session.UnknownWord
	switch {
	case errors.As(err, &unknown):
		return 0, usagef("%v%s", err, nearest.Hint(unknown.Word, unknown.Known))
	case err != nil:
		return 0, fmt.Errorf("the built-in corpus is broken: %w", err)
	case len(runs) == 0:
		return 0, usagef("no run of corpus/irregular is all of %s", strings.Join(words, ", "))
	}
	stop := showProgress(e, &o.session)
	results := session.CompareIrregular(ctx, &o.session, runs)
	stop()
	w := o.reportWriter(e, e.stdout)
	code := exitClean
	done := results[:0:0]
	for i := range results {
		r := &results[i]
		if r.Err != nil {
			code = exitNotChecked
			fmt.Fprintf(w, "not checked: %s on %s: %v\n", r.Kernel.Name(), r.Graph.Name, r.Err)
			continue
		}
		done = append(done, *r)
	}
	if len(runs) == 1 && len(done) == 1 {
		for _, r := range done[0].Reports {
			writeFoundBy(w, r, irregularLines)
		}
		fmt.Fprintln(w)
	}
	session.WriteIrregular(w, done)
	if o.json == "" {
		return code, nil
	}
	var b bytes.Buffer
	if err := session.WriteIrregularJSON(&b, results); err != nil {
		return code, &unwrittenError{fmt.Errorf("--json: %w", err)}
	}
	return code, writeJSONBytes(e, o, b.Bytes())
}

// irregularLines returns the lines of a source of the suite.
func irregularLines(file string) []string {
	if path.Dir(file) != "corpus/irregular" {
		return nil
	}
	if text, ok := irregular.Files()[path.Base(file)]; ok {
		return strings.Split(text, "\n")
	}
	return nil
}
