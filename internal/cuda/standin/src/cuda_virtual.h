// cuda_virtual.h: virtual memory management of the driver API. Part of cuda.c.

struct allocation_properties {
  int type, handles; // 1: pinned
  struct fp_location location;
  void *reserved;
  char flags[8];
};

enum { fpGranularity = 2 << 20, fpOnDevice = 1, fpPinned = 1 };

static int check_properties(const struct allocation_properties *p) {
  if (!p || p->type != fpPinned) return fpInvalidValue;
  if (p->location.type != fpOnDevice) return fp_unsupported("physical memory that is not of a device (cuMemCreate)");
  return check_device(p->location.id);
}

EXPORT int cuMemGetAllocationGranularity(size_t *n, const struct allocation_properties *p, int option) {
  int e = n && (option == 0 || option == 1) ? check_properties(p) : fpInvalidValue;
  if (!e) *n = fpGranularity;
  return finish(e);
}

EXPORT int cuMemAddressReserve(u64 *address, size_t n, size_t align, u64 hint, u64 flags) {
  (void)hint;
  return finish(!address || flags ? fpInvalidValue : fp_request(FP_AddressReserve, (const u64[]){n, align}, 2, address, 1));
}

EXPORT int cuMemCreate(u64 *handle, size_t n, const struct allocation_properties *p, u64 flags) {
  int e = handle && !flags ? check_properties(p) : fpInvalidValue;
  return finish(e ? e : fp_request(FP_MemCreate, (const u64[]){n, (u64)p->location.id}, 2, handle, 1));
}

EXPORT int cuMemMap(u64 address, size_t n, size_t offset, u64 handle, u64 flags) {
  return finish(offset || flags ? fpInvalidValue : fp_request(FP_MemMap, (const u64[]){address, n, handle}, 3, NULL, 0));
}

EXPORT int cuMemSetAccess(u64 address, size_t n, const struct fp_access *list, size_t count) {
  int e = list && count ? 0 : fpInvalidValue;
  for (size_t i = 0; i < count && !e; i++) {
    if (list[i].at.type != fpOnDevice) return finish(fp_unsupported("access to mapped memory from elsewhere than a device (cuMemSetAccess)"));
    e = check_device(list[i].at.id);
    if (!e) e = fp_request(FP_MemSetAccess, (const u64[]){address, n, (u64)list[i].at.id, (u64)list[i].flags}, 4, NULL, 0);
  }
  return finish(e);
}

EXPORT int cuMemGetAccess(u64 *flags, const struct fp_location *of, u64 address) {
  u64 r[3] = {0};
  int e = flags && of && of->type == fpOnDevice ? fp_request(FP_MemMapped, (const u64[]){address, 0, (u64)of->id}, 3, r, 3) : fpInvalidValue;
  if (!e) *flags = r[2];
  return finish(e);
}

EXPORT int cuMemRetainAllocationHandle(u64 *handle, void *address) {
  return finish(handle ? fp_request(FP_MemMapped, (const u64[]){(u64)address, 1, 0}, 3, handle, 1) : fpInvalidValue);
}

EXPORT int cuMemGetAllocationPropertiesFromHandle(struct allocation_properties *p, u64 handle) {
  u64 device = 0;
  int e = p && handle ? fp_request(FP_MemMapped, (const u64[]){0, 0, handle}, 3, &device, 1) : fpInvalidValue;
  if (!e) *p = (struct allocation_properties){.type = fpPinned, .location = {fpOnDevice, (int)device}};
  return finish(e);
}
