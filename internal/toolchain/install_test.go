package toolchain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall installs with a python3 that creates the files of venv and pip.
func TestInstall(t *testing.T) {
	requireShell(t)
	root := t.TempDir()
	python := func(pip string) {
		text := "#!/bin/sh\nset -e\ncase \"$2\" in venv) mkdir -p \"$3/bin\"; cp \"$0\" \"$3/bin/python3\"; echo made;;\npip) shift 2; echo \"$@\"; cd \"$(dirname \"$0\")/..\"\n" + pip + "\n;; esac\n"
		if err := os.MkdirAll(filepath.Join(root, "p"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "p", "python3"), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := finder(root, map[string]string{"PATH": filepath.Join(root, "p") + ":" + os.Getenv("PATH"), "XDG_CACHE_HOME": filepath.Join(root, "cache")})
	f.Getenv = func(old func(string) string) func(string) string {
		return func(name string) string {
			if name == "PATH" {
				return filepath.Join(root, "p")
			}
			return old(name)
		}
	}(f.Getenv)
	python("exit 1")
	var out bytes.Buffer
	if _, err := f.Install(context.Background(), &out); err == nil || !strings.Contains(err.Error(), "pip install nvidia-cuda-nvcc") {
		t.Errorf("a pip that fails: %v", err)
	}
	if _, err := os.Stat(f.InstallFolder()); !errors.Is(err, os.ErrNotExist) {
		t.Error("something is left of it")
	}
	python("d=lib/python3.11/site-packages/nvidia/cu13/bin; mkdir -p $d; printf '#!/bin/sh\\necho \"Cuda compilation tools, release 13.5, V13.5.37\"\\n' > $d/nvcc; chmod +x $d/nvcc")
	got, err := f.Install(context.Background(), &out)
	if err != nil || got.Version != "13.5.37" {
		t.Fatalf("%+v, %v\n%s", got, err, out.String())
	}
	if found, err := f.FindNVCC(context.Background()); err != nil || found.Path != got.Path || found.From != "fencepost doctor --install" {
		t.Errorf("found %+v, %v", found, err)
	}
	if !strings.Contains(out.String(), "install nvidia-cuda-nvcc nvidia-cuda-runtime") {
		t.Errorf("pip was told %q", out.String())
	}
}
