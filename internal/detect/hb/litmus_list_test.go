package hb

// litmusTests are programs and their findings. ptx and hrf are given only where those models differ from cuda; "none"
// is no finding.
var litmusTests = []struct{ name, program, want, ptx, hrf string }{
	{name: "nothing orders two blocks", program: `begin 0 2 1
		1.0.0 st x
		1.1.0 ld x`, want: "2-3 unordered error"},
	{name: "program order", program: `begin 0 1 1
		1.0.0 st x
		1.0.0 ld x`, want: "none"},
	{name: "read and read", program: `begin 0 2 1
		1.0.0 ld x
		1.1.0 ld x`, want: "none"},

	// Message passing.
	{name: "mp with fences and volatile flag", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 st.volatile f
		1.1.0 ld.volatile f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "4-5 volatile warning", ptx: "none"},
	{name: "mp with fences and atomics", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.0 atom.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.sc.gpu
		1.1.0 ld x`, want: "none"},
	{name: "mp without the consumer's fence", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 ld x`, want: "2-6 missing-fence error", hrf: "none"},
	{name: "mp without the producer's fence", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "2-6 missing-fence error"},
	{name: "mp without the producer's fence, in a launch that takes the place of others", program: `begin 0 1 1
		1.0.0 st y
		1.0.0 st.relaxed.gpu z
		1.0.0 ld y
		end 1
		begin 0 1 1
		2.0.0 st y
		2.0.0 st.relaxed.gpu z
		2.0.0 ld y
		end 2
		begin 0 2 1
		3.0.0 st x
		3.0.0 st.relaxed.gpu f
		3.1.0 ld.relaxed.gpu f
		3.1.0 fence.acq_rel.gpu
		3.1.0 ld x`, want: "12-16 missing-fence error"},
	{name: "mp, producer's fence too narrow", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.cta
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "2-7 insufficient-fence-scope error"},
	{name: "mp, consumer's fence too narrow", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.acq_rel.cta
		1.1.0 ld x`, want: "2-7 insufficient-fence-scope error", hrf: "none"},
	{name: "mp, narrow fences within a block", program: `begin 0 1 64
		1.0.0 st x
		1.0.0 fence.acq_rel.cta
		1.0.0 st.relaxed.cta f
		1.0.32 ld.relaxed.cta f
		1.0.32 fence.acq_rel.cta
		1.0.32 ld x`, want: "none"},
	{name: "mp, narrow flag across blocks", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 st.relaxed.cta f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "2-7 insufficient-atomic-scope error; 4-5 insufficient-atomic-scope error"},
	{name: "mp in shared memory without the consumer's fence", program: `begin 0 1 96
		1.0.0 st x
		1.0.0 fence.acq_rel.cta
		1.0.0 st.relaxed.cta sf
		1.0.32 ld.relaxed.cta sf
		1.0.32 ld x`, want: "2-6 missing-fence error", hrf: "none"},
	{name: "the same by atomic operations, and the data shared too", program: `begin 0 1 96
		1.0.0 st sx
		1.0.0 fence.acq_rel.cta
		1.0.0 atom.relaxed.cta sf
		1.0.32 atom.relaxed.cta sf
		1.0.32 ld sx`, want: "2-6 missing-fence error", hrf: "none"},
	{name: "a flag in shared memory by another warp hands nothing over", program: `begin 0 1 96
		1.0.0 st x
		1.0.64 fence.acq_rel.cta
		1.0.64 st.relaxed.cta sf
		1.0.32 ld.relaxed.cta sf
		1.0.32 ld x`, want: "2-6 missing-barrier error"},
	{name: "nor one by another lane", program: `begin 0 1 96
		1.0.0 st x
		1.0.1 fence.acq_rel.cta
		1.0.1 st.relaxed.cta sf
		1.0.32 ld.relaxed.cta sf
		1.0.32 ld x`, want: "2-6 missing-barrier error"},
	{name: "mp by release and acquire", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "none"},
	{name: "mp, release of scope cta", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.cta f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "2-5 insufficient-atomic-scope error; 3-4 insufficient-atomic-scope error"},
	{name: "mp, release operation, acquire fence", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 atom.release.gpu f
		1.1.0 ld.relaxed.sys f
		1.1.0 fence.acquire.gpu
		1.1.0 ld x`, want: "none"},
	{name: "an acquire fence releases nothing", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acquire.gpu
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "2-6 unordered error"},
	{name: "a release is not retroactive", program: `begin 0 2 1
		1.0.0 st.release.gpu f
		1.0.0 st x
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "3-5 unordered error"},
	{name: "release operation, then strong write to the same location", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "none"},
	{name: "release operation, then strong write elsewhere", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.0.0 st.relaxed.gpu y
		1.1.0 ld.acquire.gpu y
		1.1.0 ld x`, want: "2-6 missing-fence error"},
	{name: "strong read, then acquire of the same location", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "none"},
	{name: "strong read, then acquire elsewhere", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 ld.acquire.gpu y
		1.1.0 ld x`, want: "2-6 missing-fence error", hrf: "none"},
	{name: "red acquires nothing", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 red.relaxed.gpu f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "2-6 unordered error"},
	{name: "weak flag", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 st f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.acq_rel.gpu
		1.1.0 ld x`, want: "2-7 unordered error; 4-5 atomic-mixed-with-plain error"},
	{name: "flag of another size", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 st.release.gpu f:8
		1.1.0 ld.acquire.gpu f:4
		1.1.0 ld x`, want: "2-5 unordered error; 3-4 mixed-size error"},

	// Release sequences.
	{name: "sequence through a relaxed RMW", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 atom.relaxed.gpu f
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x`, want: "none"},
	{name: "sequence broken by a narrow RMW", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 atom.relaxed.cta f
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x`, want: "2-6 insufficient-atomic-scope error; 3-4 insufficient-atomic-scope error; 4-5 insufficient-atomic-scope error"},
	{name: "sequence broken by a strong store", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 st.relaxed.gpu f
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x`, want: "2-6 unordered error"},
	{name: "sequence broken by a weak store", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 st f
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x`, want: "2-6 unordered error; 3-4 atomic-mixed-with-plain error; 4-5 atomic-mixed-with-plain error"},
	{name: "a failed compare-and-swap does not carry on", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 cas.acq_rel.gpu f
		1.1.0 ld x
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x`, want: "none"},
	{name: "two producers, one counter", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 fence.acq_rel.gpu
		1.0.0 red.relaxed.gpu f
		1.1.0 st y
		1.1.0 fence.acq_rel.gpu
		1.1.0 red.relaxed.gpu f
		1.2.0 ld.acquire.gpu f
		1.2.0 ld x
		1.2.0 ld y`, want: "none"},
	{name: "transitive over three threads", program: `begin 0 3 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 st.release.gpu y
		1.2.0 ld.acquire.gpu y
		1.2.0 ld x`, want: "none"},
	{name: "transitive through a block's barrier", program: `begin 0 2 64
		1.0.32 st x
		1.0.* bar.sync 0
		1.0.32 bar.sync 0
		1.0.0 bar.done 0
		1.0.0 st.release.gpu f
		1.1.0 ld.acquire.gpu f
		1.1.0 ld x`, want: "none"},

	// Store buffering and independent reads: atomics never race, weak accesses after them do.
	{name: "store buffering with fence.sc orders nothing", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.1.0 fence.sc.gpu
		1.1.0 ld x`, want: "2-5 unordered error"},
	{name: "independent reads of independent writes", program: `begin 0 4 1
		1.0.0 st.relaxed.gpu x
		1.1.0 st.relaxed.gpu y
		1.2.0 ld.acquire.gpu x
		1.2.0 ld.acquire.gpu y
		1.3.0 ld.acquire.gpu y
		1.3.0 ld.acquire.gpu x`, want: "none"},

	// Barriers.
	{name: "no barrier", program: `begin 0 1 64
		1.0.0 st sx
		1.0.32 ld sx`, want: "2-3 missing-barrier error"},
	{name: "barrier", program: `begin 0 1 64
		1.0.0 st sx
		1.0.* bar.sync 0
		1.0.32 bar.sync 0
		1.0.0 bar.done 0
		1.0.32 ld sx`, want: "none"},
	{name: "the barrier of another block", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 bar.sync 0
		1.0.0 bar.done 0
		1.1.0 bar.sync 0
		1.1.0 bar.done 0
		1.1.0 ld x`, want: "2-7 unordered error"},
	{name: "shared memory is by block", program: `begin 0 2 1
		1.0.0 st sx
		1.1.0 st sx`, want: "none"},
	{name: "two barriers", program: `begin 0 1 64
		1.0.0 st sx
		1.0.0 bar.sync 1
		1.0.32 bar.sync 2
		1.0.0 bar.done 1
		1.0.0 bar.done 2
		1.0.32 ld sx`, want: "2-7 missing-barrier error"},
	{name: "arrive releases", program: `begin 0 1 64
		1.0.0 st sx
		1.0.0 bar.arrive 1
		1.0.32 bar.sync 1
		1.0.0 bar.done 1
		1.0.32 ld sx`, want: "none"},
	{name: "arrive acquires nothing", program: `begin 0 1 64
		1.0.0 bar.arrive 1
		1.0.32 st sx
		1.0.32 bar.sync 1
		1.0.0 bar.done 1
		1.0.0 ld sx`, want: "3-6 missing-barrier error"},
	{name: "after arrive", program: `begin 0 1 64
		1.0.0 bar.arrive 1
		1.0.0 st sx
		1.0.32 bar.sync 1
		1.0.0 bar.done 1
		1.0.32 ld sx`, want: "3-6 missing-barrier error"},
	{name: "exit orders nothing", program: `begin 0 1 64
		1.0.0 st sx
		1.0.0 exit
		1.0.32 bar.sync 0
		1.0.32 bar.done 0
		1.0.32 ld sx`, want: "2-6 missing-barrier error"},
	{name: "barrier in a loop", program: `begin 0 1 64
		1.0.0 st sx
		1.0.0 bar.sync 0
		1.0.32 bar.sync 0
		1.0.0 bar.done 0
		1.0.32 ld sx
		1.0.0 st sx
		1.0.32 ld sy`, want: "6-7 missing-barrier error"},

	// Warps.
	{name: "lockstep, both lanes in the write", program: `begin 0 1 32
		1.0.0+1 st sx
		1.0.1 ld sx`, want: "2-2 unordered error; 2-3 warp-synchronous warning"},
	{name: "divergent lanes", program: `begin 0 1 32
		1.0.0 st sx
		1.0.1 ld sx`, want: "2-3 missing-barrier error"},
	{name: "syncwarp", program: `begin 0 1 32
		1.0.0 st sx
		1.0.* syncwarp
		1.0.1 ld sx`, want: "none"},
	{name: "syncwarp of other lanes", program: `begin 0 1 32
		1.0.0 st sx
		1.0.1+2 syncwarp
		1.0.1 ld sx`, want: "2-4 missing-barrier error"},
	{name: "one instruction, different values", program: `begin 0 1 32
		1.0.0+1 st sx`, want: "2-2 unordered error"},
	{name: "one instruction, same value", program: `begin 0 1 32
		1.0.0+1 st sx =7`, want: "2-2 same-value warning"},
	{name: "same value by two blocks", program: `begin 0 2 1
		1.0.0 st x =1
		1.1.0 st x =1`, want: "2-3 same-value warning"},
	{name: "different values by two blocks", program: `begin 0 2 1
		1.0.0 st x =1
		1.1.0 st x =2`, want: "2-3 unordered error"},
	{name: "same value in the shared byte", program: `begin 0 2 1
		1.0.0 st x:4 =513
		1.1.0 st x+1:1 =2`, want: "2-3 same-value warning"},
	{name: "bytes side by side", program: `begin 0 2 1
		1.0.0 st x:1
		1.1.0 st x+1:1`, want: "none"},
	{name: "byte within a vector", program: `begin 0 2 1
		1.0.0 st x:16
		1.1.0 ld x+15:1`, want: "2-3 unordered error"},

	// Volatile and atomics.
	{name: "volatile and volatile", program: `begin 0 2 1
		1.0.0 st.volatile x
		1.1.0 ld.volatile x`, want: "2-3 volatile warning", ptx: "none"},
	{name: "volatile and weak", program: `begin 0 2 1
		1.0.0 st x
		1.1.0 ld.volatile x`, want: "2-3 unordered error", ptx: "2-3 atomic-mixed-with-plain error"},
	{name: "volatile and atomic", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu x
		1.1.0 ld.volatile x`, want: "2-3 volatile warning", ptx: "none"},
	{name: "atomics of scope gpu", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu x
		1.1.0 atom.relaxed.gpu x`, want: "none"},
	{name: "atomics of scope cta across blocks", program: `begin 0 2 1
		1.0.0 atom.relaxed.cta x
		1.1.0 atom.relaxed.gpu x`, want: "2-3 insufficient-atomic-scope error"},
	{name: "atomics of scope cta within a block", program: `begin 0 1 64
		1.0.0 atom.relaxed.cta x
		1.0.32 atom.relaxed.cta x`, want: "none"},
	{name: "atomic and plain", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu x
		1.1.0 ld x`, want: "2-3 atomic-mixed-with-plain error"},
	{name: "failed compare-and-swap and plain read", program: `begin 0 2 1
		1.0.0 cas.relaxed.gpu x
		1.1.0 ld x`, want: "none"},
	{name: "read-modify-writes of two sizes", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu x:8
		1.1.0 atom.relaxed.gpu x:4`, want: "2-3 mixed-size warning"},
	{name: "the last block resets the counter", program: `begin 0 3 1
		1.0.0 atom.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.2.0 atom.relaxed.gpu f
		1.2.0 st f`, want: "none"},
	{name: "the last block of each turn resets the counter of a barrier", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu x
		1.1.0 atom.relaxed.gpu x
		1.1.0 st x
		1.1.0 fence.acq_rel.gpu
		1.1.0 st.relaxed.gpu f
		1.0.0 ld.relaxed.gpu f
		1.0.0 fence.acq_rel.gpu
		1.1.0 atom.relaxed.gpu x
		1.0.0 atom.relaxed.gpu x
		1.0.0 st x`, want: "none"},
	{name: "a block that has not seen the turn resets the counter", program: `begin 0 3 1
		1.0.0 atom.relaxed.gpu x
		1.1.0 atom.relaxed.gpu x
		1.1.0 st x
		1.1.0 fence.acq_rel.gpu
		1.1.0 st.relaxed.gpu f
		1.2.0 ld.relaxed.gpu f
		1.0.0 atom.relaxed.gpu x
		1.2.0 st x`, want: "2-9 atomic-mixed-with-plain error; 3-9 missing-fence error; 4-8 atomic-mixed-with-plain error; " +
		"4-9 missing-fence error; 8-9 atomic-mixed-with-plain error", hrf: "4-8 atomic-mixed-with-plain error; 8-9 atomic-mixed-with-plain error"},
	{name: "not the last block resets the counter", program: `begin 0 3 1
		1.0.0 atom.relaxed.gpu f
		1.2.0 atom.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.2.0 st f`, want: "2-5 atomic-mixed-with-plain error; 4-5 atomic-mixed-with-plain error"},
	{name: "observation orders nothing but the write", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 atom.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.1.0 st x
		1.1.0 st f`, want: "2-5 missing-fence error"},

	// Within a block, every two fence.sc are morally strong.
	{name: "mp within a block, fence.sc and then syncwarp", program: `begin 0 1 64
		1.0.1 st x
		1.0.0+1 fence.sc.cta
		1.0.0+1 syncwarp
		1.0.0 st.relaxed.cta f
		1.0.32 ld.relaxed.cta f
		1.0.32 fence.sc.cta
		1.0.32 ld x`, want: "none"},
	{name: "mp within a block, syncwarp and then fence.sc", program: `begin 0 1 64
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.0 st.relaxed.cta f
		1.0.32 ld.relaxed.cta f
		1.0.32+33 syncwarp
		1.0.32+33 fence.sc.cta
		1.0.33 ld x`, want: "none"},
	{name: "mp within a block, fence.acq_rel and then syncwarp", program: `begin 0 1 64
		1.0.1 st x
		1.0.0+1 fence.acq_rel.cta
		1.0.0+1 syncwarp
		1.0.0 st.relaxed.cta f
		1.0.32 ld.relaxed.cta f
		1.0.32 fence.sc.cta
		1.0.32 ld x`, want: "2-8 missing-barrier error"},
	{name: "mp across blocks, fence.sc.cta and then syncwarp", program: `begin 0 2 32
		1.0.1 st x
		1.0.0+1 fence.sc.cta
		1.0.0+1 syncwarp
		1.0.0 st.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.1.0 fence.sc.gpu
		1.1.0 ld x`, want: "2-8 insufficient-fence-scope error"},

	// Grid barrier and locks.
	{name: "grid barrier", program: `begin 0 2 1
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.0 atom.relaxed.gpu f
		1.1.0 st y
		1.1.0 fence.sc.gpu
		1.1.0 atom.relaxed.gpu f
		1.0.0 ld.relaxed.gpu f
		1.1.0 ld.relaxed.gpu f
		1.0.0 fence.sc.gpu
		1.1.0 fence.sc.gpu
		1.0.0 ld y
		1.1.0 ld x`, want: "none"},
	{name: "lock", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu f
		1.0.0 fence.sc.gpu
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.0 atom.relaxed.gpu f
		1.1.0 cas.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.1.0 fence.sc.gpu
		1.1.0 st x
		1.1.0 fence.sc.gpu
		1.1.0 atom.relaxed.gpu f`, want: "none"},
	{name: "lock without fences", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu f
		1.0.0 st x
		1.0.0 atom.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.1.0 st x
		1.1.0 atom.relaxed.gpu f`, want: "3-6 missing-fence error"},
	{name: "lock without the fence before unlock", program: `begin 0 2 1
		1.0.0 atom.relaxed.gpu f
		1.0.0 fence.sc.gpu
		1.0.0 st x
		1.0.0 atom.relaxed.gpu f
		1.1.0 atom.relaxed.gpu f
		1.1.0 fence.sc.gpu
		1.1.0 st x`, want: "4-8 missing-fence error"},
	{name: "lock of scope cta", program: `begin 0 2 1
		1.0.0 swap.acquire.cta f
		1.0.0 st x
		1.0.0 swap.release.cta f
		1.1.0 swap.acquire.cta f
		1.1.0 st x
		1.1.0 swap.release.cta f`, want: "2-5 insufficient-atomic-scope error; 2-7 insufficient-atomic-scope error; 3-6 insufficient-lock-scope error; 4-5 insufficient-atomic-scope error; 4-7 insufficient-atomic-scope error"},
	{name: "lock with narrow fences", program: `begin 0 2 1
		1.0.0 swap.relaxed.gpu f
		1.0.0 fence.sc.cta
		1.0.0 st x
		1.0.0 fence.sc.cta
		1.0.0 swap.relaxed.gpu f
		1.1.0 swap.relaxed.gpu f
		1.1.0 fence.sc.cta
		1.1.0 st x`, want: "4-9 insufficient-lock-scope error"},
	{name: "one side without the lock", program: `begin 0 2 1
		1.0.0 swap.relaxed.gpu f
		1.0.0 fence.sc.gpu
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.0 atom.relaxed.gpu f
		1.1.0 st x`, want: "4-7 missing-lock error"},
	{name: "another warp has read the flag since", program: `begin 0 1 96
		1.0.0 st x
		1.0.0 atom.relaxed.cta f
		1.0.32 atom.relaxed.cta f
		1.0.64 atom.relaxed.cta f
		1.0.32 ld x`, want: "2-6 missing-fence error"},
	{name: "the last of a warp's lanes to count sees the lane before it", program: `begin 0 1 32
		1.0.0 st x
		1.0.* atom.relaxed.cta sf
		1.0.31 ld x`, want: "2-4 missing-fence error"},
	{name: "a fence, a barrier, and a warp without fences counts the block done", program: `begin 0 2 64
		1.0.0 st x
		1.0.0 fence.sc.gpu
		1.0.* bar.sync 0
		1.0.32+33+34+35+36+37+38+39+40+41+42+43+44+45+46+47+48+49+50+51+52+53+54+55+56+57+58+59+60+61+62+63 bar.sync 0
		1.0.* bar.done 0
		1.0.32 atom.relaxed.gpu f+256
		1.1.0 ld.relaxed.gpu f+256
		1.1.0 fence.sc.gpu
		1.1.0 ld x`, want: "none"},
	{name: "a flag that another atomic polls is no lock", program: `begin 0 2 1
		1.0.0 st x
		1.1.0 atom.relaxed.gpu f
		1.1.0 fence.sc.gpu
		1.1.0 ld x`, want: "2-5 unordered error"},

	// Launches and the host side.
	{name: "one stream", program: `begin 0 1 1
		1.0.0 st x
		end 1
		begin 0 1 1
		2.0.0 ld x`, want: "none"},
	{name: "programmatic launch without wait", program: `begin 0 1 1
		1.0.0 st x
		1.0.0 launch_dependents
		end 1
		early 0 1 1
		2.0.0 ld x`, want: "2-6 inter-kernel error"},
	{name: "programmatic launch, wait", program: `begin 0 1 1
		1.0.0 launch_dependents
		1.0.0 st x
		end 1
		early 0 1 1
		2.0.0 wait
		2.0.0 ld x`, want: "none"},
	{name: "programmatic launch, nothing launches dependents", program: `begin 0 1 1
		1.0.0 st x
		end 1
		early 0 1 1
		2.0.0 ld x`, want: "none"},
	{name: "programmatic launch, the attribute is missing", program: `begin 0 1 1
		1.0.0 launch_dependents
		1.0.0 st x
		end 1
		begin 0 1 1
		2.0.0 ld x`, want: "none"},
	{name: "programmatic launch, one thread waits for its block", program: `begin 0 1 1
		1.0.0 launch_dependents
		1.0.0 st x
		1.0.0 st y
		end 1
		early 0 1 2
		2.0.0 wait
		2.0.1 ld y
		2.0.* bar.sync 0
		2.0.0 bar.done 0
		2.0.1 ld x`, want: "4-8 inter-kernel error"},
	{name: "programmatic launches, the last does not wait for the first", program: `begin 0 1 1
		1.0.0 launch_dependents
		1.0.0 st x
		end 1
		early 0 1 1
		2.0.0 launch_dependents
		2.0.0 wait
		end 2
		early 0 1 1
		3.0.0 ld x
		3.0.0 wait
		3.0.0 st x
		end 3
		begin 0 1 1
		4.0.0 st x`, want: "3-10 inter-kernel error"},
	{name: "programmatic launch, what comes before both", program: `host 0 write x 4
		begin 0 1 1
		1.0.0 launch_dependents
		end 1
		host 1 write y 4
		host 1 signal 3
		host 0 wait 3
		early 0 1 1
		2.0.0 ld x
		2.0.0 ld y`, want: "none"},
	{name: "two streams", program: `begin 1 1 1
		1.0.0 st x
		end 1
		begin 2 1 1
		2.0.0 ld x`, want: "2-5 inter-kernel error"},
	{name: "two streams and an event", program: `begin 1 1 1
		1.0.0 st x
		end 1
		host 1 signal 7
		host 2 wait 7
		begin 2 1 1
		2.0.0 ld x`, want: "none"},
	{name: "an event recorded too early", program: `host 1 signal 7
		begin 1 1 1
		1.0.0 st x
		end 1
		host 2 wait 7
		begin 2 1 1
		2.0.0 ld x`, want: "3-7 inter-kernel error"},
	{name: "two streams, atomics", program: `begin 1 1 1
		1.0.0 atom.relaxed.gpu x
		end 1
		begin 2 1 1
		2.0.0 atom.relaxed.gpu x`, want: "none"},
	{name: "two concurrent kernels hand over", program: `begin 1 1 1
		begin 2 1 1
		1.0.0 st x
		1.0.0 st.release.gpu f
		2.0.0 ld.acquire.gpu f
		2.0.0 ld x
		end 1
		end 2`, want: "none"},
	{name: "what the other kernel did not hand over", program: `begin 1 1 64
		begin 2 1 1
		1.0.32 st y
		1.0.0 st x
		1.0.0 st.release.gpu f
		2.0.0 ld.acquire.gpu f
		2.0.0 ld x
		end 1
		2.0.0 ld y`, want: "3-9 inter-kernel error"},
	{name: "copy while the kernel's stream is not synchronised", program: `begin 1 1 1
		1.0.0 st x
		end 1
		host 0 read x 4`, want: "2-memcpy inter-kernel error"},
	{name: "copy after synchronising", program: `begin 1 1 1
		1.0.0 st x
		end 1
		host 1 signal 3
		host 0 wait 3
		host 0 read x 4`, want: "none"},
	{name: "kernel reads what another stream copies in", program: `host 2 write x 64
		begin 1 1 1
		1.0.0 ld x
		end 1`, want: "memcpy-3 inter-kernel error"},
	{name: "copy in, then kernel in the same stream", program: `host 1 write x 64
		begin 1 1 1
		1.0.0 ld x
		1.0.0 st y
		end 1
		host 1 read y 4`, want: "none"},
	{name: "freed and allocated again", program: `begin 1 1 1
		1.0.0 st x
		end 1
		host 0 free x 16
		begin 2 1 1
		2.0.0 st x`, want: "none"},
	{name: "two copies", program: `host 1 write x 16
		host 2 write x+8 16`, want: "memcpy-memcpy inter-kernel error"},
}
