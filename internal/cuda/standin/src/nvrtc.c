// nvrtc.c: libnvrtc, NVIDIA's run-time compiler, with three differences. Code is compiled with source lines. The source
// follows the PTX as a comment, so that findings can show it. Instead of machine code, callers get PTX, which the
// stand-in driver loads.
#define FP_ABSENT 3 // NVRTC_ERROR_INVALID_INPUT
#define REAL_ENV "FENCEPOST_NVRTC_" FP_MAJOR
#include "forward.h"

FORWARD(nvrtcVersion)
FORWARD(nvrtcGetErrorString)
FORWARD(nvrtcGetNumSupportedArchs)
FORWARD(nvrtcGetSupportedArchs)
FORWARD(nvrtcAddNameExpression)
FORWARD(nvrtcGetLoweredName)
FORWARD(nvrtcGetProgramLog)
FORWARD(nvrtcGetProgramLogSize)
FORWARD(nvrtcGetLTOIR)
FORWARD(nvrtcGetLTOIRSize)
FORWARD(nvrtcGetOptiXIR)
FORWARD(nvrtcGetOptiXIRSize)
FORWARD(nvrtcGetNVVM)
FORWARD(nvrtcGetNVVMSize)
FORWARD(nvrtcGetTileIR)
FORWARD(nvrtcGetTileIRSize)
FORWARD(nvrtcGetPCHCreateStatus)
FORWARD(nvrtcGetPCHHeapSize)
FORWARD(nvrtcGetPCHHeapSizeRequired)
FORWARD(nvrtcSetPCHHeapSize)
FORWARD(nvrtcSetFlowCallback)

// fp_comment is the source of a program as a comment, which internal/cuda/written.go reads.
struct fp_comment {
  struct fp_comment *next;
  void *program;
  size_t size;
  char text[];
};

static struct fp_comment *fp_comments;
static pthread_mutex_t fp_comments_lock = PTHREAD_MUTEX_INITIALIZER;

// fp_comment_add keeps the source of a program, unless it is very large.
static void fp_comment_add(void *program, const char *source, const char *name) {
  enum { most = 4 << 20 };
  static const char mark[] = "\n// fencepost: source ", line[] = "\n// | ";
  if (!source || !name || !*name || strchr(name, '\n')) return;
  size_t size = strlen(source), lines = 1;
  if (size > most) return;
  for (const char *s = source; (s = strchr(s, '\n')); s++) lines++;
  struct fp_comment *c = malloc(sizeof *c + sizeof mark + strlen(name) + size + lines * sizeof line + 2);
  if (!c) return;
  char *to = stpcpy(stpcpy(stpcpy(c->text, mark), name), line);
  for (const char *s = source; *s; s++) {
    if (*s == '\n') to = stpcpy(to, line);
    else if (*s != '\r') *to++ = *s;
  }
  to = stpcpy(to, "\n");
  c->program = program, c->size = (size_t)(to - c->text);
  pthread_mutex_lock(&fp_comments_lock);
  c->next = fp_comments, fp_comments = c;
  pthread_mutex_unlock(&fp_comments_lock);
}

// fp_comment_of returns the comment of a program, or NULL if there is none. If take is set, it removes the comment from
// the list.
static struct fp_comment *fp_comment_of(void *program, int take) {
  pthread_mutex_lock(&fp_comments_lock);
  struct fp_comment **at = &fp_comments, *c;
  while (*at && (*at)->program != program) at = &(*at)->next;
  c = *at;
  if (c && take) *at = c->next;
  pthread_mutex_unlock(&fp_comments_lock);
  return c;
}

EXPORT int nvrtcCreateProgram(void **program, const char *source, const char *name, int n, const char *const *headers, const char *const *names) {
  int e = FP_CALL("nvrtcCreateProgram", (void **, const char *, const char *, int, const char *const *, const char *const *), program,
                  source, name, n, headers, names);
  if (!e) fp_comment_add(*program, source, name && *name ? name : "default_program");
  return e;
}

EXPORT int nvrtcDestroyProgram(void **program) {
  void *p = program ? *program : NULL;
  int e = FP_CALL("nvrtcDestroyProgram", (void **), program);
  if (!e && p) free(fp_comment_of(p, 1));
  return e;
}

EXPORT int nvrtcGetPTXSize(void *program, size_t *size) {
  int e = FP_CALL("nvrtcGetPTXSize", (void *, size_t *), program, size);
  struct fp_comment *c = fp_comment_of(program, 0);
  if (!e && c && *size > 1) *size += c->size;
  return e;
}

EXPORT int nvrtcGetPTX(void *program, char *to) {
  size_t size = 0;
  int e = FP_CALL("nvrtcGetPTXSize", (void *, size_t *), program, &size);
  if (!e) e = FP_CALL("nvrtcGetPTX", (void *, char *), program, to);
  struct fp_comment *c = fp_comment_of(program, 0);
  if (!e && c && size > 1) memcpy(to + size - 1, c->text, c->size), to[size - 1 + c->size] = 0;
  return e;
}

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size) { return nvrtcGetPTXSize(program, size); }
EXPORT int nvrtcGetCUBIN(void *program, char *to) { return nvrtcGetPTX(program, to); }

// architecture changes sm_XX to compute_XX, for which every version makes PTX. It copies other texts. to has room for
// five bytes more than text, and a 0.
static const char *architecture(const char *text, char *to) {
  const char *sm = strstr(text, "sm_");
  if (!sm || (sm != text && sm[-1] != '=')) return text;
  sprintf(to, "%.*scompute_%s", (int)(sm - text), text, sm + 3);
  return to;
}

EXPORT int nvrtcCompileProgram(void *program, int n, const char *const *options) {
  if (n < 0 || (n && !options)) return FP_ABSENT;
  const char **all = calloc((size_t)n + 1, sizeof *all);
  char **made = calloc((size_t)n + 1, sizeof *made);
  if (!all || !made) return 1; // NVRTC_ERROR_OUT_OF_MEMORY
  int lines = 1;
  for (int i = 0; i < n; i++) {
    const char *o = options[i];
    made[i] = malloc(strlen(o) + 6);
    all[i] = made[i] ? architecture(o, made[i]) : o;
    if (strstr(o, "lineinfo") || strstr(o, "line-info") || !strcmp(o, "-G") || !strcmp(o, "--device-debug")) lines = 0;
  }
  if (lines) all[n] = "-lineinfo";
  int e = FP_CALL("nvrtcCompileProgram", (void *, int, const char *const *), program, n + lines, all);
  for (int i = 0; i < n; i++) free(made[i]);
  free(made);
  free(all);
  return e;
}
