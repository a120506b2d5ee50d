package record

import (
	"io"
	"syscall"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
)

// EnvName is the variable that tells the recorder where the shared memory is.
const EnvName = "FENCEPOST_CPU"

// Options say what runs.
type Options struct {
	Path           string
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Outlives       bool // the program runs on when this process is killed
	// Process is called for each process that records, with the names of what its events are about, and gives what takes the
	// events. Each process has a goroutine.
	Process func(names *Names) (sink func([]cpu.Event))
}

// Result is how a run ended.
type Result struct {
	Exit      int
	Signal    syscall.Signal // 0 if none ended it
	Processes []Recorded     // in the order in which they began
	Unseen    int            // processes for which there was no room
	Processor time.Duration  // what the program took of the processor
}

// Recorded is what was recorded of a process.
type Recorded struct {
	Names                     *Names
	Events                    uint64
	Threads, Variables, Syncs int
	Problems                  []string // what was not recorded
}
