package record

import (
	"io"
	"syscall"
	"time"

	"fencepost.dev/fencepost/internal/cpu"
)

// EnvName is the environment variable that tells the recorder where the shared memory is.
const EnvName = "FENCEPOST_CPU"

// Options select what to run.
type Options struct {
	Path           string
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Outlives       bool // the program keeps running if this process is killed
	// Process is called for each process that records, with the names of its events. It returns the receiver of the
	// events. Each process has its own goroutine.
	Process func(names *Names) (sink func([]cpu.Event))
}

// Result describes a run that has ended.
type Result struct {
	Exit      int
	Signal    syscall.Signal // the signal that ended the program; 0 for none
	Processes []Recorded     // in the order in which they began
	Unseen    int            // number of processes that could not be recorded because there was no room
	Processor time.Duration  // processor time of the program
}

// Recorded describes the recording of a process.
type Recorded struct {
	Names                     *Names
	Events                    uint64
	Threads, Variables, Syncs int
	Problems                  []string // what was not recorded
}
