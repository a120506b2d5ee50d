package isa

import "fencepost.dev/fencepost/internal/event"

// controlRows is the manual's "Control Flow Instructions".
var controlRows = []*Row{
	{Op: "bra", Doc: "Control Flow: bra", Class: Branch, Forms: forms("{.uni} label'")},
	{Op: "brx", Doc: "Control Flow: brx.idx", Class: Branch, Forms: forms(".idx{.uni} index, targets'")},
	{Op: "call", Doc: "Control Flow: call", Class: Call, Forms: forms("{.uni} (ret), function, (arguments), prototype or targets'")},
	{Op: "ret", Doc: "Control Flow: ret", Class: Ret, Forms: forms("{.uni}")},
	{Op: "exit", Doc: "Control Flow: exit", Class: Exit, Event: event.Exit, Forms: forms("")},
}

const policies = "primary: L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged; secondary: L2::evict_first L2::evict_unchanged"

const noteGrid = "A launch is executed when the previous one on its stream has ended. If it was launched with programmatic stream " +
	"serialization and the previous launch executes `launch_dependents`, its accesses before `wait` are not ordered after that " +
	"launch."

// miscRows is the manual's "Miscellaneous Instructions".
var miscRows = []*Row{
	{Op: "trap", Doc: "Miscellaneous: trap", Class: Trap, Forms: forms("")},
	{Op: "brkpt", Doc: "Miscellaneous: brkpt", Class: Trap, Forms: forms("")},
	{Op: "nanosleep", Doc: "Miscellaneous: nanosleep", Class: Hint, Forms: forms(".u32 a"), Note: "Gives the other warps a turn."},
	{Op: "pmevent", Doc: "Miscellaneous: pmevent", Class: Hint, Forms: forms(" a:u32", ".mask a:u32")},
	{Op: "setmaxnreg", Doc: "Miscellaneous: setmaxnreg", Class: Hint, Forms: forms(".action.sync.aligned.u32 a; action: inc dec"),
		Note: "A hint without effect: registers are not counted."},
	{Op: "createpolicy", Doc: "Data Movement: createpolicy", Bind: setEval(func(_ *Inst, a *Args) { a.D[0] = 0 }), Forms: forms(
		".fractional.primary{.secondary}.b64 d{, a:f32}; "+policies,
		".range{.global}.primary{.secondary}.b64 d, [a], b:u32, c:u32; "+policies,
		".cvt.L2.b64 d, a"),
		Note: "Cache policies have no effect; every policy is 0."},
	{Op: "griddepcontrol", Doc: "Parallel Synchronization: griddepcontrol.launch_dependents", Class: Copy, Event: event.GridLaunch, Bind: bindOp(OpGridLaunch),
		Forms: forms(".launch_dependents"), Note: noteGrid},
	{Op: "griddepcontrol", Doc: "Parallel Synchronization: griddepcontrol.wait", Class: Copy, Event: event.GridWait, Bind: bindOp(OpGridWait),
		Forms: forms(".wait"), Note: noteGrid},
}
