// ipc.h: handles of memory and events for other processes, for both APIs. The checker makes the handles, which are
// three words. Part of cudart.c and cuda.c.

struct ipc_handle {
  u64 word[8];
};

static int ipc_get(u64 what, u64 of, struct ipc_handle *h) {
  struct ipc_handle new = {{0}};
  int e = h ? fp_request(FP_Ipc, (const u64[]){what, of, 0, 0, 0}, 5, new.word, 3) : fpInvalidValue;
  if (!e) *h = new;
  return e;
}

static int ipc_open(u64 what, u64 flags, u64 *opened, const struct ipc_handle *h) {
  u64 r[3] = {0};
  int e = opened ? fp_request(FP_Ipc, (const u64[]){what, flags, h->word[0], h->word[1], h->word[2]}, 5, r, 3) : fpInvalidValue;
  if (!e) *opened = r[0];
  return e;
}

static int ipc_close(u64 p) {
  u64 r[3];
  return fp_request(FP_Ipc, (const u64[]){FP_IPC_CLOSE_MEMORY, p, 0, 0, 0}, 5, r, 3);
}

EXPORT int API(IpcGetMemHandle)(struct ipc_handle *h, u64 p) { return finish(ipc_get(FP_IPC_GET_MEMORY, p, h)); }
EXPORT int API(IpcGetEventHandle)(struct ipc_handle *h, u64 event) { return finish(ipc_get(FP_IPC_GET_EVENT, event, h)); }
EXPORT int API(IpcOpenEventHandle)(u64 *event, struct ipc_handle h) { return finish(ipc_open(FP_IPC_OPEN_EVENT, 0, event, &h)); }
EXPORT int API(IpcCloseMemHandle)(u64 p) { return finish(ipc_close(p)); }

// ipc_open_memory has only one flag, cudaIpcMemLazyEnablePeerAccess.
static int ipc_open_memory(u64 *p, const struct ipc_handle *h, unsigned flags) {
  return flags > 1 ? fpInvalidValue : ipc_open(FP_IPC_OPEN_MEMORY, flags, p, h);
}
