package toolchain

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"
)

//go:embed intrinsics.h
var intrinsics []byte

// writeIntrinsics writes to a folder the header of intrinsics that the device compiler refuses at -O0, unless it
// exists, and returns its path. The name contains a hash of the text, because makefiles depend on the file and other
// versions of Fencepost may share the folder.
func writeIntrinsics(dir string) (path string, err error) {
	sum := sha256.Sum256(intrinsics)
	path = filepath.Join(dir, "intrinsics-"+hex.EncodeToString(sum[:6])+".h")
	if old, err := os.ReadFile(path); err == nil && string(old) == string(intrinsics) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	// Rename it into place: another process may be compiling with it.
	tmp, err := os.CreateTemp(dir, "intrinsics-*.tmp")
	if err != nil {
		return "", err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(intrinsics)
	if e := tmp.Chmod(0o644); err == nil {
		err = e
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", err
	}
	return path, os.Rename(tmp.Name(), path)
}
