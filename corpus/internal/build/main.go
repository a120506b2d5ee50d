// Command build makes the .ptx files of the corpus from their sources with the nvcc of this machine. It is run by "go
// generate ./corpus", in the folder corpus. Its arguments, if any, name the sources to compile. It finally packs all
// programs into the file that package corpus embeds; with -pack it does only that.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"fencepost.dev/fencepost/corpus/internal/compile"
)

func main() {
	err := error(nil)
	if sources := os.Args[1:]; !slices.Equal(sources, []string{"-pack"}) {
		err = build(sources)
	}
	if err == nil {
		err = pack("programs.zip.zst")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// build compiles sources, or all of the corpus if none are given, and removes nothing.
func build(sources []string) error {
	nvcc, err := compile.FindNVCC()
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		if sources, err = filepath.Glob("*/*.cu"); err != nil {
			return err
		}
	}
	errs := make([]error, len(sources))
	slots := make(chan struct{}, runtime.NumCPU())
	var wg sync.WaitGroup
	for i, source := range sources {
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer func() { <-slots; wg.Done() }()
			errs[i] = buildOne(nvcc, source)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func buildOne(nvcc, source string) error {
	ptx, err := compile.PTX(nvcc, source)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(source, ".cu")+".ptx", []byte(ptx), 0o644)
}
