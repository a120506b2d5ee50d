package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Fingerprint gives every finding a fingerprint that does not change with edits elsewhere in its files: a hash of the
// kind (unless the finding is a race), and, for each place, of the file's name, the function and the text of the line
// with normalised spaces. Findings that are equal in these, such as those of two equal lines of one function, are
// numbered in the order of the report.
func Fingerprint(findings []Finding, source func(file string) []string) {
	read := CachedSource(source)
	seen := map[string]int{}
	for i := range findings {
		f := &findings[i]
		key := f.textKey(read)
		n := seen[key]
		seen[key]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%d", key, n))
		f.Fingerprint = hex.EncodeToString(sum[:16])
	}
}

// textKey identifies a defect by the text of its places. Their order depends on the schedule and is ignored.
func (f *Finding) textKey(read func(string) []string) string {
	sides := make([]string, len(f.Accesses))
	for i := range f.Accesses {
		a := &f.Accesses[i]
		p := a.Place()
		text := "ptx " + fmt.Sprint(p.PTXLine)
		if p.File != "" {
			text = strings.Join(strings.Fields(line(read, p.File, p.Line)), " ")
		}
		sides[i] = strings.Join([]string{path.Base(p.File), BareName(p.Function), hostCall(a.Host), text}, "\x00")
	}
	slices.Sort(sides)
	if !f.unordered() || len(sides) == 0 {
		sides = append(sides, string(f.Kind))
	}
	if len(f.Accesses) == 0 {
		sides = append(sides, BareName(f.Kernel))
	}
	return strings.Join(sides, "\n")
}

// line returns a line of a file, "" if it is not available.
func line(read func(string) []string, file string, n int) string {
	if read == nil || file == "" || n < 1 {
		return ""
	}
	lines := read(file)
	if n > len(lines) {
		return ""
	}
	return lines[n-1]
}
