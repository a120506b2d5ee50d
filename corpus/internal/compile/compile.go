// Package compile makes the PTX of the corpus from its sources. The bytes are the same on every machine with the same
// nvcc.
package compile

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// Flags are the flags of nvcc other than the architecture: each source access stays in its place (-Xcicc -O0) and has
// its line.
var Flags = []string{"-lineinfo", "-Xcicc", "-O0", "-ptx"}

var arch = regexp.MustCompile(`(?m)^// -arch=(compute_\w+)\r?$`)

// Arch is the architecture of a source, as an argument of nvcc's -arch. The default is compute_80; a line "//
// -arch=compute_90" selects another.
func Arch(source string) string {
	if m := arch.FindStringSubmatch(source); m != nil {
		return m[1]
	}
	return "compute_80"
}

// ErrNoCompiler says that there is no nvcc on this machine.
var ErrNoCompiler = errors.New("no nvcc: FENCEPOST_NVCC is not set and there is none on PATH")

// FindNVCC returns the compiler that FENCEPOST_NVCC names, or else the one on PATH.
func FindNVCC() (string, error) {
	if nvcc := os.Getenv("FENCEPOST_NVCC"); nvcc != "" {
		return nvcc, nil
	}
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		return "", ErrNoCompiler
	}
	return nvcc, nil
}

// PTX compiles the source at path, which ends in FOLDER/NAME.cu.
func PTX(nvcc, path string) (string, error) {
	out, err := os.CreateTemp("", "corpus-*.ptx")
	if err != nil {
		return "", err
	}
	out.Close()
	defer os.Remove(out.Name())

	dir, file := filepath.Split(path)
	// Without a seed, names of internal functions contain a hash of the source's absolute path.
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	args := append([]string{"-frandom-seed=" + filepath.Base(filepath.Clean(dir)) + "/" + file, "-arch=" + Arch(string(text))}, Flags...)
	args = append(args, file, "-o", out.Name())
	cmd := exec.Command(nvcc, args...)
	cmd.Dir = dir
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", path, err, msg)
	}
	ptx, err := os.ReadFile(out.Name())
	if err != nil {
		return "", err
	}
	folder, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil { // as the compiler spells it
		return "", err
	}
	return shortenPaths(blankHash(string(ptx)), folder, file), nil
}

// folderHash is the part of the names of internal functions that hashes the folder in which nvcc was called, even with
// a seed. The debug section contains the same names in numbers, on lines that may break anywhere.
var (
	folderHash  = regexp.MustCompile(`_INTERNAL_[0-9a-f]{8}_`)
	spelledHash = regexp.MustCompile(strings.ReplaceAll("95 73 78 84 69 82 78 65 76 95 ", " ", nextByte) + `(?:\d+` + nextByte + `){8}`)
	lastBytes   = regexp.MustCompile(`(?:\d+` + nextByte + `){8}$`)
	oneByte     = regexp.MustCompile(`\d+(` + nextByte + `)`)
)

// nextByte separates two bytes of a section.
const nextByte = `(?:,|\n\.b8 )`

// blankHash replaces the folder's hash by zeros.
func blankHash(ptx string) string {
	ptx = folderHash.ReplaceAllString(ptx, "_INTERNAL_00000000_")
	return spelledHash.ReplaceAllStringFunc(ptx, func(name string) string {
		hash := lastBytes.FindString(name)
		return strings.TrimSuffix(name, hash) + oneByte.ReplaceAllString(hash, "48$1")
	})
}

var fileLine = regexp.MustCompile(`(?m)^(\t\.file\t\d+ ")(.*)"$`)

// shortenPaths removes from the .file directives the locations of the source, in folder, and of the toolkit on this
// machine.
func shortenPaths(ptx, folder, source string) string {
	return fileLine.ReplaceAllStringFunc(ptx, func(line string) string {
		m := fileLine.FindStringSubmatch(line)
		return m[1] + shortPath(m[2], folder, source) + `"`
	})
}

// shortPath returns the bare name of the source and of headers in its folder, and "cuda/include/..." or
// "c++/include/..." for others.
func shortPath(path, folder, source string) string {
	if base := filepath.Base(path); base == source || filepath.Dir(path) == folder {
		return base
	}
	if _, rest, ok := strings.Cut(path, "/include/c++/"); ok {
		_, rest, _ = strings.Cut(rest, "/") // the version
		return "c++/include/" + rest
	}
	if _, rest, ok := strings.Cut(path, "/include/"); ok {
		return "cuda/include/" + rest
	}
	return path
}
