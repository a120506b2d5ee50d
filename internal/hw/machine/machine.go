// Package machine is the common part of the simulated processors of CPU programs: the addresses of variables, the core
// on which a thread runs, and the cost of instructions without race detection.
//
// A trace contains accesses and synchronisation but no other instructions. So each access stands for several
// instructions, the others of which take a cycle each (Config.Instructions). Accesses to the stack are among the
// others: they are not in traces, and the designs do not check them.
package machine

import (
	"fmt"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/hw/cache"
)

// Config describes a processor and how a trace maps to it.
type Config struct {
	Caches cache.Config
	// VariableBytes is the size of a variable, a power of two up to a line. Variable i lies at address i times this.
	VariableBytes int
	// Instructions is the number of instructions for which an event stands, including itself.
	Instructions int
	// Table and Software are latencies in cycles: of a look-up in a table of another core, and of a software handler
	// without its memory accesses.
	Table, Software int
}

// Thesis is the processor of seed 001, section 4.4. The size of variables and the number of instructions are not from
// the thesis, which runs programs: 4 bytes, and one access in three instructions.
func Thesis() Config {
	return Config{Caches: cache.Thesis(), VariableBytes: 4, Instructions: 3, Table: 10, Software: 500}
}

// MaxVariables is the number of variables for which a processor has addresses. It also bounds the number of
// synchronisation objects.
const MaxVariables = 1 << 25

// The spaces of lines.
const (
	Data cache.Line = iota << cache.SpaceShift
	Primary
	Secondary
	Syncs
	Histories // of the software layer
	Radish    // metadata of Radish, several lines for one of data
)

// DataLine is the line of a variable.
func (c *Config) DataLine(x uint32) cache.Line {
	return cache.Line(uint64(x) * uint64(c.VariableBytes) / cache.LineBytes)
}

// HistoryLine is the line of a variable's history in the software layer, which takes 16 bytes.
func HistoryLine(x uint32) cache.Line { return Histories + cache.Line(x/4) }

// Core is the core of a thread.
func (c *Config) Core(thread uint16) int {
	if n := int(thread); n < c.Caches.Cores {
		return n
	}
	return int(thread) % c.Caches.Cores
}

// Check returns the reason why a processor cannot run an event; nil if it can.
func Check(e *cpu.Event) error {
	if t := e.Op.Table(); (t == cpu.Variables || t == cpu.Syncs) && e.Object >= MaxVariables {
		return fmt.Errorf("the trace has more than %d variables or synchronisation objects", MaxVariables)
	}
	return nil
}

// Counts is the counts of a processor.
type Counts struct {
	Events       uint64 `json:"events"`
	Accesses     uint64 `json:"accesses"` // of variables
	Instructions uint64 `json:"instructions"`
	Cycles       uint64 `json:"cycles"` // of all cores
}

// CPI is the number of cycles per instruction.
func (c *Counts) CPI() float64 { return float64(c.Cycles) / float64(max(c.Instructions, 1)) }

// Base is a processor without race detection.
type Base struct {
	Config Config
	Caches *cache.System
	Counts Counts
}

// NewBase makes a processor that has run nothing.
func NewBase(c Config) *Base { return &Base{Config: c, Caches: cache.New(c.Caches)} }

// Step runs an event and returns the latency of its memory access.
func (b *Base) Step(e *cpu.Event) (latency int) {
	core := b.Config.Core(e.Thread)
	switch e.Op {
	case cpu.Read, cpu.Write:
		b.Counts.Accesses++
		latency = b.Caches.Access(core, b.Config.DataLine(e.Object), e.Op == cpu.Write)
	case cpu.None, cpu.Begin, cpu.End, cpu.Fork, cpu.Join:
		latency = 1
	default: // a synchronisation object has a line of its own
		latency = b.Caches.Access(core, Syncs+cache.Line(e.Object), e.Op != cpu.AtomicRead)
	}
	b.Counts.Events++
	b.Counts.Instructions += uint64(b.Config.Instructions)
	b.Counts.Cycles += uint64(b.Config.Instructions - 1 + latency)
	return latency
}
