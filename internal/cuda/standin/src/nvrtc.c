// nvrtc.c: libnvrtc, NVIDIA's run-time compiler, with two differences: code is compiled with source lines, and what callers
// take for machine code is PTX, which the stand-in driver loads.
#define FP_ABSENT 3 // NVRTC_ERROR_INVALID_INPUT
#define REAL_ENV "FENCEPOST_NVRTC_" FP_MAJOR
#include "forward.h"

FORWARD(nvrtcVersion)
FORWARD(nvrtcGetErrorString)
FORWARD(nvrtcGetNumSupportedArchs)
FORWARD(nvrtcGetSupportedArchs)
FORWARD(nvrtcCreateProgram)
FORWARD(nvrtcDestroyProgram)
FORWARD(nvrtcAddNameExpression)
FORWARD(nvrtcGetLoweredName)
FORWARD(nvrtcGetProgramLog)
FORWARD(nvrtcGetProgramLogSize)
FORWARD(nvrtcGetPTX)
FORWARD(nvrtcGetPTXSize)
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

EXPORT int nvrtcGetCUBINSize(void *program, size_t *size) { return FP_CALL("nvrtcGetPTXSize", (void *, size_t *), program, size); }
EXPORT int nvrtcGetCUBIN(void *program, char *to) { return FP_CALL("nvrtcGetPTX", (void *, char *), program, to); }

// architecture makes compute_XX of sm_XX, for which every version gives PTX; anything else is left. to is one byte longer than text
// and five.
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
