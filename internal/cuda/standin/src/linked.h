// linked.h: linked PTX texts as one image that Fencepost's driver loads. A single text is the image itself. Several
// texts follow a header.
#ifndef FP_LINKED_H
#define FP_LINKED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { fpLinkedMagic = 0x58545046, fpLinkedHead = 16 }; // "FPTX", padding, u64 number of bytes after the header

// fp_linked holds adjacent texts, each with a NUL at its end, after room for a header.
struct fp_linked {
  char *data;
  size_t size; // with the header
  int texts;
  int runtime; // the texts include the device runtime
};

// fp_link adds a text, which may or may not end in a NUL. It returns 0 if there is no memory.
static int fp_link(struct fp_linked *l, const char *text, size_t n) {
  n = strnlen(text, n);
  size_t size = l->texts ? l->size : fpLinkedHead;
  char *grown = realloc(l->data, size + n + 1);
  if (!grown) return 0;
  memcpy(grown + size, text, n);
  grown[size + n] = 0;
  l->data = grown, l->size = size + n + 1, l->texts++;
  const uint32_t magic = fpLinkedMagic;
  const uint64_t bytes = l->size - fpLinkedHead;
  memcpy(grown, &magic, sizeof magic), memset(grown + 4, 0, 4), memcpy(grown + 8, &bytes, sizeof bytes);
  return 1;
}

// fp_link_image returns the image.
static const char *fp_link_image(const struct fp_linked *l, size_t *size) {
  const size_t skip = l->texts == 1 ? fpLinkedHead : 0;
  *size = l->size - skip;
  return l->data + skip;
}

// fp_link_runtime reports whether a library is NVIDIA's device runtime. fp_device_runtime is linked instead.
static int fp_link_runtime(const char *name) { return name && strstr(name, "cudadevrt"); }

// fp_device_runtime has the function of that library that kernels need: the barrier of a cooperative launch. Its
// workspace is that of the headers of cooperative_groups. The word at byte 4 counts blocks. The first block's
// contribution flips the highest bit when all blocks have arrived.
static const char fp_device_runtime[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope) {\n"
    ".reg .b32 %lo, %hi; .reg .b64 %h;\n"
    "mov.u32 %hi, %envreg1; mov.u32 %lo, %envreg2; mov.b64 %h, {%lo, %hi}; st.param.b64 [handle], %h; ret;\n}\n"
    ".visible .func (.param .b32 error) cudaCGSynchronize(.param .b64 handle, .param .b32 flags) {\n"
    ".reg .b32 %t, %u, %blocks, %first, %share, %old, %now; .reg .b64 %h; .reg .pred %other, %later, %wait;\n"
    "ld.param.u64 %h, [handle]; barrier.sync 0;\n"
    "mov.u32 %t, %tid.x; mov.u32 %u, %tid.y; or.b32 %t, %t, %u; mov.u32 %u, %tid.z; or.b32 %t, %t, %u;\n"
    "setp.ne.u32 %other, %t, 0; @%other bra all;\n"
    "mov.u32 %blocks, %nctaid.x; mov.u32 %u, %nctaid.y; mul.lo.u32 %blocks, %blocks, %u;\n"
    "mov.u32 %u, %nctaid.z; mul.lo.u32 %blocks, %blocks, %u; sub.u32 %first, 0x80000001, %blocks;\n"
    "mov.u32 %t, %ctaid.x; mov.u32 %u, %ctaid.y; or.b32 %t, %t, %u; mov.u32 %u, %ctaid.z; or.b32 %t, %t, %u;\n"
    "setp.ne.u32 %later, %t, 0; selp.u32 %share, 1, %first, %later;\n"
    "atom.add.acq_rel.gpu.u32 %old, [%h+4], %share;\n"
    "again: ld.acquire.gpu.u32 %now, [%h+4]; xor.b32 %now, %now, %old; setp.ge.s32 %wait, %now, 0; @%wait bra again;\n"
    "all: barrier.sync 0; st.param.b32 [error], 0; ret;\n}\n";

// fp_link_device_runtime adds fp_device_runtime once. It returns 0 if there is no memory.
static int fp_link_device_runtime(struct fp_linked *l) {
  if (l->runtime) return 1;
  l->runtime = 1;
  return fp_link(l, fp_device_runtime, sizeof fp_device_runtime);
}

// fp_link_read returns the text of a file, which the caller frees, or NULL if it cannot be read.
static char *fp_link_read(const char *path, size_t *size) {
  char *text = NULL;
  size_t room = 0;
  FILE *f = fopen(path, "rb");
  if (!f) return NULL;
  ssize_t n = getdelim(&text, &room, 0, f);
  fclose(f);
  if (n <= 0) {
    free(text);
    return NULL;
  }
  *size = (size_t)n;
  return text;
}

#endif
