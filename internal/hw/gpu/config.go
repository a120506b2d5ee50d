// Package gpu is a timing model of a GPU that executes kernels. It chooses the warp that steps next, and computes how
// long each step takes in streaming multiprocessors (SMs), their L1 caches, the network, the banks of the L2 cache and
// DRAM. Detector describes a race detector in hardware as data: the contents of its packets, the metadata that a check
// accesses, and the time that it takes.
//
// # What is modelled
//
//   - An SM gets blocks while it has room for their threads and shared memory. Registers do not limit it, because PTX
//     has virtual registers.
//   - Each scheduler of an SM issues one instruction a cycle: of the warp that it issued last if that is ready,
//     otherwise of the oldest ready warp (greedy, then oldest). A warp is ready when the registers of its next
//     instruction are available. So it waits for a load only when it uses the result.
//   - An access of a warp becomes one transaction for each line of 128 bytes. The memory unit of an SM accepts one
//     transaction a cycle.
//   - Weak loads of global memory use L1. Stores evict their line from L1 and go to L2. So do atomic operations and
//     accesses that are not weak. Local memory is written back. Constants and parameters always hit their cache.
//   - Each SM and each bank of L2 has a port into the network and a port out of it. A packet occupies a port for its
//     flits. Packets do not conflict inside the network.
//   - A DRAM channel has banks with open rows. Requests are served in the order of issue. Row hits are not preferred.
//   - Each kernel begins with empty caches.
//
// # The costs of detectors
//
// Seed 003, section V, names three costs. Each can be switched off: the wait for the detector when a load hits L1
// (LHD), the bytes added to packets (NOC), and the accesses to metadata (MD).
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
	Channels       int `toml:"channels" json:"channels"` // of DRAM; L2 has as many banks
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

// Fermi returns the GPU of table V of seed 003. Where the table has no value, this is that of a GTX 480 as GPGPU-Sim
// 3.2 configures it, whose DRAM timing table V repeats: two schedulers, 700 MHz and 924 MHz, flits of 32 bytes, 120
// cycles for L2 and 100 for the memory controller. The bandwidth of DRAM is that card's 177 GB/s over twelve channels.
// The latencies of arithmetic and shared memory and the size of headers are round numbers near those of the card.
func Fermi() Config {
	return Config{SMs: 15, Schedulers: 2, WarpsPerSM: 32, BlocksPerSM: 8, SharedBytes: 48 << 10, ALULatency: 10, SharedLatency: 24,
		L1Bytes: 16 << 10, L1Ways: 4, L1Latency: 20, L2Bytes: 1536 << 10, L2Ways: 8, L2Latency: 120,
		FlitBytes: 32, HeaderBytes: 8, NetworkLatency: 8, Channels: 12, CoreMHz: 700, DRAMMHz: 924,
		DRAMLatency: 100, DRAMBanks: 16, DRAMRow: 2 << 10, DRAMWidth: 16, RRD: 6, RCD: 12, RAS: 28, RP: 12, RC: 40, CL: 12}
}

// Parse reads a configuration as TOML. Omitted values are those of Fermi.
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

// check returns an error if no GPU can have the configuration.
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

// Detector describes the costs of a race detector in hardware.
type Detector struct {
	Name, Doc string
	// Judge is the name of the detector that finds the races.
	Judge string
	// InfoBytes are added to each packet of an access to global memory. A load that hits L1 sends a packet of these
	// bytes and a header.
	InfoBytes int
	// FenceBytes are the bytes, besides the header, of the packet that a fence sends. 0 means that fences send none.
	FenceBytes int
	// Each DataBytes of global memory have a word of metadata of WordBytes. A check reads and writes the words of the
	// accessed bytes.
	DataBytes, WordBytes int
	// Latency is the number of cycles of a check after its metadata have been read. Interval is the number of cycles
	// after which the detector of a bank accepts the next packet.
	Latency, Interval int
	// Buffer is the number of packets of loads that hit L1 that may wait in an SM for the detector before the next such
	// load stalls. Queue is the number of packets that a bank's detector may have accepted and not yet checked.
	Buffer, Queue int
}

// Detectors returns the designs. Seed 003 gives the size of metadata (figure 7) and the contents of packets (section
// IV-A): kind of access, warp and block (17 bits together), barrier (8), fences (12), filter (16), the mask of the
// lanes (32), in all 11 bytes. It does not give latencies, buffers or the number of detectors. Here each bank of L2 has
// one.
func Detectors() []Detector {
	scord := Detector{Judge: "scord", InfoBytes: 11, FenceBytes: 4, WordBytes: 8, Latency: 4, Interval: 1, Buffer: 16, Queue: 64}
	base, cached, hirace := scord, scord, scord
	base.Name, base.Doc, base.DataBytes = "scord-base", "ScoRD without a cache of metadata: 8 bytes for each 4", 4
	cached.Name, cached.Doc, cached.DataBytes = "scord", "ScoRD with a cache of metadata: 8 bytes for each 64", 64
	// A packet of HiRace has the input of its state transition: thread (26 bits), the clocks of block and warp (16
	// each) and the kind of access. The threads of a warp have consecutive numbers, so one packet with a mask suffices
	// for all. Barriers are counted in the SM.
	hirace.Name, hirace.Doc, hirace.Judge = "hirace", "HiRace in hardware: 8 bytes for each 4, nothing sent by fences", "hirace"
	hirace.InfoBytes, hirace.FenceBytes, hirace.DataBytes = 12, 0, 4
	return []Detector{cached, base, hirace}
}

// Costs selects the costs of a detector that take time.
type Costs struct{ LHD, NOC, MD bool }

// All selects every cost.
func All() Costs { return Costs{true, true, true} }
