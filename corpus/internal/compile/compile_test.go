package compile

import "testing"

func TestShortenPaths(t *testing.T) {
	in := "\t.file\t1 \"/home/me/src/corpus/race/lock.cu\"\n" +
		"\t.file\t2 \"/opt/venv/nvidia/cu13/bin/../include/crt/sm_70_rt.hpp\"\n" +
		"\t.file\t3 \"/opt/venv/nvidia/cu13/include/cccl/cuda/std/__atomic/api/reference.h\"\n" +
		"\t.file\t12 \"/usr/include/c++/12/bits/move.h\"\n" +
		"\t.file\t13 \"/home/me/src/corpus/race/graph.cuh\"\n" +
		"\t.file\t4 \"odd\"\n\t.loc\t1 2 3\n"
	want := "\t.file\t1 \"lock.cu\"\n" +
		"\t.file\t2 \"cuda/include/crt/sm_70_rt.hpp\"\n" +
		"\t.file\t3 \"cuda/include/cccl/cuda/std/__atomic/api/reference.h\"\n" +
		"\t.file\t12 \"c++/include/bits/move.h\"\n" +
		"\t.file\t13 \"graph.cuh\"\n" +
		"\t.file\t4 \"odd\"\n\t.loc\t1 2 3\n"
	if got := shortenPaths(in, "/home/me/src/corpus/race", "lock.cu"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestBlankHash(t *testing.T) {
	in := "call _ZN3_INTERNAL_f613278f_4_a_cu_da2c3aa3x;\n.b8 90,95,73,78,84,69,82,78,65\n.b8 76,95,102,54,49\n.b8 51,50,55,56,102,95,52\n"
	want := "call _ZN3_INTERNAL_00000000_4_a_cu_da2c3aa3x;\n.b8 90,95,73,78,84,69,82,78,65\n.b8 76,95,48,48,48\n.b8 48,48,48,48,48,95,52\n"
	if got := blankHash(in); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestFindNVCC(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("FENCEPOST_NVCC", "")
	if nvcc, err := FindNVCC(); err != ErrNoCompiler {
		t.Errorf("with none: %q, %v", nvcc, err)
	}
	t.Setenv("FENCEPOST_NVCC", "/x/nvcc")
	if nvcc, err := FindNVCC(); nvcc != "/x/nvcc" || err != nil {
		t.Errorf("by variable: %q, %v", nvcc, err)
	}
}
