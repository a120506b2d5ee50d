/* Comes before each source that GCC compiles: it would expand these for few bytes, without a record, whatever -fno-builtin says. The headers
   of libstdc++ call them by these names. */
#if !defined __ASSEMBLER__ && !defined __builtin_memcpy
#pragma GCC system_header
#ifdef __cplusplus
extern "C" {
#endif
void *__fencepost_memcpy(void *, const void *, __SIZE_TYPE__) __asm__("memcpy") __attribute__((__nothrow__));
void *__fencepost_memmove(void *, const void *, __SIZE_TYPE__) __asm__("memmove") __attribute__((__nothrow__));
void *__fencepost_memset(void *, int, __SIZE_TYPE__) __asm__("memset") __attribute__((__nothrow__));
#ifdef __cplusplus
}
#endif
#define __builtin_memcpy __fencepost_memcpy
#define __builtin_memmove __fencepost_memmove
#define __builtin_memset __fencepost_memset
#endif
