// sm_90 and later: clusters, asynchronous copies, mbarriers, tensor maps, matrix instructions.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/barrier>
namespace cg = cooperative_groups;

struct alignas(64) Map { unsigned long long opaque[16]; };

__global__ void __cluster_dims__(2, 1, 1) exchange(int *out) {
    __shared__ int mine;
    cg::cluster_group c = cg::this_cluster();
    mine = threadIdx.x + c.block_rank();
    c.sync();
    int *theirs = c.map_shared_rank(&mine, c.block_rank() ^ 1);
    out[blockIdx.x] = *theirs;
    c.sync();
}

__global__ void tma(const __grid_constant__ Map map, float *out, int x, int y) {
    __shared__ alignas(128) float tile[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned dst = (unsigned)__cvta_generic_to_shared(tile), b = (unsigned)__cvta_generic_to_shared(&bar);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(1));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(dst), "l"(&map), "r"(x), "r"(y), "r"(b) : "memory");
    asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], 256;\n}" ::"r"(b));
    asm volatile("{\n\t.reg .pred P1;\nLAB_WAIT:\n\tmbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n\t@P1 bra.uni DONE;\n\tbra.uni LAB_WAIT;\nDONE:\n\t}"
                 ::"r"(b), "r"(0));
    float d[4] = {0, 0, 0, 0};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(1), "r"(2), "r"(3), "r"(4), "r"(5), "r"(6));
    out[threadIdx.x] = tile[threadIdx.x] + d[threadIdx.x & 3];
}

__global__ void group(int *p) {
    __shared__ int n;
    auto g = cg::this_grid();
    auto t = cg::tiled_partition<8>(cg::this_thread_block());
    int s = cg::reduce(t, p[threadIdx.x], cg::plus<int>());
    g.sync();
    if (t.thread_rank() == 0) atomicAdd_block(&n, s);
    p[0] = n;
}
