package check_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"strings"

	"fencepost.dev/fencepost/check"
)

// bump is a kernel whose threads add to one variable, without atomics.
const bump = `.version 7.0
.target sm_80
.address_size 64
.visible .entry bump(.param .u64 p)
{
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  .loc 1 2 3
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  st.global.u32 [%rd1], %r2;
  ret;
}
.file 1 "bump.cu"
`

const launch = `grid = 2
block = 1
args = [{ buffer = "out", type = "u32", shape = 1 }]
`

var source = strings.Split("__global__ void bump(unsigned *out) {\n  out[0]++;\n}", "\n")

func ExampleKernels() {
	r, err := check.Kernels(context.Background(), []check.Module{{Name: "bump.ptx", PTX: bump}}, check.Launch{Name: "bump.toml", TOML: []byte(launch)},
		&check.Options{Source: func(string) []string { return source }})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Verdict)
	for _, f := range r.Findings {
		fmt.Printf("%s: %s [%s]\n", f.Severity, f.Title, f.Kind)
		for _, p := range f.Places {
			fmt.Printf("  %s:%d: %s\n", p.File, p.Line, p.What)
		}
	}
	// Output:
	// findings
	// error: data race on out (global): nothing orders the accesses [unordered]
	//   bump.cu:2: write of 4 bytes by thread (0,0,0) of block (0,0,0)
	//   bump.cu:2: write of 4 bytes by thread (0,0,0) of block (1,0,0)
}

func ExampleReport_Explain() {
	r, err := check.Kernels(context.Background(), []check.Module{{Name: "bump.ptx", PTX: bump}}, check.Launch{Name: "bump.toml", TOML: []byte(launch)},
		&check.Options{Source: func(string) []string { return source }})
	if err != nil {
		log.Fatal(err)
	}
	var text bytes.Buffer
	r.Explain(&text, &r.Findings[0], true, false)
	fmt.Print(text.String())
	// Output:
	// error: data race on out (global): nothing orders the accesses [unordered]
	//  --> bump.cu:2:3 in bump
	//   |
	// 2 |   out[0]++;
	//   |   ^~~~~~ write of 4 bytes by thread (0,0,0) of block (0,0,0)
	//   |   ^~~~~~ write of 4 bytes by thread (0,0,0) of block (1,0,0)
	//   |
	//   = why: two writes of the same bytes by threads of different blocks, and nothing orders them
	//   = fix: give each thread its own element, let one thread write, or make the whole update one atomic operation
	//          (atomicAdd, atomicMax, ...)
}
