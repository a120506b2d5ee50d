// Package release builds what is published: an archive and a Python wheel for each system and machine. The same
// sources, version and Go give the same bytes.
package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"fencepost.dev/fencepost/internal/cli"
	"fencepost.dev/fencepost/python"
)

// platform is a system and a machine on which Fencepost runs, with Python's name for them. The binaries need no
// library. On macOS and Windows they check kernels and traces, and run no programs.
type platform struct{ system, arch, tag string }

var platforms = []platform{
	{"linux", "amd64", "manylinux2014_x86_64.manylinux_2_17_x86_64.musllinux_1_1_x86_64"},
	{"linux", "arm64", "manylinux2014_aarch64.manylinux_2_17_aarch64.musllinux_1_1_aarch64"},
	{"darwin", "amd64", "macosx_12_0_x86_64"},
	{"darwin", "arm64", "macosx_12_0_arm64"},
	{"windows", "amd64", "win_amd64"},
	{"windows", "arm64", "win_arm64"},
}

// String is the platform as Go spells it.
func (p platform) String() string { return p.system + "/" + p.arch }

// names are the platforms, separated by commas.
func names() string {
	var all []string
	for _, p := range platforms {
		all = append(all, p.String())
	}
	return strings.Join(all, ",")
}

// file is a file of an archive.
type file struct {
	name string
	mode int64
	text []byte
}

// Main runs the command with its arguments and gives the exit code. It runs in the root of the module.
func Main(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	out := flags.String("out", "dist", "the `folder` to write to")
	version := flags.String("version", "0.1.0.dev0", "the `version`, as Python spells it (PEP 440)")
	list := flags.String("platforms", names(), "the `platforms` to build for")
	if flags.Parse(args) != nil {
		return 2
	}
	if err := build(stdout, ".", *out, *version, strings.Split(*list, ",")); err != nil {
		fmt.Fprintf(stderr, "release: %v\n", err)
		return 1
	}
	return 0
}

// build writes the archives and wheels of the module in root to out, and prints their names, sizes and hashes.
func build(w io.Writer, root, out, version string, list []string) error {
	if !regexp.MustCompile(`^\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?$`).MatchString(version) {
		return fmt.Errorf("%q is no version of PEP 440, such as 1.2 or 1.2rc1", version)
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	texts, err := documents(root)
	if err != nil {
		return err
	}
	for _, name := range list {
		i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
		if i < 0 {
			return fmt.Errorf("there is no platform %q; one of %s is expected", name, names())
		}
		p := platforms[i]
		binary, err := compile(root, version, p)
		if err != nil {
			return err
		}
		modules, err := wheel(version, p, binary)
		if err != nil {
			return err
		}
		folder := fmt.Sprintf("fencepost-%s-%s-%s", version, p.system, p.arch)
		archive := file{folder + ".tar.gz", 0, nil}
		if p.system == "windows" {
			archive.name = folder + ".zip"
			archive.text = zipped(folder+"/", append(slices.Clone(texts), file{"bin/" + p.executable(), 0o755, binary}))
		} else {
			archive.text = tarball(folder, append(slices.Clone(texts), file{"bin/" + p.executable(), 0o755, binary}))
		}
		for _, f := range []file{archive, {fmt.Sprintf("fencepost-%s-py3-none-%s.whl", version, p.tag), 0, modules}} {
			if err := os.WriteFile(filepath.Join(out, f.name), f.text, 0o666); err != nil {
				return err
			}
			fmt.Fprintf(w, "%x  %s (%.1f MB)\n", sha256.Sum256(f.text), f.name, float64(len(f.text))/1e6)
		}
		fmt.Fprintf(w, "the binary for %s has %.1f MB\n", p, float64(len(binary))/1e6)
	}
	return nil
}

// executable is the name of the binary.
func (p platform) executable() string {
	if p.system == "windows" {
		return "fencepost.exe"
	}
	return "fencepost"
}

// compile returns the stripped binary for a platform. It contains neither paths nor the state of the repository.
func compile(root, version string, p platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "fencepost-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "fencepost")
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X fencepost.dev/fencepost/internal/cli.version="+version, "-o", name, "./cmd/fencepost")
	c.Dir = root
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.system, "GOARCH="+p.arch, "GOAMD64=v1", "GOFLAGS=")
	if text, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build for %s: %w\n%s", p, err, text)
	}
	return os.ReadFile(name)
}

// documents are the files of an archive other than the binary.
func documents(root string) ([]file, error) {
	var files []file
	for _, name := range []string{"LICENSE", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, text})
	}
	for _, made := range []struct{ name, command string }{
		{"share/man/man1/fencepost.1", "man"},
		{"share/bash-completion/completions/fencepost", "completion bash"},
		{"share/zsh/site-functions/_fencepost", "completion zsh"},
		{"share/fish/vendor_completions.d/fencepost.fish", "completion fish"},
	} {
		var text, errs bytes.Buffer
		if cli.Main(append([]string{"fencepost"}, strings.Fields(made.command)...), nil, &text, &errs) != 0 {
			return nil, fmt.Errorf("fencepost %s: %s", made.command, &errs)
		}
		files = append(files, file{made.name, 0o644, text.Bytes()})
	}
	return files, nil
}

// tarball packs files into a folder.
func tarball(folder string, files []file) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the error is only for an unknown level
	t := tar.NewWriter(z)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for _, f := range files {
		h := &tar.Header{Name: folder + "/" + f.name, Mode: f.mode, Size: int64(len(f.text)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		must(t.WriteHeader(h))
		_, err := t.Write(f.text)
		must(err)
	}
	must(t.Close())
	must(z.Close())
	return b.Bytes()
}

// must ends the program for errors of writes to memory.
func must(err error) {
	if err != nil {
		panic("BUG: " + err.Error())
	}
}

// wheel packs the binary and the Python package (the Binary Distribution Format of the Python packaging specifications).
func wheel(version string, p platform, binary []byte) ([]byte, error) {
	info := fmt.Sprintf("fencepost-%s.dist-info/", version)
	files := []file{{fmt.Sprintf("fencepost-%s.data/scripts/%s", version, p.executable()), 0o755, binary}}
	names, err := fs.Glob(python.Files, "fencepost/*.py")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := python.Files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, 0o644, text})
	}
	entries, err := python.Files.ReadFile("fencepost.dist-info/entry_points.txt")
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("Metadata-Version: 2.1\nName: fencepost\nVersion: %s\nSummary: Finds data races in CUDA programs, on a machine without a GPU\nLicense: Apache-2.0\nRequires-Python: >=3.9\n", version)
	how := "Wheel-Version: 1.0\nGenerator: fencepost\nRoot-Is-Purelib: false\n"
	for _, t := range strings.Split(p.tag, ".") {
		how += "Tag: py3-none-" + t + "\n"
	}
	files = append(files, file{info + "entry_points.txt", 0o644, entries}, file{info + "METADATA", 0o644, []byte(about)}, file{info + "WHEEL", 0o644, []byte(how)})
	record := ""
	for _, f := range files {
		sum := sha256.Sum256(f.text)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.text))
	}
	record += info + "RECORD,,\n"
	files = append(files, file{info + "RECORD", 0o644, []byte(record)})
	return zipped("", files), nil
}

// zipped packs files, with a prefix to their names.
func zipped(prefix string, files []file) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: prefix + f.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		h.SetMode(fs.FileMode(f.mode))
		to, err := z.CreateHeader(h)
		must(err)
		_, err = to.Write(f.text)
		must(err)
	}
	must(z.Close())
	return b.Bytes()
}
