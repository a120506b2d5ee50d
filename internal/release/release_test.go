package release

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fencepost.dev/fencepost/internal/testsize"
)

// TestRelease builds an archive and a wheel twice, installs them into new folders, and uses them.
func TestRelease(t *testing.T) {
	if !testsize.Long() {
		t.Skip("compiles the command, with the flags of a release")
	}
	root := filepath.Join("..", "..")
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		var told bytes.Buffer
		if err := build(&told, root, dir, "1.2.3", []string{"linux/amd64"}); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", &told)
	}
	archive := "fencepost-1.2.3-linux-amd64.tar.gz"
	wheels, err := filepath.Glob(filepath.Join(first, "fencepost-1.2.3-py3-none-*.whl"))
	if err != nil || len(wheels) != 1 {
		t.Fatalf("wheels %v, %v", wheels, err)
	}
	for _, name := range []string{archive, filepath.Base(wheels[0])} {
		a, aerr := os.ReadFile(filepath.Join(first, name))
		b, berr := os.ReadFile(filepath.Join(second, name))
		if aerr != nil || berr != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from build to build: %v, %v", name, aerr, berr)
		}
	}
	run := func(dir, name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	dir := t.TempDir()
	run(dir, "tar", "xzf", filepath.Join(first, archive))
	bin := filepath.Join(dir, "fencepost-1.2.3-linux-amd64", "bin", "fencepost")
	if got := run(dir, bin, "version"); !strings.HasPrefix(got, "fencepost 1.2.3 linux/amd64") {
		t.Errorf("version %q", got)
	}
	if st, err := os.Stat(bin); err != nil {
		t.Error(err)
	} else if st.Size() >= 20e6 {
		t.Errorf("the binary has %.1f MB; it should have less than 20", float64(st.Size())/1e6)
	}
	for _, name := range []string{"LICENSE", "share/man/man1/fencepost.1", "share/bash-completion/completions/fencepost"} {
		if st, err := os.Stat(filepath.Join(dir, "fencepost-1.2.3-linux-amd64", name)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := exec.Command("python3", "-m", "pip", "--version").Run(); err != nil {
		t.Skip("no pip")
	}
	into := t.TempDir()
	run(dir, "python3", "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", into, wheels[0])
	if got := run(dir, filepath.Join(into, "bin", "fencepost"), "demo"); !strings.Contains(got, "3 defects in 3 kernels") {
		t.Errorf("the demo of the wheel prints\n%s", got)
	}
	c := exec.Command("python3", "-c", "import fencepost, importlib.metadata as m; print(m.version('fencepost'), m.entry_points(group='pytest11')['fencepost'].value)")
	c.Env = append(os.Environ(), "PYTHONPATH="+into)
	if out, err := c.CombinedOutput(); err != nil || string(out) != "1.2.3 fencepost.plugin\n" {
		t.Errorf("the package: %v\n%s", err, out)
	}
	requireFixture(t, into)
}

// requireFixture uses the fixture of the wheel installed in a folder with its command.
func requireFixture(t *testing.T, into string) {
	t.Helper()
	if exec.Command("python3", "-c", "import pytest").Run() != nil {
		t.Skip("no pytest")
	}
	dir := t.TempDir()
	for name, from := range map[string]string{"k.ptx": "race/stencil.ptx", "k.toml": "race/stencil.toml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "corpus", from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	test := "def test_kernel(fencepost_ptx):\n    fencepost_ptx('k.ptx', 'k.toml')\n\ndef test_nothing(fencepost_ptx):\n    fencepost_ptx('k.ptx', 'k.toml', '--variable', 'none')\n"
	if err := os.WriteFile(filepath.Join(dir, "test_kernel.py"), []byte(test), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("python3", "-m", "pytest", "-p", "no:cacheprovider", "test_kernel.py")
	c.Dir = dir
	c.Env = append(os.Environ(), "PYTHONPATH="+into, "PYTHONDONTWRITEBYTECODE=1", "PATH="+filepath.Join(into, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "1 failed, 1 passed") || !strings.Contains(string(out), "error: data race on tile") || strings.Contains(string(out), "another exception") {
		t.Errorf("pytest: %v\n%s", err, out)
	}
}

// TestPlatforms builds for another system and checks the result.
func TestPlatforms(t *testing.T) {
	if !testsize.Long() {
		t.Skip("compiles the command, and the standard library, for two more systems")
	}
	dir := t.TempDir()
	if err := build(io.Discard, filepath.Join("..", ".."), dir, "1.2.3", []string{"windows/amd64", "darwin/arm64"}); err != nil {
		t.Fatal(err)
	}
	for archive, want := range map[string]string{"fencepost-1.2.3-windows-amd64.zip": "fencepost-1.2.3-windows-amd64/bin/fencepost.exe",
		"fencepost-1.2.3-py3-none-win_amd64.whl":         "fencepost-1.2.3.data/scripts/fencepost.exe",
		"fencepost-1.2.3-py3-none-macosx_12_0_arm64.whl": "fencepost-1.2.3.data/scripts/fencepost"} {
		z, err := zip.OpenReader(filepath.Join(dir, archive))
		if err != nil {
			t.Error(err)
			continue
		}
		i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == want })
		if i < 0 || z.File[i].Mode().Perm() != 0o755 || z.File[i].UncompressedSize64 < 5e6 {
			t.Errorf("%s has no %s of the right kind", archive, want)
		}
		z.Close()
	}
	if st, err := os.Stat(filepath.Join(dir, "fencepost-1.2.3-darwin-arm64.tar.gz")); err != nil || st.Size() < 3e6 {
		t.Errorf("the archive for macOS: %v", err)
	}
}

// TestRefused checks the errors for releases that cannot be built.
func TestRefused(t *testing.T) {
	for version, platform := range map[string]string{"v1.2": "linux/amd64", "1.2": "linux/mips"} {
		if err := build(&bytes.Buffer{}, ".", t.TempDir(), version, []string{platform}); err == nil {
			t.Errorf("version %s for %s is built", version, platform)
		}
	}
}
