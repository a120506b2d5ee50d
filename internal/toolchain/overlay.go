package toolchain

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Overlay makes, in a folder under cache, a CUDA toolkit of links to nvcc's toolkit, with two differences: its bin/nvcc
// is a script that calls `self nvcc`, and its runtime libraries are Fencepost's. Build systems that ask for the folder
// of the toolkit (CUDA_HOME, CUDA_PATH, CUDAToolkit_ROOT) and name libraries by path thus get Fencepost's. Overlay
// returns the folder, which is made once and reused for the same arguments and an unchanged toolkit.
func Overlay(cache string, nvcc *Tool, runtimeDir, self string) (string, error) {
	top, err := toolkitRoot(nvcc)
	if err != nil {
		return "", err
	}
	key := sha256.New()
	fmt.Fprintf(key, "%q", []string{nvcc.Path, nvcc.Version, top, runtimeDir, self})
	for _, d := range []string{"", "bin", "lib", "lib64"} {
		if info, err := os.Stat(filepath.Join(top, d)); err == nil {
			fmt.Fprintln(key, d, info.ModTime().UnixNano()) // something was installed since: its links would be missing
		}
	}
	dir := filepath.Join(cache, fmt.Sprintf("toolkit-%x", key.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(cache, "toolkit-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := fillOverlay(tmp, top, nvcc, runtimeDir, self); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // otherwise another process was faster
			return "", err
		}
	}
	return dir, nil
}

// toolkitRoot returns the folder that contains bin, include and the libraries. nvcc prints it in a dry run; in a
// distribution's layout the path of nvcc does not show it.
func toolkitRoot(nvcc *Tool) (string, error) {
	cmd := exec.Command(nvcc.Path, "--dryrun", cmakeAsks)
	cmd.Env = setEnv(setEnv(os.Environ(), "NVCC_PREPEND_FLAGS", ""), "NVCC_APPEND_FLAGS", "")
	// The command ends with an error, because there is no such file.
	out, _ := cmd.CombinedOutput()
	if m := toolkitLine.FindSubmatch(out); m != nil {
		return filepath.EvalSymlinks(string(m[1]))
	}
	real, err := filepath.EvalSymlinks(nvcc.Path)
	if err != nil {
		return "", err
	}
	return filepath.Dir(filepath.Dir(real)), nil
}

func fillOverlay(dir, top string, nvcc *Tool, runtimeDir, self string) error {
	ours := map[string]bool{"bin": true, "lib": true, "lib64": true, "targets": true}
	if err := linkAll(top, dir, func(name string) bool { return !ours[name] }); err != nil {
		return err
	}
	bin, lib := filepath.Join(dir, "bin"), filepath.Join(dir, "lib64")
	stubs := filepath.Join(lib, "stubs")
	for _, d := range []string{bin, lib, stubs} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := linkAll(filepath.Join(top, "bin"), bin, func(name string) bool { return name != "nvcc" }); err != nil {
		return err
	}
	if err := writeScript(filepath.Join(bin, "nvcc"), nvcc, self); err != nil {
		return err
	}
	// If a toolkit has several of these folders, they are links to one.
	for _, l := range []string{"lib64", "lib", "targets/x86_64-linux/lib"} {
		if err := linkAll(filepath.Join(top, l), lib, foreignLibrary); err != nil {
			return err
		}
		if err := linkAll(filepath.Join(top, l, "stubs"), stubs, foreignLibrary); err != nil {
			return err
		}
	}
	so := "libcudart.so." + strconv.Itoa(nvcc.Major)
	static, err := libraryDir(runtimeDir, nvcc.Major)
	if err != nil {
		return err
	}
	for link, target := range map[string]string{
		filepath.Join(dir, "lib"):                "lib64",
		filepath.Join(lib, "libcudart_static.a"): filepath.Join(static, "libcudart_static.a"),
		filepath.Join(lib, so):                   filepath.Join(runtimeDir, so),
		filepath.Join(lib, "libcudart.so"):       so,
		filepath.Join(stubs, "libcuda.so"):       filepath.Join(runtimeDir, "libcuda.so.1"),
	} {
		if err := os.Symlink(target, link); err != nil {
			return err
		}
	}
	return nil
}

// foreignLibrary reports whether a library of the toolkit is none of those that Fencepost replaces.
func foreignLibrary(name string) bool {
	return !strings.HasPrefix(name, "libcudart") && !strings.HasPrefix(name, "libcuda.") && name != "stubs"
}

// linkAll links the contents of the folder from, if it exists, into the folder to, for names for which keep returns
// true. Existing entries stay.
func linkAll(from, to string, keep func(name string) bool) error {
	entries, err := os.ReadDir(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a toolkit need not have every folder
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !keep(e.Name()) {
			continue
		}
		err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// writeScript writes an nvcc for build systems that require a single program. It names the real nvcc, so that it works
// where only the overlay can be found.
func writeScript(path string, nvcc *Tool, self string) error {
	text := fmt.Sprintf("#!/bin/sh\n# Calls fencepost in place of nvcc.\nFENCEPOST_NVCC=${FENCEPOST_NVCC:-%s}\nexport FENCEPOST_NVCC\nexec %s nvcc \"$@\"\n",
		quote(nvcc.Path), quote(self))
	return os.WriteFile(path, []byte(text), 0o755)
}

// quote quotes a word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
