// Package nearest finds the valid word for a mistyped one.
package nearest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Word returns the word of words with the smallest edit distance to typo, "" if none is near: more than a third of the
// letters (at least two edits are allowed for words of four letters or more) would have to change. A word that typo
// begins, or that begins typo, counts as near. Of equally near words the first is returned.
func Word(typo string, words []string) string {
	best, bestDistance := "", max(1, (len(typo)+2)/3)
	if len(typo) >= 4 {
		bestDistance = max(bestDistance, 2)
	}
	bestDistance++
	for _, w := range words {
		if d := distance(typo, w); d < bestDistance {
			best, bestDistance = w, d
		}
	}
	if best != "" {
		return best
	}
	for _, w := range words {
		if len(typo) >= 2 && len(w) > len(typo) && w[:len(typo)] == typo {
			return w
		}
	}
	return ""
}

// distance is the number of insertions, deletions, replacements and swaps of adjacent letters that convert a to b.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}

// Hint is the answer to an unknown word: `; did you mean "x"?`, or the valid words if none is near and they are few.
func Hint(typo string, words []string) string {
	// A number is not a misspelling of another.
	if w := Word(typo, words); w != "" && strings.ContainsFunc(typo, unicode.IsLetter) {
		return `; did you mean "` + w + `"?`
	}
	if len(words) == 0 || len(words) > 16 {
		return ""
	}
	if len(words) == 1 {
		return `; "` + words[0] + `" is expected`
	}
	sorted := slices.Clone(words)
	slices.SortFunc(sorted, func(a, b string) int { // numbers as numbers, before words
		x, xerr := strconv.ParseUint(a, 10, 64)
		y, yerr := strconv.ParseUint(b, 10, 64)
		switch {
		case xerr == nil && yerr == nil:
			return cmp.Compare(x, y)
		case xerr == nil:
			return -1
		case yerr == nil:
			return 1
		}
		return cmp.Compare(a, b)
	})
	s := "; one of "
	for i, w := range sorted {
		switch {
		case i == 0:
		case i == len(sorted)-1:
			s += " or "
		default:
			s += ", "
		}
		s += w
	}
	return s + " is expected"
}
