package papers

import "fmt"

// lb is the litmus test of load buffering with n threads, which table 5 of the GPUMC paper counts.
const lb = `C LB
int x[%d]; grid %[1]d, 1;
kernel {
  int a = load(x[tid], rlx, gpu);
  store(x[(tid + 1) %% gridDim], 1, rlx, gpu);
}`

// files returns the files that the commands use, by name.
func files() map[string]string {
	f := map[string]string{}
	for _, n := range []int{3, 7, 12, 18, 22} {
		f[fmt.Sprintf("lb%d.litmus", n)] = fmt.Sprintf(lb, n)
	}
	return f
}

const (
	device     = "Not reproduced: it needs a GPU and the times of native runs of instrumented programs. The overhead of our own detectors is in [benchmarks.md](benchmarks.md)."
	suites     = "Not reproduced: it needs a GPU, and programs of suites that we do not have (Rodinia, SHOC, CUB, CUDA samples)."
	parsnipRun = "fencepost simulate --hw all --program all --events 200000"
	parsnipAll = "fencepost simulate --hw all --program all"
	tiny       = "The programs of `corpus/scopedapps` are as small as tests need, with 4 blocks at most. Their data stay in L2, and the overhead is near 0."
)

// Papers returns the papers.
func Papers() []Paper {
	return []Paper{
		{"Predictive Data Race Detection for GPUs (PreDataR)", []Item{
			{Name: "Table 1", Title: "races that one run shows, and races that need prediction",
				Printed: "three classes of small kernels; the totals are in [predictability.md](predictability.md), which has each kernel",
				Command: "fencepost compare corpus/predict", Keep: []string{"detector "},
				Why: "The kernels are written anew from the text, and chosen so that each detector finds as many kernels as in the table. The output above counts lines, not kernels."},
			{Name: "Table 2", Title: "unique races in benchmarks", Other: suites + " Our versions of the ScoR applications are at table VI of ScoRD."},
			{Name: "Table 3", Title: "run times", Printed: "geometric mean over native: Barracuda+ 72.3, PreDataR 97.5, iGUARD 3.6", Other: device},
			{Name: "Table 4", Title: "memory", Other: "See \"Compression of clocks\" in [benchmarks.md](benchmarks.md), on our kernels. The printed figures are for programs that need a GPU."},
			{Name: "Figure 12", Title: "growth with blocks", Other: "See \"Growth with blocks\" in [benchmarks.md](benchmarks.md)."},
		}},
		{"Efficient Precise Dynamic Data Race Detection for CPU and GPU (thesis)", []Item{
			{Name: "Figures 3.2, 3.12 to 3.14 and table 3.1", Title: "SlimFast against FastTrack",
				Printed: "redundancy of several orders of magnitude; 1.83 times less memory of the whole Java heap; 1.4 times faster than a FastTrack with a lock for each variable",
				Command: "the programs of `corpus/cpu/kernels`, recorded", Full: "the programs of `corpus/cpu/kernels`, recorded, 15 rounds", Measure: slimFast,
				Why: "S and Q are the mean numbers of entries at the end of an epoch. Our sets hold 16 entries, and the newest ones replace the oldest. Memory is only that of metadata. The recorder omits repeated accesses of an epoch, which the thesis counts. " +
					"\"Objects\" is FastTrack with an object for each variable, as in RoadRunner; \"flat\" is ours; \"locks\" is FastTrack with a lock in each object. " +
					"SlimFast needs no locks, but loses time if many threads read a variable, each in another epoch (btree, sparsemat), because each such read allocates a clock. montecarlo has only 70 variables, so the sets of its threads take most of the memory."},
			{Name: "Figure 4.1", Title: "distinct access histories in a line", Command: parsnipRun, Full: parsnipAll, Keep: []string{"(figure 4.1)"},
				Why: "The programs are our own kernels, not PARSEC: see [simulate.md](simulate.md)."},
			{Name: "Table 4.2", Title: "an example trace", Other: "A test checks the trace step by step: `go test ./internal/hw/parsnip`."},
			{Name: "Figure 4.7", Title: "slowdown of Parsnip and Radish", Printed: "geometric mean of PARSEC: Parsnip 1.5, at most 2.6; Radish 6.9",
				Command: parsnipRun, Full: parsnipAll, Keep: []string{"(figure 4.7)"},
				Why: "Our programs do nothing but access shared data; a program of PARSEC does other work between its accesses. Our Radish follows the description in the thesis, and has no numeric goal."},
			{Name: "Figure 4.8", Title: "slowdown by threads", Plot: "papers-4.8.svg", Command: "fencepost simulate --hw parsnip --program all --threads 2,4,8,16 --events 200000",
				Full: "fencepost simulate --hw parsnip --program all --threads 2,4,8,16", Keep: []string{"(figure 4.8)"}},
			{Name: "Figure 4.9", Title: "optimisations switched off", Plot: "papers-4.9.svg", Command: parsnipRun, Full: parsnipAll, Keep: []string{"(figure 4.9)"}},
			{Name: "Figure 4.10", Title: "what resolves checks", Printed: "references and the own table resolve at least 84 % of the checks of each program",
				Command: parsnipRun, Full: parsnipAll, Keep: []string{"(figure 4.10)"},
				Why: "In programs with short epochs, tables of 15 clocks are full of old references, and software resolves more checks."},
			{Name: "Figure 4.11", Title: "where the overhead is", Command: parsnipRun, Full: parsnipAll, Keep: []string{"(figure 4.11)"}},
			{Name: "Table 4.3", Title: "events per 1000 instructions", Printed: "at most 1.38 drains and 79.15 rejections (fluidanimate), 2.57 software checks (canneal)",
				Command: parsnipRun, Full: parsnipAll, Keep: []string{"(table 4.3)"}, Why: "The remark on figure 4.10 applies."},
			{Name: "Tables 5.1 and 6.1, figures 5.12 and 6.8", Title: "Barracuda and CURD on GPU benchmarks",
				Printed: "CURD takes 2.88 times native on average", Other: suites},
			{Name: "Figure 5.11", Title: "share of instructions that Barracuda instruments",
				Printed: "at most half of a benchmark's", Other: "See the table of costs in [gpu.md](gpu.md#what-does-it-cost), with and without pruning, on our corpus."},
			{Name: "Figures 6.9 and 6.10", Title: "CURD against Barracuda and CUDA-Racecheck",
				Printed: "geometric means: 17.4 and 2.1 times faster", Other: "Not reproduced on a GPU. The times of our detectors `curd`, `barracuda` and `racecheck` on our kernels are in [benchmarks.md](benchmarks.md#every-detector)."},
			{Name: "Figure 6.11", Title: "parts of CURD's overhead",
				Printed: "instrumentation, shared memory, global memory within blocks and between them, by program", Other: "Not reproduced: the measurement switches off parts of instrumented programs on a GPU, and Fencepost has no mode `curd` ([gpu.md](gpu.md) says why)."},
		}},
		{"HiRace", []Item{
			{Name: "Table II", Title: "races in irregular kernels", Printed: "580 kernels, 346 racy, on 6 graphs; no false positive of HiRace or iGUARD; HiRace finds all that show",
				Command: "fencepost compare corpus/irregular/dag-5", Full: "fencepost compare corpus/irregular", Keep: []string{"Runs by planted bugs"},
				Why: "The suite is our own and has 256 kernels. [irregular.md](irregular.md) shows the results by pattern and graph, and explains the differences between detectors."},
			{Name: "Figure 5", Title: "speed against iGUARD on large graphs", Printed: "HiRace less than 3 times native on average, iGUARD more than 30", Other: device},
			{Name: "Figure 6", Title: "Rodinia", Other: suites},
		}},
		{"ScoRD", []Item{
			{Name: "Table VI", Title: "races that ScoRD catches", Printed: "44 of 44 without the cache of metadata, 43 with it", Command: "fencepost compare corpus/scopedapps", Keep: []string{"detector "},
				Why: "The applications are written anew, and findings are counted by pairs of places in the source. The launches are too small for entries of the cache to collide."},
			{Name: "Table VII", Title: "false positives by granularity", Printed: "4 bytes 0, 8 bytes 72, 16 bytes 88 in all seven; most in the graph applications",
				Command: "programs of `corpus/scopedapps` without a planted race, findings of `scord:granularity=N`", Measure: granularities,
				Why: "Our applications are smaller, with 4 blocks at most. We have not examined why the graph applications have no false positive here."},
			{Name: "Figures 8 to 11", Title: "cycles, DRAM accesses, breakdown, sensitivity; the seven applications",
				Printed: "35 % overhead on average, 1DC 88 %; LHD 16.5, NOC 36.2, MD 47.3 %",
				Command: "fencepost simulate --hw scord,scord-base --resources corpus/scopedapps/colouring corpus/scopedapps/connectivity corpus/scopedapps/convolution corpus/scopedapps/matmul corpus/scopedapps/reduction corpus/scopedapps/rule110 corpus/scopedapps/treesearch",
				Keep:    []string{"(figure 8)", "(figure 9)", "overhead of scord is", "Cycles of scord with", "Counts with scord "}, Why: tiny},
			{Name: "Figures 8 to 11, larger kernels", Title: "the same with the kernels of the benchmarks, and HiRace in hardware",
				Plot: "papers-scord.svg", Command: "the kernels of `internal/bench` on the GPU of table V", Measure: kernels,
				Keep: []string{"(figure 8)", "(figure 9)", "overhead of scord is", "overhead of hirace is", "Cycles of scord with"},
				Why:  "The bytes that ScoRD adds to a packet fit into the flit of the header. So NOC consists mostly of the packets of loads that hit L1; the paper does not say how long its packets are. With the cache, metadata take an eighth of the bandwidth of data, and no access waits for them. Ratios below 1, as for `hashtable`, come from the order of the warps, which depends on the computed time. Kernels that are bound by DRAM, such as `saxpy`, show the cost of metadata without the cache."},
			{Name: "Table VIII", Title: "what detectors support", Other: "See [detectors.md](detectors.md) and [compare.md](compare.md)."},
		}},
		{"GPUMC", []Item{
			{Name: "Tables 1 to 4", Title: "races and barrier divergence of applications; repair", Other: "See [verify-tables.md](verify-tables.md), which a test writes (`go test ./internal/verify -run Tables`). The programs are written anew from the text, and the verdicts are the printed ones."},
			{Name: "Table 5 (and 6)", Title: "load buffering, executions", Printed: "LB-3 7, LB-7 127 (0.4 s), LB-12 4095 (1.3 s), LB-18 262143 (228 s), LB-22 4194303 (5647 s)",
				Command: "fencepost verify lb3.litmus && fencepost verify lb7.litmus && fencepost verify lb12.litmus",
				Full:    "fencepost verify lb12.litmus && fencepost verify lb18.litmus && fencepost verify lb22.litmus",
				Why:     "The program in our language, lb3.litmus:\n\n```\n" + fmt.Sprintf(lb, 3) + "\n```"},
			{Name: "Figure 4, tables 7 to 9", Title: "growth with threads", Other: "See [verify-tables.md](verify-tables.md#figure-4-and-tables-6-to-9-growth): it shows the curves of our programs beside the printed ones."},
		}},
	}
}
