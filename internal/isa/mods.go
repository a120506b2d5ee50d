package isa

// The comparison operators. Ordered ones are false if an operand is NaN, the ...U ones true. For unsigned integers lo,
// ls, hi, hs are lt, le, gt, ge.
const (
	NoCmp CmpOp = iota
	CmpEQ
	CmpNE
	CmpLT
	CmpLE
	CmpGT
	CmpGE
	CmpEQU
	CmpNEU
	CmpLTU
	CmpLEU
	CmpGTU
	CmpGEU
	CmpNum
	CmpNaN
)

var cmpNames = map[string]CmpOp{
	"eq": CmpEQ, "ne": CmpNE, "lt": CmpLT, "le": CmpLE, "gt": CmpGT, "ge": CmpGE,
	"lo": CmpLT, "ls": CmpLE, "hi": CmpGT, "hs": CmpGE,
	"equ": CmpEQU, "neu": CmpNEU, "ltu": CmpLTU, "leu": CmpLEU, "gtu": CmpGTU, "geu": CmpGEU,
	"num": CmpNum, "nan": CmpNaN,
}

// The rounding modes. The ...I ones round to an integral value.
const (
	NoRound Rounding = iota
	RN               // to nearest, ties to even
	RZ               // toward zero
	RM               // toward minus infinity
	RP               // toward plus infinity
	RNA              // to nearest, ties away from zero
	RNI
	RZI
	RMI
	RPI
)

var roundNames = map[string]Rounding{
	"rn": RN, "rz": RZ, "rm": RM, "rp": RP, "rna": RNA, "rni": RNI, "rzi": RZI, "rmi": RMI, "rpi": RPI,
}

// The sub-operations.
const (
	NoOp Op = iota
	OpAnd
	OpOr
	OpXor
	OpAdd
	OpInc
	OpDec
	OpMin
	OpMax
	OpExch
	OpCas
	OpIdx
	OpUp
	OpDown
	OpBfly
	OpAll
	OpAny
	OpUni
	OpBallot
	OpSync
	OpArrive
	OpPopc
	OpCopy
	OpCommit
	OpWaitGroup
	OpWaitAll
	OpArriveCopies
	OpBulk
	OpTensor
	OpBulkCommit
	OpBulkWait
	OpProxyFence
	OpClusterArrive
	OpClusterWait
	OpWgmma
	OpWgmmaFence
	OpWgmmaCommit
	OpWgmmaWait
	OpTcAlloc
	OpTcFree
	OpTcRelinquish
	OpTcLoad
	OpTcStore
	OpTcWait
	OpTcMultiply
	OpTcCopy
	OpTcCommit
	OpStoreAsync // st.async, red.async
	OpTryCancel
	OpStoreBulk // st.bulk
	OpTouch
	OpGridLaunch
	OpGridWait
	OpReplace      // tensormap.replace
	OpMapCopy      // tensormap.cp_fenceproxy
	OpMapFence     // fence.proxy.tensormap::generic.acquire
	OpFetch        // tex
	OpGather       // tld4
	OpSurfaceLoad  // suld.b
	OpSurfaceStore // sust.b, sust.p
	OpSurfaceRed   // sured.b
	OpQuery        // txq, suq
	OpInit
	OpInval
	OpExpect
	OpComplete
	OpDrop
	OpTest
	OpPending
)

var opNames = map[string]Op{
	"and": OpAnd, "or": OpOr, "xor": OpXor, "add": OpAdd, "inc": OpInc, "dec": OpDec, "min": OpMin, "max": OpMax,
	"exch": OpExch, "cas": OpCas, "idx": OpIdx, "up": OpUp, "down": OpDown, "bfly": OpBfly,
	"all": OpAll, "any": OpAny, "uni": OpUni, "ballot": OpBallot, "sync": OpSync, "arrive": OpArrive, "popc": OpPopc,
}

// The row-specific modes.
const (
	NoMode Mode = iota
	// prmt
	ModeF4E
	ModeB4E
	ModeRC8
	ModeECL
	ModeECR
	ModeRC16
	// shf, szext, bmsk
	ModeClamp
	ModeWrap
	// testp
	ModeFinite
	ModeInfinite
	ModeNumber
	ModeNotANumber
	ModeNormal
	ModeSubnormal
)

var modeNames = map[string]Mode{
	"f4e": ModeF4E, "b4e": ModeB4E, "rc8": ModeRC8, "ecl": ModeECL, "ecr": ModeECR, "rc16": ModeRC16,
	"clamp": ModeClamp, "wrap": ModeWrap,
	"finite": ModeFinite, "infinite": ModeInfinite, "number": ModeNumber, "notanumber": ModeNotANumber,
	"normal": ModeNormal, "subnormal": ModeSubnormal,
}
