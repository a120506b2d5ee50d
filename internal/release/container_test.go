package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestContainerfile checks that the image has the compiler of the tests and a sufficiently new Go.
func TestContainerfile(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("..", "..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	image, ci := read("Containerfile"), read(".ci/run")
	version := regexp.MustCompile(`(?m)^cuda=(\S+)$`).FindStringSubmatch(ci)
	if version == nil {
		t.Fatal(".ci/run names no version of CUDA")
	}
	packages := func(text string) []string {
		return regexp.MustCompile(`nvidia-[a-z-]+==[0-9.]+`).FindAllString(text, -1)
	}
	if got, want := packages(image), packages(strings.ReplaceAll(ci, "$cuda", version[1])); len(want) < 5 || !slices.Equal(got, want) {
		t.Errorf("the image has %v, .ci/run installs %v", got, want)
	}
	goMod := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read("go.mod"))
	if goMod == nil || !strings.Contains(image, "golang:"+goMod[1]+"-") {
		t.Errorf("go.mod asks for Go %v", goMod)
	}
}
