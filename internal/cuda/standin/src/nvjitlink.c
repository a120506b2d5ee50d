// nvjitlink.c: libnvJitLink, NVIDIA's run-time linker, with one difference: instead of machine code, callers get PTX,
// which the stand-in driver loads. The real library links LTO IR to PTX. PTX remains as it is.
#define FP_ABSENT 2 // NVJITLINK_ERROR_MISSING_ARCH: there is none for "absent"
#define REAL_ENV "FENCEPOST_NVJITLINK_" FP_MAJOR
#include "forward.h"
#include "linked.h"

enum { inputPTX = 2, inputLTO = 3, inputLibrary = 6, failed = 6, noMemory = 6, invalid = 3 };

struct link {
  void *real; // NULL if no LTO IR is linked
  struct fp_linked ptx;
  char refused[256];
};

static void unsupported(struct link *l, const char *what) {
  void (*tell)(const char *) = (void (*)(const char *))dlsym(RTLD_DEFAULT, "fencepostUnsupported");
  void *driver = tell ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
  if (driver) tell = (void (*)(const char *))dlsym(driver, "fencepostUnsupported");
  snprintf(l->refused, sizeof l->refused, "nvJitLink: %s is not supported: link PTX or LTO IR", what);
  if (tell) tell(l->refused);
}

static int create(struct link **to, uint32_t n, const char **options) {
  struct link *l = calloc(1, sizeof *l);
  const char **all = calloc((size_t)n + 2, sizeof *all);
  int lto = 0, e = 0;
  if (!l || !all || !to) return noMemory;
  uint32_t k = 0;
  for (uint32_t i = 0; i < n; i++) {
    lto = lto || !strcmp(options[i], "-lto");
    if (strcmp(options[i], "-ptx")) all[k++] = options[i];
  }
  all[k++] = "-ptx";
  if (lto) e = FP_CALL("nvJitLinkCreate", (void **, uint32_t, const char **), &l->real, k, all);
  free(all);
  *to = l;
  return e;
}

static int destroy(struct link **l) {
  if (!l || !*l) return invalid;
  int e = (*l)->real ? FP_CALL("nvJitLinkDestroy", (void **), &(*l)->real) : 0;
  free((*l)->ptx.data);
  free(*l);
  *l = NULL;
  return e;
}

static int add_data(struct link *l, int type, const void *data, size_t size, const char *name) {
  const char *text = data;
  if (fp_link_runtime(name)) return fp_link_device_runtime(&l->ptx) ? 0 : noMemory;
  if (type == 10) type = size > 8 && (strstr(text, ".version") || *text == '/') ? inputPTX : inputLTO; // NVJITLINK_INPUT_ANY
  if (type == inputPTX && !l->real) return fp_link(&l->ptx, text, size) ? 0 : noMemory;
  if (l->real) return FP_CALL("nvJitLinkAddData", (void *, int, const void *, size_t, const char *), l->real, type, data, size, name);
  unsupported(l, name && *name ? name : "an input that is no PTX");
  return failed;
}

static int add_file(struct link *l, int type, const char *path) {
  if (fp_link_runtime(path)) return fp_link_device_runtime(&l->ptx) ? 0 : noMemory;
  if (l->real) return FP_CALL("nvJitLinkAddFile", (void *, int, const char *), l->real, type, path);
  size_t n = 0;
  char *text = type == inputPTX || type == 10 ? fp_link_read(path, &n) : NULL;
  if (!text) {
    unsupported(l, path);
    return failed;
  }
  int e = add_data(l, inputPTX, text, n, path);
  free(text);
  return e;
}

static int complete(struct link *l) {
  if (!l->real) return l->ptx.texts ? 0 : failed;
  size_t n = 0;
  int e = FP_CALL("nvJitLinkComplete", (void *), l->real);
  if (!e) e = FP_CALL("nvJitLinkGetLinkedPtxSize", (void *, size_t *), l->real, &n);
  char *text = e ? NULL : malloc(n + 1);
  if (!e) e = text ? FP_CALL("nvJitLinkGetLinkedPtx", (void *, char *), l->real, text) : noMemory;
  if (!e && !fp_link(&l->ptx, text, n)) e = noMemory;
  free(text);
  return e;
}

static int image_size(struct link *l, size_t *size) {
  if (!l->ptx.texts) return failed;
  fp_link_image(&l->ptx, size);
  return 0;
}

static int image(struct link *l, char *to) {
  size_t n;
  if (!l->ptx.texts) return failed;
  const char *from = fp_link_image(&l->ptx, &n);
  memcpy(to, from, n);
  return 0;
}

static int log_size(struct link *l, size_t *size, const char *call) {
  if (l->real && !*l->refused) return FP_CALL(call, (void *, size_t *), l->real, size);
  *size = strlen(l->refused) + 1;
  return 0;
}

static int log_text(struct link *l, char *to, const char *call) {
  if (l->real && !*l->refused) return FP_CALL(call, (void *, char *), l->real, to);
  strcpy(to, l->refused);
  return 0;
}

static int ir_size(struct link *l, size_t *size) { return l->real ? FP_CALL("nvJitLinkGetLinkedLTOIRSize", (void *, size_t *), l->real, size) : failed; }
static int ir(struct link *l, char *to) { return l->real ? FP_CALL("nvJitLinkGetLinkedLTOIR", (void *, char *), l->real, to) : failed; }

// Every function has another name for each version, which nvJitLink.h calls.
#define NAMED(name, params, ...) EXPORT int name params { return __VA_ARGS__; }
#define OF_VERSION(name, minor, params, ...)                 \
  NAMED(__##name##_12_##minor, params, __VA_ARGS__) \
  NAMED(__##name##_13_##minor, params, __VA_ARGS__)
#define FUNCTION(name, params, ...)          \
  NAMED(name, params, __VA_ARGS__)           \
  OF_VERSION(name, 0, params, __VA_ARGS__)   \
  OF_VERSION(name, 1, params, __VA_ARGS__)   \
  OF_VERSION(name, 2, params, __VA_ARGS__)   \
  OF_VERSION(name, 3, params, __VA_ARGS__)   \
  OF_VERSION(name, 4, params, __VA_ARGS__)   \
  OF_VERSION(name, 5, params, __VA_ARGS__)   \
  OF_VERSION(name, 6, params, __VA_ARGS__)   \
  OF_VERSION(name, 7, params, __VA_ARGS__)   \
  OF_VERSION(name, 8, params, __VA_ARGS__)   \
  OF_VERSION(name, 9, params, __VA_ARGS__)

FUNCTION(nvJitLinkCreate, (struct link * *l, uint32_t n, const char **options), create(l, n, options))
FUNCTION(nvJitLinkDestroy, (struct link * *l), destroy(l))
FUNCTION(nvJitLinkAddData, (struct link * l, int type, const void *data, size_t size, const char *name), add_data(l, type, data, size, name))
FUNCTION(nvJitLinkAddFile, (struct link * l, int type, const char *path), add_file(l, type, path))
FUNCTION(nvJitLinkComplete, (struct link * l), complete(l))
FUNCTION(nvJitLinkGetLinkedCubinSize, (struct link * l, size_t *size), image_size(l, size))
FUNCTION(nvJitLinkGetLinkedCubin, (struct link * l, char *to), image(l, to))
FUNCTION(nvJitLinkGetLinkedPtxSize, (struct link * l, size_t *size), image_size(l, size))
FUNCTION(nvJitLinkGetLinkedPtx, (struct link * l, char *to), image(l, to))
FUNCTION(nvJitLinkGetLinkedLTOIRSize, (struct link * l, size_t *size), ir_size(l, size))
FUNCTION(nvJitLinkGetLinkedLTOIR, (struct link * l, char *to), ir(l, to))
FUNCTION(nvJitLinkGetErrorLogSize, (struct link * l, size_t *size), log_size(l, size, "nvJitLinkGetErrorLogSize"))
FUNCTION(nvJitLinkGetErrorLog, (struct link * l, char *to), log_text(l, to, "nvJitLinkGetErrorLog"))
FUNCTION(nvJitLinkGetInfoLogSize, (struct link * l, size_t *size), log_size(l, size, "nvJitLinkGetInfoLogSize"))
FUNCTION(nvJitLinkGetInfoLog, (struct link * l, char *to), log_text(l, to, "nvJitLinkGetInfoLog"))

EXPORT int nvJitLinkVersion(unsigned *major, unsigned *minor) { return FP_CALL("nvJitLinkVersion", (unsigned *, unsigned *), major, minor); }
