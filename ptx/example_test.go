package ptx_test

import (
	"fmt"
	"os"

	"fencepost.dev/fencepost/ptx"
)

func Example() {
	m, err := ptx.Parse("add.ptx", `
.version 9.0 .target sm_80 .address_size 64
.visible .entry add(.param .u64 p, .param .u32 n) {
	.reg .pred %p; .reg .b32 %r<3>; .reg .b64 %rd;
	ld.param.u64 %rd, [p]; ld.param.u32 %r1, [n];
	setp.eq.s32 %p, %r1, 0; @%p bra done;
	atom.global.add.u32 %r2, [%rd+4*2], %r1;
done: ret; }`)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range m.Decls[0].(*ptx.Func).Body.Stmts {
		if in, ok := s.(*ptx.Inst); ok && in.Op == "atom" {
			fmt.Printf("line %d: %v, address %v\n\n", in.Pos.Line, in, in.Operands[1])
		}
	}
	ptx.Print(os.Stdout, m)
	// Output:
	// line 7: atom.global.add.u32 %r2, [%rd+8], %r1;, address [%rd+8]
	//
	// .version 9.0
	// .target sm_80
	// .address_size 64
	//
	// .visible .entry add(
	// 	.param .u64 p,
	// 	.param .u32 n
	// )
	// {
	// 	.reg .pred %p;
	// 	.reg .b32 %r<3>;
	// 	.reg .b64 %rd;
	// 	ld.param.u64 	%rd, [p];
	// 	ld.param.u32 	%r1, [n];
	// 	setp.eq.s32 	%p, %r1, 0;
	// 	@%p bra 	done;
	// 	atom.global.add.u32 	%r2, [%rd+8], %r1;
	// done:
	// 	ret;
	// }
}

func ExampleParse_errors() {
	_, err := ptx.Parse("bad.ptx", `.version 9.0 .target sm_80
.entry k() {
	add.s32 %r1, , 5;
	ret
}`)
	fmt.Println(err)
	// Output:
	// bad.ptx:3:15: expected an operand, found ","
	// bad.ptx:4:5: missing ';' after instruction ret
}
