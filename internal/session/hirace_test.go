package session

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"fencepost.dev/fencepost/corpus"
	"fencepost.dev/fencepost/internal/detect"
	"fencepost.dev/fencepost/internal/detect/all"
)

// Why hirace judges a program otherwise than hb (package hirace says where the paper has it so).
const (
	// Alarms.
	noFences = "fences, flags, locks and what is made of them order nothing"
	// Misses.
	firstOnly = "a location that has had a race is not judged again"
	partial   = "a barrier of some threads may count for others"
	oneKernel = "other kernels are not known"
	readOnly  = "loads through the read-only cache are loads like any other"
	anySize   = "atomics of different sizes are atomic to each other"
)

// exception is the reason why hirace reports pairs of source places that hb does not, and the reason why it misses
// pairs that hb reports; "" if it does not.
type exception struct{ alarms, misses string }

var hiraceExceptions = map[string]exception{
	"fault/lock_kept":            {alarms: noFences},
	"norace/barrier_sense":       {alarms: noFences},
	"norace/byte_alone":          {alarms: noFences},
	"norace/byte_flag":           {alarms: noFences},
	"norace/byte_lock":           {alarms: noFences},
	"norace/fence_everyone":      {alarms: noFences},
	"norace/forgotten_reader":    {alarms: noFences},
	"norace/grid_barrier":        {alarms: noFences},
	"norace/grid_sync":           {alarms: noFences},
	"norace/init_once":           {alarms: noFences},
	"norace/last_block":          {alarms: noFences},
	"norace/last_block_everyone": {alarms: noFences},
	"norace/lock":                {alarms: noFences},
	"norace/lock_block":          {alarms: noFences},
	"norace/lock_forgotten":      {alarms: noFences},
	"norace/lock_leader":         {alarms: noFences},
	"norace/lock_warp":           {alarms: noFences},
	"norace/lookback":            {alarms: noFences},
	"norace/message":             {alarms: noFences},
	"norace/message_block":       {alarms: noFences},
	"norace/message_ref":         {alarms: noFences},
	"norace/queue":               {alarms: noFences},
	"norace/ring_blocks":         {alarms: noFences},
	"norace/rwlock":              {alarms: noFences},
	"norace/semaphore":           {alarms: noFences},
	"norace/ticket_lock":         {alarms: noFences},
	"norace/transfer":            {alarms: noFences},
	"predict/before_and_after":   {alarms: noFences},
	"predict/before_and_inside":  {alarms: noFences},
	"predict/gap_after_section":  {alarms: noFences},
	"predict/gap_composed":       {alarms: noFences},
	"predict/gap_conflict_early": {alarms: noFences},
	"predict/readers_lock":       {alarms: noFences},
	"predict/stencil_in_place":   {alarms: noFences},
	"predict/two_locks":          {alarms: noFences},
	"race/barrier_sense":         {alarms: noFences},
	"race/bitonic":               {misses: firstOnly},
	"race/event_query":           {misses: oneKernel},
	"race/histogram_shared":      {misses: firstOnly},
	"race/ldg":                   {misses: readOnly},
	"race/surface_in_place":      {misses: readOnly},
	"race/texture_stale":         {misses: readOnly},
	"race/lock_atomic_scope":     {misses: firstOnly},
	"race/lock_forgotten":        {alarms: noFences, misses: firstOnly},
	"race/message_volatile":      {alarms: noFences},
	"race/mixed_size":            {misses: anySize},
	"race/named_barrier":         {misses: partial},
	"race/reduce_volatile":       {misses: firstOnly},
	"race/ring":                  {misses: partial},
	"race/stream_query":          {misses: oneKernel},
	"race/streams":               {misses: oneKernel},
	"race/syncwarp_mask":         {misses: partial},
	"race/ticket_lock":           {misses: firstOnly},
}

// TestHiRaceExceptions compares hirace with hb by pairs of source places on all programs of the corpus. A new exception
// fails, and so does a listed one that no longer occurs.
func TestHiRaceExceptions(t *testing.T) {
	sequential(t)
	t.Parallel()
	var pair []detect.Spec
	for _, name := range []string{"hb", "hirace"} {
		d, err := detect.Choose(all.Detectors(), name)
		if err != nil {
			t.Fatal(err)
		}
		pair = append(pair, d)
	}
	programs := slices.DeleteFunc(corpusPrograms(t), func(p *corpus.Program) bool {
		return !slices.Contains([]string{corpus.Race, corpus.NoRace, corpus.Predict, corpus.Fault}, p.Dir)
	})
	seen := map[string]bool{}
	for _, r := range CheckCorpus(context.Background(), &Options{Detectors: pair, Jobs: runtime.GOMAXPROCS(0)}, programs) {
		name := r.Program.Path()
		if r.Err != nil {
			t.Errorf("%s: %v", name, r.Err)
			continue
		}
		seen[name] = true
		races := racePlaces(r.Report)
		want := hiraceExceptions[name]
		if misses := except(races["hb"], races["hirace"]); (len(misses) > 0) != (want.misses != "") {
			t.Errorf("%s: hirace misses %q, listed as %q", name, misses, want.misses)
		}
		if alarms := except(races["hirace"], races["hb"]); (len(alarms) > 0) != (want.alarms != "") {
			t.Errorf("%s: hirace names %q and hb does not, listed as %q", name, alarms, want.alarms)
		}
	}
	for name := range hiraceExceptions {
		if !seen[name] {
			t.Errorf("%s is an exception, and no program", name)
		}
	}
}

// TestFiniteHistory runs listing 3 of the HiRace paper in different orders. A detector that keeps one reader of a word
// misses the race, and detectors that keep all find it.
func TestFiniteHistory(t *testing.T) {
	programs := slices.DeleteFunc(corpusPrograms(t), func(p *corpus.Program) bool { return p.Path() != "race/finite_history" })
	for seed := range uint64(8) {
		var misses []string
		for _, r := range CompareCorpus(context.Background(), &Options{Seed: seed}, programs) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			for _, d := range r.Report.Detectors {
				if d.Misses > 0 {
					misses = append(misses, d.Name)
				}
			}
		}
		if want := []string{"scord", "scord-cached", "iguard", "racecheck"}; !slices.Equal(misses, want) {
			t.Errorf("seed %d: %v miss the race, and %v do by their metadata", seed, misses, want)
		}
	}
}

// except returns the elements of a that are not in b, sorted.
func except(a, b map[string]bool) (out []string) {
	for x := range a {
		if !b[x] {
			out = append(out, x)
		}
	}
	slices.Sort(out)
	return out
}
