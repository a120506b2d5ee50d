// Package machine is the common part of the simulated processors for CPU programs: the addresses of variables, the core
// on which a thread runs, and the cost of instructions without race detection.
//
// A trace has accesses and synchronisation but no other instructions. So each access counts as several instructions
// (Config.Instructions), and the others take one cycle each. Accesses to the stack are among the others: traces do not
// have them, and the designs do not check them.
package machine

import (
	"fmt"

	"fencepost.dev/fencepost/internal/cpu"
	"fencepost.dev/fencepost/internal/hw/cache"
)

// Config describes a processor and how a trace maps to it.
type Config struct {
	Caches cache.Config
	// VariableBytes is the size of a variable: a power of two, at most a line. Variable i has the address
	// i*VariableBytes.
	VariableBytes int
	// Instructions is the number of instructions that an event counts as, including itself.
	Instructions int
	// Table and Software are latencies in cycles. Table is that of a look-up in a table of another core. Software is
	// that of a software handler without its memory accesses.
	Table, Software int
}

// Thesis returns the processor of seed 001, section 4.4. The thesis runs programs, so it has no size of variables and
// no number of instructions. They are assumed: 4 bytes, and one access in three instructions.
func Thesis() Config {
	return Config{Caches: cache.Thesis(), VariableBytes: 4, Instructions: 3, Table: 10, Software: 500}
}

// MaxVariables is the maximum number of variables of a processor, and also of synchronisation objects.
const MaxVariables = 1 << 25

// The spaces of lines.
const (
	Data cache.Line = iota << cache.SpaceShift
	Primary
	Secondary
	Syncs
	Histories // of the software layer
	Radish    // metadata of Radish, several lines for each line of data
)

// DataLine returns the line of a variable.
func (c *Config) DataLine(x uint32) cache.Line {
	return cache.Line(uint64(x) * uint64(c.VariableBytes) / cache.LineBytes)
}

// HistoryLine returns the line of a variable's history in the software layer. A history takes 16 bytes.
func HistoryLine(x uint32) cache.Line { return Histories + cache.Line(x/4) }

// Core returns the core of a thread.
func (c *Config) Core(thread uint16) int {
	if n := int(thread); n < c.Caches.Cores {
		return n
	}
	return int(thread) % c.Caches.Cores
}

// Check returns the reason why a processor cannot run an event, or nil if it can.
func Check(e *cpu.Event) error {
	if t := e.Op.Table(); (t == cpu.Variables || t == cpu.Syncs) && e.Object >= MaxVariables {
		return fmt.Errorf("the trace has more than %d variables or synchronisation objects", MaxVariables)
	}
	return nil
}

// Counts are the counts of a processor.
type Counts struct {
	Events       uint64 `json:"events"`
	Accesses     uint64 `json:"accesses"` // to variables
	Instructions uint64 `json:"instructions"`
	Cycles       uint64 `json:"cycles"` // of all cores
}

// CPI returns the number of cycles per instruction.
func (c *Counts) CPI() float64 { return float64(c.Cycles) / float64(max(c.Instructions, 1)) }

// Base is a processor without race detection.
type Base struct {
	Config Config
	Caches *cache.System
	Counts Counts
}

// NewBase returns a processor in its initial state.
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
