package cuda

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fencepost.dev/fencepost/internal/cuda/standin"
)

// libraries builds the stand-in libraries once for all tests.
var libraries = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return standin.Build(context.Background(), "gcc", filepath.Join(cache, "fencepost-test"))
})

// needTool skips the test when a compiler is missing.
func needTool(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if _, err := exec.LookPath(n); err != nil {
			t.Skipf("%s is not installed", n)
		}
	}
}

func libs(t *testing.T) string {
	t.Helper()
	needTool(t, "gcc")
	dir, err := libraries()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// nvcc compiles CUDA source text and links it with the static stand-in library; more are further arguments.
func nvcc(t *testing.T, source string, more ...string) string {
	t.Helper()
	dir := libs(t)
	needTool(t, "nvcc")
	work := t.TempDir()
	src, exe := filepath.Join(work, "prog.cu"), filepath.Join(work, "prog")
	if err := os.WriteFile(src, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-lineinfo", "-Xcicc", "-O0", "-gencode", "arch=compute_80,code=compute_80", "-L" + dir, "-o", exe, src}, more...)
	if out, err := exec.Command("nvcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("nvcc: %v\n%s", err, out)
	}
	return exe
}

// result is how a program under test went.
type result struct {
	ExitStatus
	stdout, stderr string
}

func run(t *testing.T, d *Device, exe string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	st, err := Run(ctx, RunOptions{Path: exe, Args: args, Stdout: &out, Stderr: &errs, Device: d, Libraries: libs(t)})
	if err != nil {
		t.Fatalf("Run: %v\nstdout: %s\nstderr: %s", err, out.String(), errs.String())
	}
	for _, f := range st.Faults {
		t.Errorf("protocol fault: %v", f)
	}
	return result{st, out.String(), errs.String()}
}

// wantOK runs a program that must exit with 0 and print want.
func wantOK(t *testing.T, d *Device, exe, want string, args ...string) {
	t.Helper()
	r := run(t, d, exe, args...)
	if r.Code != 0 || r.stdout != want {
		t.Errorf("exit %d (signal %v), stdout %q, want 0 and %q\nstderr: %s", r.Code, r.Signal, r.stdout, want, r.stderr)
	}
}

const reduceSource = `
#include <cstdio>
__device__ int counter;
__global__ void reduce(const int *in, int *out, int n) {
  __shared__ int tile[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  tile[t] = i < n ? in[i] : 0;
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    __syncthreads();
    if (t < s) tile[t] += tile[t + s];
  }
  if (t == 0) { atomicAdd(out, tile[0]); atomicAdd(&counter, 1); }
  if (t == 0 && blockIdx.x == 0) printf("block %d of %d\n", blockIdx.x, gridDim.x);
}
int main() {
  int h[1024], *in, *out, blocks = -1;
  for (int i = 0; i < 1024; i++) h[i] = i;
  cudaMalloc(&in, sizeof h);
  cudaMallocManaged(&out, 4);
  *out = 0;
  cudaMemcpy(in, h, sizeof h, cudaMemcpyHostToDevice);
  printf("before\n");
  reduce<<<4, 256>>>(in, out, 1024);
  cudaError_t e = cudaDeviceSynchronize();
  cudaMemcpyFromSymbol(&blocks, counter, 4);
  printf("%s %d %d\n", cudaGetErrorString(e), *out, blocks);
  return e != cudaSuccess;
}`

func TestReduceProgram(t *testing.T) {
	d, l := newTestDevice(t)
	exe := nvcc(t, reduceSource)
	wantOK(t, d, exe, "before\nblock 0 of 4\nno error 523776 4\n")
	if len(l.launches) != 1 || l.launches[0].Err != nil || l.launches[0].Kernel != "_Z6reducePKiPii" {
		t.Errorf("launches %+v", l.launches)
	}
}
