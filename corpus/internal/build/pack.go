package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// window is the window of the compression, in bytes. It covers all programs, which resemble each other.
const window = 1 << 25

// pack writes the programs of all folders, except those of packages, as a compressed ZIP file whose files are not
// compressed. Equal programs give equal bytes.
func pack(to string) error {
	names, err := filepath.Glob("*/*.*")
	if err != nil {
		return err
	}
	var plain bytes.Buffer
	z := zip.NewWriter(&plain)
	for _, name := range names {
		if beside, err := filepath.Glob(filepath.Dir(name) + "/*.go"); err != nil || len(beside) > 0 {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		w, err := z.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Store})
		if err != nil {
			return err
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer e.Close()
	return os.WriteFile(to, e.EncodeAll(plain.Bytes(), nil), 0o644)
}
