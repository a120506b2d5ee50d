// linked.h: PTX texts that were linked, as one image that the driver of ours loads: a text alone as it is, several behind a
// header.
#ifndef FP_LINKED_H
#define FP_LINKED_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { fpLinkedMagic = 0x58545046, fpLinkedHead = 16 }; // "FPTX", padding, u64 bytes behind the header

// fp_linked is texts, end to end with their NULs, behind room for a header.
struct fp_linked {
  char *data;
  size_t size; // with the header
  int texts;
};

// fp_link adds a text, which may or may not end in NUL. 0 when there is no memory.
static int fp_link(struct fp_linked *l, const char *text, size_t n) {
  n = strnlen(text, n);
  size_t size = l->texts ? l->size : fpLinkedHead;
  char *grown = realloc(l->data, size + n + 1);
  if (!grown) return 0;
  memcpy(grown + size, text, n);
  grown[size + n] = 0;
  *l = (struct fp_linked){grown, size + n + 1, l->texts + 1};
  const uint32_t magic = fpLinkedMagic;
  const uint64_t bytes = l->size - fpLinkedHead;
  memcpy(grown, &magic, sizeof magic), memset(grown + 4, 0, 4), memcpy(grown + 8, &bytes, sizeof bytes);
  return 1;
}

// fp_link_image gives what was linked.
static const char *fp_link_image(const struct fp_linked *l, size_t *size) {
  const size_t skip = l->texts == 1 ? fpLinkedHead : 0;
  *size = l->size - skip;
  return l->data + skip;
}

// fp_link_skipped says whether a library holds nothing that the device lacks: NVIDIA's own device runtime.
static int fp_link_skipped(const char *name) { return name && strstr(name, "cudadevrt"); }

#endif
