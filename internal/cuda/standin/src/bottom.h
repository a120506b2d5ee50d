// bottom.h: the common part of the runtime API and the driver API: copies, modules, kernels, launches.
#ifndef FP_BOTTOM_H
#define FP_BOTTOM_H

#include "wire.h"

#include "linked.h"

// CUmemLocation, cudaMemLocation: a location of memory.
struct fp_location {
  int type, id; // 1 a device, 2 the host, 3 a part of it
};

// fp_node reports whether the host has a NUMA node. It always has node 0.
static int fp_node(int node) {
  char folder[64];
  snprintf(folder, sizeof folder, "/sys/devices/system/node/node%d", node);
  return node == 0 || (node > 0 && access(folder, F_OK) == 0);
}

// CUmemAccessDesc, cudaMemAccessDesc.
struct fp_access {
  struct fp_location at;
  int flags;
};

// A box of bytes: width bytes, height rows, depth slices, at a pitch and a slice pitch.
struct fp_box {
  u64 at, pitch, slice;
};

// fp_times multiplies sizes. A product that overflows becomes larger than all memory, and is refused.
static u64 fp_times(u64 a, u64 b) {
  u64 n;
  return __builtin_mul_overflow(a, b, &n) ? ~(u64)0 : n;
}

enum { fpHostToHost, fpHostToDevice, fpDeviceToHost, fpDeviceToDevice, fpDefault };

// A range of the shared file of at least this many bytes is cleared by freeing its pages, and its holes are not read.
enum { fpLarge = 32 << 20 };

// fp_in_file reports whether the n bytes at an address are in the shared file at the place of the address.
static int fp_in_file(u64 address, u64 n) {
  return address - fp.base < fp.arena && n <= fp.arena - (address - fp.base) && !fp_mail_host(address);
}

// fp_zero clears n bytes. For a large range of the shared file, the cost depends only on the pages in use.
static void fp_zero(u64 address, u64 n) {
  char *p = fp_host(address);
  if (n >= fpLarge && !fp.pinned && fp_in_file(address, n)) {
    u64 head = -(u64)p & 4095, whole = (n - head) & ~(u64)4095;
    if (!madvise(p + head, whole, MADV_REMOVE)) {
      memset(p, 0, head);
      p += head + whole, n -= head + whole;
    }
  }
  memset(p, 0, n);
}

// fp_move_large moves n bytes of the shared file to a destination that does not overlap them. Unused pages are zero.
// They are not read, because reading would allocate them.
static void fp_move_large(u64 dst, u64 src, u64 n) {
  u64 from = src - fp.base, end = from + n;
  for (u64 at = from; at < end;) {
    off_t data = lseek(fp.memory, (off_t)at, SEEK_DATA), hole = (off_t)end;
    if (data < 0 || (u64)data > end) data = (off_t)end;
    if ((u64)data > at) fp_zero(dst + (at - from), (u64)data - at);
    if ((u64)data < end) hole = lseek(fp.memory, data, SEEK_HOLE);
    if (hole < 0 || (u64)hole > end) hole = (off_t)end;
    memcpy(fp_host(dst + ((u64)data - from)), fp_host(fp.base + (u64)data), (u64)(hole - data));
    at = (u64)hole;
  }
}

static void fp_move(struct fp_box dst, struct fp_box src, u64 width, u64 height, u64 depth) {
  char *d = fp_host(dst.at), *s = fp_host(src.at);
  if (height > 1 && dst.pitch == width && src.pitch == width) width *= height, height = 1;
  if (width >= fpLarge && fp.memory >= 0 && fp_in_file(src.at, width) && height == 1 && depth == 1 &&
      (dst.at + width <= src.at || src.at + width <= dst.at)) {
    fp_move_large(dst.at, src.at, width);
    return;
  }
  for (u64 z = 0; z < depth; z++)
    for (u64 y = 0; y < height; y++)
      memmove(d + z * dst.slice + y * dst.pitch, s + z * src.slice + y * src.pitch, width);
}

// fp_unmapped reports whether this process has no memory at an address, where a copy would crash. The addresses of
// device memory are reserved in every process.
static int fp_unmapped(u64 address) {
  unsigned char resident;
  return mincore((void *)(address & ~(u64)4095), 1, &resident) && errno == ENOMEM;
}

static int fp_capture_copy(struct fp_box to, struct fp_box from, u64 width, u64 height, u64 depth, int direction, int async, u64 stream, int *e);
static int fp_capture_fill(struct fp_box to, u32 value, u32 size, u64 width, u64 height, u64 depth, u64 stream, int *e);

// fp_copy asks the checker whether a copy is valid, reports its order, and moves the bytes before any other request.
static int fp_copy(struct fp_box dst, struct fp_box src, u64 width, u64 height, u64 depth, int kind, int async, u64 stream) {
  if (kind < 0 || kind > fpDefault) kind = fpDefault + 1; // which is refused
  int e;
  if (fp_capture_copy(dst, src, width, height, depth, kind, async, stream, &e)) return e;
  const u64 flags = (u64)async << 8 | (u64)fp_unmapped(dst.at) << 9 | (u64)fp_unmapped(src.at) << 10;
  const u64 args[11] = {dst.at, dst.pitch, dst.slice, src.at, src.pitch, src.slice, width, height, depth, (u64)kind | flags, stream};
  if ((e = fp_behind(FP_Copy, args))) return e;
  fp_stand();
  e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Copy};
  e = fp_exchange(&c, args, 11);
  if (!e && width && height && depth) fp_move(dst, src, width, height, depth);
  fp_end();
  if (!e && !async) fp_print();
  return e;
}

static int fp_copy_linear(u64 dst, u64 src, u64 n, int kind, int async, u64 stream) {
  return fp_copy((struct fp_box){dst, n, n}, (struct fp_box){src, n, n}, n, 1, 1, kind, async, stream);
}

static void fp_set(u64 address, u64 n, u32 value, u32 size) {
  char *p = fp_host(address);
  if (value == 0) {
    fp_zero(address, n);
    return;
  }
  if (size == 1) {
    memset(p, (int)value, n);
    return;
  }
  for (u64 i = 0; i + size <= n; i += size) memcpy(p + i, &value, size);
}

// fp_fill sets elements of size bytes to value. width is in bytes.
static int fp_fill(struct fp_box dst, u32 value, u32 size, u64 width, u64 height, u64 depth, int async, u64 stream) {
  int e;
  if (fp_capture_fill(dst, value, size, width, height, depth, stream, &e)) return e;
  const u64 args[8] = {dst.at, dst.pitch, dst.slice, width, height, depth, (u64)async, stream};
  if ((e = fp_behind(FP_Fill, args))) return e;
  fp_stand();
  e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Fill};
  e = fp_exchange(&c, args, 8);
  if (!e && width) {
    if (height > 1 && dst.pitch == width) width *= height, height = 1;
    for (u64 z = 0; z < depth; z++)
      for (u64 y = 0; y < height; y++) fp_set(dst.at + z * dst.slice + y * dst.pitch, width, value, size);
  }
  fp_end();
  return e;
}

// Registered host memory. Its pages are replaced by pages of the shared file, so that the same pointer is valid here
// and in the checker.
static int fp_register(void *p, u64 size) {
  if (!p || !size) return fpInvalidValue;
  const u64 page = 4096;
  u64 from = (u64)p & ~(page - 1), to = ((u64)p + size + page - 1) & ~(page - 1);
  const u64 args[2] = {from, to - from};
  u64 offset = 0;
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_HostRegister, .results = &offset, .results_max = 1};
  e = fp_exchange(&c, args, 2);
  int memory = fp.memory;
  if (!e && !fp_own(memory, &fp.file)) {
    fp_lose(); // the program has closed it; a new connection provides it again
    if (fp_resume()) e = fp_undelivered();
    memory = fp.memory;
  }
  if (!e) {
    char *fresh = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, memory, (off_t)offset);
    if (fresh == MAP_FAILED) {
      e = fpOutOfMemory;
    } else {
      memcpy(fresh, (void *)from, to - from);
      if (mremap(fresh, to - from, to - from, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)from) == MAP_FAILED) e = fpOutOfMemory;
    }
    if (e) {
      struct fp_call undo = {.op = FP_HostUnregister};
      fp_exchange(&undo, args, 1);
    }
  }
  fp_end();
  return e;
}

// fp_unregister replaces the pages by private pages with the same bytes.
static int fp_unregister(u64 address) {
  u64 range[2] = {0, 0};
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_HostUnregister, .results = range, .results_max = 2};
  e = fp_exchange(&c, &address, 1);
  if (!e) {
    char *own = mmap(NULL, range[1], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own == MAP_FAILED) {
      e = fpOutOfMemory;
    } else {
      memcpy(own, (void *)range[0], range[1]);
      if (mremap(own, range[1], range[1], MREMAP_MAYMOVE | MREMAP_FIXED, (void *)range[0]) == MAP_FAILED) e = fpOutOfMemory;
    }
  }
  fp_end();
  return e;
}

// A kernel of a loaded module. It is looked up when it is first needed.
struct fp_kernel {
  u64 module; // handle of the checker
  const char *name;
  int found;        // looked up
  int error;        // of the look-up
  u64 handle;       // of the checker
  u32 count;        // parameters
  u32 size;         // bytes of the parameter block
  u32 *layout;      // offset and size of each parameter
  const void *host; // the program's function for the kernel; NULL if there is none
};

static int fp_find_kernel(struct fp_kernel *k) {
  if (__atomic_load_n(&k->found, __ATOMIC_ACQUIRE)) return k->error;
  int e = fp_begin();
  if (e) return e;
  if (!k->found) {
    void *layout = NULL;
    size_t size = 0;
    struct fp_call c = {.op = FP_GetKernel, .blob = k->name, .blob_size = strlen(k->name), .results = &k->handle, .results_max = 1,
                        .reply = &layout, .reply_size = &size};
    k->error = e = fp_exchange(&c, &k->module, 1);
    k->layout = layout, k->count = (u32)(size / 8);
    for (u32 i = 0; i < k->count; i++) {
      u32 end = k->layout[2 * i] + k->layout[2 * i + 1];
      if (end > k->size) k->size = end;
    }
    __atomic_store_n(&k->found, 1, __ATOMIC_RELEASE);
  }
  e = k->error;
  fp_end();
  return e;
}

struct fp_launch {
  u32 grid[3], block[3];
  u64 shared, stream, flags;
};

// fp_cluster returns a shape of clusters as flags of a launch. An extent that is too large remains too large.
static u64 fp_cluster(u32 x, u32 y, u32 z) {
  const u32 of[3] = {x, y, z};
  u64 flags = 0;
  for (int i = 0; i < 3; i++) flags |= (u64)(of[i] < 255 ? of[i] : 255) << (FP_LAUNCH_CLUSTER + 8 * i);
  return flags;
}

// fp_refused reports a launch in a forked child, which may ignore the error.
static int fp_refused(const char *kernel) {
  fp_tell(FP_FORKED, kernel);
  return fpInitialization;
}

static int fp_capture_launch(struct fp_kernel *k, const struct fp_launch *l, const void *block, int *e);

// fp_launch sends a launch with its parameter block.
static int fp_launch_block(struct fp_kernel *k, const struct fp_launch *l, const void *block, size_t size) {
  const u64 args[10] = {k->handle, l->stream, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2], l->shared, l->flags};
  int e;
  if (fp_forked()) return fp_refused(k->name);
  if (fp_capture_launch(k, l, block, &e)) return e;
  if ((e = fp_behind(FP_Launch, args))) return e;
  fp_stand();
  e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_Launch, .blob = block, .blob_size = size};
  e = fp_exchange(&c, args, 10);
  fp_end();
  return e;
}

// fp_launch packs parameters, of which each is a pointer, and launches.
static int fp_launch(struct fp_kernel *k, const struct fp_launch *l, void **params) {
  if (fp_forked()) return fp_refused(k->name);
  int e = fp_find_kernel(k);
  if (e) return e;
  if (k->count > 0 && !params) return fpInvalidValue;
  char *block = calloc(1, k->size + 1u);
  if (!block) return fpOutOfMemory;
  for (u32 i = 0; i < k->count; i++) memcpy(block + k->layout[2 * i], params[i], k->layout[2 * i + 1]);
  e = fp_launch_block(k, l, block, k->size);
  free(block);
  return e;
}

// Fat binaries as the compiler embeds them: a wrapper that points to a container, or to a list of containers to link
// (separate compilation).
struct fp_wrapper {
  u32 magic, version;
  const char *data;
  const char *const *list;
};

enum { fpWrapperMagic = 0x466243b1, fpContainerMagic = (int)0xba55ed50 };

// fp_container returns the size of a container from its header, or 0 if it is not a container.
static u64 fp_container(const char *p) {
  u32 magic;
  uint16_t header;
  u64 size;
  memcpy(&magic, p, 4), memcpy(&header, p + 6, 2), memcpy(&size, p + 8, 8);
  return magic == (u32)fpContainerMagic && size < (1u << 30) ? header + size : 0;
}

// fp_rather reports whether a program was built for architecture a rather than for b, if it has PTX for both: see
// fatbin.BuiltFor. b may be 0 for none.
static int fp_rather(u32 a, u32 b) { return !b || (a < 100 ? a > b || b >= 100 : a < b); }

// fp_container_for returns the architecture for which a container was built, or 0 if it is unknown: see
// fatbin.BuiltFor.
static u32 fp_container_for(const char *p) {
  enum { ptx = 1, elf = 2, least = 64 };
  u64 total = fp_container(p), size;
  uint16_t kind, start;
  u32 found = 0, older = 0, header, arch;
  memcpy(&start, p + 6, 2);
  for (u64 at = start; at + least <= total; at += header + size) {
    memcpy(&kind, p + at, 2), memcpy(&header, p + at + 4, 4), memcpy(&size, p + at + 8, 8), memcpy(&arch, p + at + 28, 4);
    if (header < least || size > total) break;
    if (kind == ptx && fp_rather(arch, found)) found = arch;
    if (kind == elf && arch < 100) older = 1;
  }
  return older && found >= 100 ? 0 : found;
}

// fp_built_for is the architecture for which the program was built, or 0 if it is unknown.
static u32 fp_built_for;

// fp_built reads a fat binary of the program. If it was linked from several, the device runtime may be for a newer
// architecture than the others.
static void fp_built(const struct fp_wrapper *w) {
  u32 arch = 0;
  if (w->magic != fpWrapperMagic) return;
  if (w->version == 2 && w->list) {
    for (const char *const *p = w->list; *p; p++) {
      u32 a = fp_container_for(*p);
      if (a && (!arch || a < arch)) arch = a;
    }
  } else if (w->data) {
    arch = fp_container_for(w->data);
  }
  if (arch && fp_rather(arch, fp_built_for)) fp_built_for = arch;
}

static char *fp_append(char *all, u64 *total, const char *p) {
  u64 n = fp_container(p);
  char *grown = realloc(all, *total + n + 1);
  if (!grown) {
    free(all);
    return NULL;
  }
  memcpy(grown + *total, p, n);
  *total += n;
  return grown;
}

// fp_load sends a module. Kind 1 is PTX texts, each with a NUL at its end, and kind 0 is adjacent fat binaries. handle
// is valid even if the load failed; it then represents the failure.
static int fp_load(int kind, const void *image, u64 size, u64 *handle) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_LoadModule, .blob = image, .blob_size = size, .results = handle, .results_max = 1};
  const u64 args[1] = {(u64)kind};
  e = fp_exchange(&c, args, 1);
  fp_end();
  return e;
}

static int fp_load_wrapper(const struct fp_wrapper *w, u64 *handle) {
  u64 total = 0;
  char *all = NULL;
  if (w->magic != fpWrapperMagic) return fpInvalidImage;
  if (w->version == 2 && w->list) {
    for (const char *const *p = w->list; *p; p++) {
      all = fp_append(all, &total, *p);
      if (!all) return fpOutOfMemory;
    }
  } else if (w->data) {
    all = fp_append(all, &total, w->data);
    if (!all) return fpOutOfMemory;
  }
  int e = fp_load(0, all, total, handle);
  free(all);
  return e;
}

// fp_load_image loads an image in memory: PTX text, linked texts, a fat binary, or the wrapper of one.
static int fp_load_image(const char *image, u64 *handle) {
  struct fp_wrapper w;
  u32 magic;
  memcpy(&magic, image, 4);
  if (magic == fpWrapperMagic) {
    memcpy(&w, image, sizeof w);
    return fp_load_wrapper(&w, handle);
  }
  if (magic == (u32)fpContainerMagic) return fp_load(0, image, fp_container(image), handle);
  if (magic == fpLinkedMagic) {
    u64 size;
    memcpy(&size, image + 8, sizeof size);
    return fp_load(1, image + fpLinkedHead, size, handle);
  }
  if (magic == 0x464c457f) { // an ELF file: machine code
    fp_unsupported("loading a module of machine code and no PTX");
    return fpNoImage;
  }
  return fp_load(1, image, strlen(image), handle);
}

static int fp_load_file(const char *path, u64 *handle) {
  FILE *f = fopen(path, "rb");
  if (!f) return fpFileNotFound;
  char *image = NULL;
  size_t n = 0, k = 1;
  while (k > 0) {
    char *grown = realloc(image, n + (1 << 16) + 1);
    if (!grown) break;
    image = grown;
    n += k = fread(image + n, 1, 1 << 16, f);
  }
  fclose(f);
  int e = fpOutOfMemory;
  if (image) {
    memset(image + n, 0, 1);
    u64 container = n >= 16 ? fp_container(image) : 0;
    e = n < 16 || container > n ? fpInvalidImage : fp_load_image(image, handle);
  }
  free(image);
  return e;
}

// fp_library_table reports whether the options of a library request an unsupported feature: that a table of the host
// replaces the library's own functions and variables (option 0). The other option, to keep the binary, needs no action.
static int fp_library_table(const int *options, unsigned n) {
  for (unsigned i = 0; i < n; i++)
    if (options && options[i] == 0) return 1;
  return 0;
}

static int fp_symbol(u64 module, const char *name, u64 result[2]) {
  int e = fp_begin();
  if (e) return e;
  struct fp_call c = {.op = FP_GetSymbol, .blob = name, .blob_size = strlen(name), .results = result, .results_max = 2};
  e = fp_exchange(&c, &module, 1);
  fp_end();
  return e;
}

// fp_graph_memory reads an attribute of the memory of graphs (cuGraphMem_attribute: bytes in use, their peak, bytes
// reserved, their peak), or resets a peak. Memory of graphs is allocated like other memory, and not counted.
static int fp_graph_memory(int device, int a, u64 *value, int set) {
  if (device || a < 0 || a > 3 || !value || (set && !(a & 1))) return fpInvalidValue;
  if (!set) *value = 0;
  return 0;
}

// fp_attribute returns a device attribute. All values are requested once.
static int fp_attribute(int number, int *value) {
  static u64 values[FP_ATTRIBUTES];
  static int known;
  if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
    u64 fresh[FP_ATTRIBUTES] = {0};
    int e = fp_request(FP_Attributes, (const u64[]){fp_built_for}, 1, fresh, FP_ATTRIBUTES);
    if (e) return e;
    if (!fp_begin()) {
      memcpy(values, fresh, sizeof values);
      __atomic_store_n(&known, 1, __ATOMIC_RELEASE);
      fp_end();
    }
  }
  if (number <= 0 || number >= FP_ATTRIBUTES) return fpInvalidValue;
  *value = (int)values[number];
  return 0;
}

// fp_devices returns the current device of the calling thread and the number of devices. Either may be NULL.
static int fp_devices(int *current, int *count) {
  static int known; // the number, once it was asked for
  u64 r[2] = {0, (u64)__atomic_load_n(&known, __ATOMIC_RELAXED)};
  if (r[1] == 0 || (current && r[1] > 1)) {
    int value, e = fp_attribute(1, &value);
    if (!e) e = fp_request(FP_GetDevice, NULL, 0, r, 2);
    if (e) return e;
    __atomic_store_n(&known, (int)r[1], __ATOMIC_RELAXED);
  }
  if (current) *current = (int)r[0];
  if (count) *count = (int)r[1];
  return 0;
}

// fp_dynamic_shared returns the dynamic shared memory that each of a number of blocks of a kernel can have on one
// multiprocessor.
static int fp_dynamic_shared(u64 kernel, int blocks, int threads, size_t *bytes) {
  enum { granularity = 128, reserved = 1024, perMultiprocessor = 81 };
  u64 resident = 0, r[9]; // of r: 0 static shared memory, 7 the most dynamic shared memory of a launch
  int all = 0;
  if (!bytes || blocks <= 0 || threads <= 0) return fpInvalidValue;
  int e = fp_request(FP_Occupancy, (const u64[]){kernel, (u64)threads, 0}, 3, &resident, 1);
  if (!e) e = fp_request(FP_FuncAttributes, &kernel, 1, r, 9);
  if (!e) e = fp_attribute(perMultiprocessor, &all);
  if (!e && (u64)blocks > resident) e = fpInvalidValue;
  if (e) return e;
  u64 room = (u64)(all / blocks / granularity * granularity) - reserved - r[0];
  *bytes = room < r[7] ? room : r[7];
  return 0;
}

#include "array.h"

#include "graph.h"

#endif
