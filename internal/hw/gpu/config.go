// Package gpu is a timing model of a GPU that executes kernels: it picks the warp that steps next, and computes how long each step
// takes in streaming multiprocessors (SMs), their L1 caches, the network, the banks of the L2 cache and DRAM. A race detector in
// hardware is described to it as data (Detector): what its packets hold, which metadata a check accesses, how long it takes.
//
// # What the model has
//
//   - Blocks are given to SMs as there is room for their threads and shared memory; PTX has virtual registers, so they do not count.
//   - Each scheduler of an SM issues an instruction a cycle, of the warp that it issued last if that is ready, and else of the
//     oldest one (greedy, then oldest). A warp is ready when the registers of its next instruction are: it does not wait for loads.
//   - An access of a warp becomes one transaction for each line of 128 bytes. The memory unit of an SM takes one a cycle.
//   - Weak loads of global memory go through L1; stores evict its line and go to L2, as do atomic operations and accesses that are
//     not weak. Local memory is written back. Constants and parameters always hit their cache.
//   - Each SM and each bank of L2 has a port into the network and one out of it, which a packet occupies for its flits. Packets
//     do not conflict in between.
//   - DRAM channels have banks with open rows. Requests are served in the order in which they were issued, not with row hits first.
//   - Each kernel begins with cold caches.
//
// # What detectors cost
//
// Seed 003, section V, names three costs, each of which can be switched off: waiting for the detector when a load hits L1 (LHD),
// what is added to packets (NOC), and accesses to metadata (MD).
package gpu

import (
	"bytes"
	"fmt"

	"github.com/pelletier/go-toml/v2"
)

// Config describes a GPU. Latencies are in cycles of the cores unless a comment says otherwise, sizes in bytes.
type Config struct {
	SMs            int `toml:"sms" json:"sms"`
	Schedulers     int `toml:"schedulers" json:"schedulers"` // of an SM
	WarpsPerSM     int `toml:"warps_per_sm" json:"warps_per_sm"`
	BlocksPerSM    int `toml:"blocks_per_sm" json:"blocks_per_sm"`
	SharedBytes    int `toml:"shared_bytes" json:"shared_bytes"` // of an SM
	ALULatency     int `toml:"alu_latency" json:"alu_latency"`
	SharedLatency  int `toml:"shared_latency" json:"shared_latency"`
	L1Bytes        int `toml:"l1_bytes" json:"l1_bytes"`
	L1Ways         int `toml:"l1_ways" json:"l1_ways"`
	L1Latency      int `toml:"l1_latency" json:"l1_latency"`
	L2Bytes        int `toml:"l2_bytes" json:"l2_bytes"`
	L2Ways         int `toml:"l2_ways" json:"l2_ways"`
	L2Latency      int `toml:"l2_latency" json:"l2_latency"`
	FlitBytes      int `toml:"flit_bytes" json:"flit_bytes"`
	HeaderBytes    int `toml:"header_bytes" json:"header_bytes"` // of a packet
	NetworkLatency int `toml:"network_latency" json:"network_latency"`
	Channels       int `toml:"channels" json:"channels"` // of DRAM; as many banks has L2
	CoreMHz        int `toml:"core_mhz" json:"core_mhz"`
	DRAMMHz        int `toml:"dram_mhz" json:"dram_mhz"`
	DRAMLatency    int `toml:"dram_latency" json:"dram_latency"` // of the memory controller
	DRAMBanks      int `toml:"dram_banks" json:"dram_banks"`     // of a channel
	DRAMRow        int `toml:"dram_row_bytes" json:"dram_row_bytes"`
	DRAMWidth      int `toml:"dram_bytes_per_clock" json:"dram_bytes_per_clock"` // of a channel
	// In clocks of the DRAM.
	RRD int `toml:"t_rrd" json:"t_rrd"`
	RCD int `toml:"t_rcd" json:"t_rcd"`
	RAS int `toml:"t_ras" json:"t_ras"`
	RP  int `toml:"t_rp" json:"t_rp"`
	RC  int `toml:"t_rc" json:"t_rc"`
	CL  int `toml:"t_cl" json:"t_cl"`
}

// Fermi is table V of seed 003. Where that is silent, the values are those of a GTX 480 as GPGPU-Sim 3.2 configures it, whose
// timing of DRAM table V repeats: two schedulers, 700 MHz and 924 MHz, flits of 32 bytes, 120 cycles of L2, 100 of the memory
// controller; the bandwidth of DRAM is the 177 GB/s of that card, over twelve channels. Latencies of arithmetic and shared memory and
// the size of headers are round numbers near those.
func Fermi() Config {
	return Config{SMs: 15, Schedulers: 2, WarpsPerSM: 32, BlocksPerSM: 8, SharedBytes: 48 << 10, ALULatency: 10, SharedLatency: 24,
		L1Bytes: 16 << 10, L1Ways: 4, L1Latency: 20, L2Bytes: 1536 << 10, L2Ways: 8, L2Latency: 120,
		FlitBytes: 32, HeaderBytes: 8, NetworkLatency: 8, Channels: 12, CoreMHz: 700, DRAMMHz: 924,
		DRAMLatency: 100, DRAMBanks: 16, DRAMRow: 2 << 10, DRAMWidth: 16, RRD: 6, RCD: 12, RAS: 28, RP: 12, RC: 40, CL: 12}
}

// Parse reads a configuration as TOML. What the text does not name keeps the value of Fermi.
func Parse(text []byte) (Config, error) {
	c := Fermi()
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		if strict, ok := err.(*toml.StrictMissingError); ok {
			return c, fmt.Errorf("%s", strict.String())
		}
		return c, err
	}
	return c, c.check()
}

// check tells what no GPU can have.
func (c *Config) check() error {
	for _, n := range []struct {
		name string
		n    int
	}{{"sms", c.SMs}, {"schedulers", c.Schedulers}, {"warps_per_sm", c.WarpsPerSM}, {"blocks_per_sm", c.BlocksPerSM}, {"l1_ways", c.L1Ways},
		{"l2_ways", c.L2Ways}, {"flit_bytes", c.FlitBytes}, {"channels", c.Channels}, {"core_mhz", c.CoreMHz}, {"dram_mhz", c.DRAMMHz},
		{"dram_banks", c.DRAMBanks}, {"dram_row_bytes", c.DRAMRow}, {"dram_bytes_per_clock", c.DRAMWidth}, {"alu_latency", c.ALULatency}} {
		if n.n < 1 {
			return fmt.Errorf("%s is %d, and must be 1 or more", n.name, n.n)
		}
	}
	for _, n := range []struct {
		name string
		n    int
	}{{"shared_latency", c.SharedLatency}, {"l1_latency", c.L1Latency}, {"l2_latency", c.L2Latency}, {"network_latency", c.NetworkLatency},
		{"header_bytes", c.HeaderBytes}, {"dram_latency", c.DRAMLatency}, {"t_rrd", c.RRD}, {"t_rcd", c.RCD}, {"t_ras", c.RAS},
		{"t_rp", c.RP}, {"t_rc", c.RC}, {"t_cl", c.CL}, {"shared_bytes", c.SharedBytes}} {
		if n.n < 0 {
			return fmt.Errorf("%s is %d, and must not be negative", n.name, n.n)
		}
	}
	if c.L1Bytes < lineBytes*c.L1Ways {
		return fmt.Errorf("l1_bytes is %d, and %d ways take %d", c.L1Bytes, c.L1Ways, lineBytes*c.L1Ways)
	}
	if least := lineBytes * c.L2Ways * c.Channels; c.L2Bytes < least {
		return fmt.Errorf("l2_bytes is %d, and %d ways in %d banks take %d", c.L2Bytes, c.L2Ways, c.Channels, least)
	}
	return nil
}

// Detector is what a race detector in hardware costs.
type Detector struct {
	Name, Doc string
	// Judge is the detector that tells of races.
	Judge string
	// InfoBytes are added to each packet of an access to global memory, and make up the packet of a load that hits L1, beside its
	// header.
	InfoBytes int
	// FenceBytes are those of the packet that a fence sends beside its header; 0: none.
	FenceBytes int
	// For DataBytes of global memory there is a word of metadata of WordBytes. A check reads the words of what is accessed, and
	// writes them.
	DataBytes, WordBytes int
	// Latency is how long a check takes after its metadata have been read, Interval how many cycles after one the next packet is
	// taken by the detector of a bank.
	Latency, Interval int
	// Buffer is how many packets of loads that hit L1 may wait in an SM until the detector takes them, before the next such load
	// stalls. Queue is how many packets a bank's detector has taken and not yet checked.
	Buffer, Queue int
}

// Detectors returns the designs. Seed 003 gives the width of metadata (figure 7) and what packets hold (section IV-A):
// kind of access, warp and block (17 bits together), barrier (8), fences (12), filter (16), the mask of the lanes (32):
// 11 bytes. It does not give latencies, buffers or how many detectors there are; here each bank of L2 has one.
func Detectors() []Detector {
	scord := Detector{Judge: "scord", InfoBytes: 11, FenceBytes: 4, WordBytes: 8, Latency: 4, Interval: 1, Buffer: 16, Queue: 64}
	base, cached, hirace := scord, scord, scord
	base.Name, base.Doc, base.DataBytes = "scord-base", "ScoRD without a cache of metadata: 8 bytes for each 4", 4
	cached.Name, cached.Doc, cached.DataBytes = "scord", "ScoRD with a cache of metadata: 8 bytes for each 64", 64
	// An access of HiRace sends its state transition's input: thread (26 bits), the clocks of block and warp (16 each) and the kind of
	// access; threads of a warp follow each other, so that one packet with a mask stands for all. Barriers are counted in the SM.
	hirace.Name, hirace.Doc, hirace.Judge = "hirace", "HiRace in hardware: 8 bytes for each 4, nothing sent by fences", "hirace"
	hirace.InfoBytes, hirace.FenceBytes, hirace.DataBytes = 12, 0, 4
	return []Detector{cached, base, hirace}
}

// Costs says which costs of a detector take time.
type Costs struct{ LHD, NOC, MD bool }

// All is every cost.
func All() Costs { return Costs{true, true, true} }
