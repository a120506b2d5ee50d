package isa

import (
	"fmt"
	"maps"
	"slices"
)

// The special registers, by component.
const (
	TidX SpecialID = iota
	TidY
	TidZ
	NtidX
	NtidY
	NtidZ
	CtaidX
	CtaidY
	CtaidZ
	NctaidX
	NctaidY
	NctaidZ
	LaneID
	WarpID
	NWarpID
	SMID
	NSMID
	GridID // 64 bits
	LanemaskEQ
	LanemaskLE
	LanemaskLT
	LanemaskGE
	LanemaskGT
	Clock
	ClockHi
	Clock64
	GlobalTimer // 64 bits
	GlobalTimerLo
	GlobalTimerHi
	DynamicSmemSize
	TotalSmemSize
	AggrSmemSize
	ReservedSmemOffset // start of reserved shared memory and of its parts: 0 (see ReservedShared)
	ReservedSmemSize   // its end, and its size
	ClusterIDX         // of the cluster in the grid
	ClusterIDY
	ClusterIDZ
	NClusterIDX // clusters of the grid
	NClusterIDY
	NClusterIDZ
	ClusterCtaidX // of the CTA in its cluster
	ClusterCtaidY
	ClusterCtaidZ
	ClusterNctaidX // CTAs of a cluster
	ClusterNctaidY
	ClusterNctaidZ
	ClusterCtarank
	ClusterNctarank
	IsExplicitCluster
	SpecialZero // always 0: %tid.w and the like, performance counters
	SpecialOne  // always 1: extents that are 1 by definition
	EnvReg0     // EnvReg0+n is %envreg<n>, n up to 31
	specials    = EnvReg0 + 32
)

// specialNames maps each accepted spelling to its register.
var specialNames = func() map[string]SpecialID {
	m := map[string]SpecialID{
		"%tid.x": TidX, "%tid.y": TidY, "%tid.z": TidZ, "%tid.w": SpecialZero,
		"%ntid.x": NtidX, "%ntid.y": NtidY, "%ntid.z": NtidZ, "%ntid.w": SpecialOne,
		"%ctaid.x": CtaidX, "%ctaid.y": CtaidY, "%ctaid.z": CtaidZ, "%ctaid.w": SpecialZero,
		"%nctaid.x": NctaidX, "%nctaid.y": NctaidY, "%nctaid.z": NctaidZ, "%nctaid.w": SpecialOne,
		"%laneid": LaneID, "%warpid": WarpID, "%nwarpid": NWarpID, "%smid": SMID, "%nsmid": NSMID, "%gridid": GridID,
		"%lanemask_eq": LanemaskEQ, "%lanemask_le": LanemaskLE, "%lanemask_lt": LanemaskLT,
		"%lanemask_ge": LanemaskGE, "%lanemask_gt": LanemaskGT,
		"%clock": Clock, "%clock_hi": ClockHi, "%clock64": Clock64,
		"%globaltimer": GlobalTimer, "%globaltimer_lo": GlobalTimerLo, "%globaltimer_hi": GlobalTimerHi,
		"%dynamic_smem_size": DynamicSmemSize, "%total_smem_size": TotalSmemSize, "%aggr_smem_size": AggrSmemSize,
		"%reserved_smem_offset_begin": ReservedSmemOffset, "%reserved_smem_offset_0": ReservedSmemOffset,
		"%reserved_smem_offset_1": ReservedSmemOffset, "%reserved_smem_offset_end": ReservedSmemSize,
		"%reserved_smem_offset_cap": ReservedSmemSize,
		"%is_explicit_cluster":      IsExplicitCluster, "%cluster_ctarank": ClusterCtarank, "%cluster_nctarank": ClusterNctarank,
		"%current_graph_exec": SpecialZero,
	}
	for i := 0; i < 32; i++ {
		m[fmt.Sprintf("%%envreg%d", i)] = EnvReg0 + SpecialID(i)
	}
	for i := 0; i < 8; i++ {
		m[fmt.Sprintf("%%pm%d", i)] = SpecialZero
		m[fmt.Sprintf("%%pm%d_64", i)] = SpecialZero
	}
	for c, at := range map[string]int{"x": 0, "y": 1, "z": 2} {
		m["%clusterid."+c] = ClusterIDX + SpecialID(at)
		m["%nclusterid."+c] = NClusterIDX + SpecialID(at)
		m["%cluster_ctaid."+c] = ClusterCtaidX + SpecialID(at)
		m["%cluster_nctaid."+c] = ClusterNctaidX + SpecialID(at)
	}
	m["%clusterid.w"], m["%nclusterid.w"], m["%cluster_ctaid.w"], m["%cluster_nctaid.w"] = SpecialZero, SpecialOne, SpecialZero, SpecialOne
	return m
}()

// Size is the width of the register in bytes; a predicate counts as 1.
func (s SpecialID) Size() int {
	switch s {
	case GridID, Clock64, GlobalTimer:
		return 8
	}
	return 4
}

// specialVector reports whether a name is that of a special register of four elements.
func specialVector(name string) bool {
	_, ok := specialNames[name+".w"]
	return ok
}

// specialList is every accepted spelling, sorted.
func specialList() []string { return slices.Sorted(maps.Keys(specialNames)) }
