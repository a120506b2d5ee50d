package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestJITEnv checks that the stand-ins of NVRTC and nvJitLink come before the libraries that a program is linked with.
func TestJITEnv(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("gcc is not installed")
	}
	dir := t.TempDir()
	gcc := func(text string, args ...string) {
		t.Helper()
		source := filepath.Join(dir, "a.c")
		if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("gcc", append([]string{source}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	const main = "int nvrtcVersion(void), nvJitLinkVersion(void); int main(void) { return "
	gcc("int nvrtcVersion(void) { return 0; }", "-shared", "-Wl,-soname,libnvrtc.so.12", "-o", "libnvrtc.so.12")
	gcc("int nvJitLinkVersion(void) { return 0; }", "-shared", "-Wl,-soname,libnvJitLink.so.13", "-o", "libnvJitLink.so.13")
	gcc(main+"nvrtcVersion() + nvJitLinkVersion(); }", "-o", "both", "-L.", "-l:libnvrtc.so.12", "-l:libnvJitLink.so.13", "-Wl,-rpath,$ORIGIN", "-Wl,--no-as-needed")
	gcc(main+"0; }", "-o", "neither")
	t.Setenv("LD_LIBRARY_PATH", "")
	want := []string{"FENCEPOST_NVRTC_12=" + filepath.Join(dir, "libnvrtc.so.12"), "FENCEPOST_NVJITLINK_13=" + filepath.Join(dir, "libnvJitLink.so.13"),
		"LD_PRELOAD=/libs/python/libnvrtc.so.12:/libs/python/libnvJitLink.so.13"}
	if got := jitEnv(filepath.Join(dir, "both"), "/libs"); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := jitEnv(filepath.Join(dir, "neither"), "/libs"); len(got) > 0 {
		t.Errorf("%q of a program without them", got)
	}
}
