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
#if defined __cplusplus && __GNUC__ >= 9 /* functions that may be constant call none that cannot be */
#define __builtin_memcpy(...) (__builtin_is_constant_evaluated() ? __builtin_memcpy(__VA_ARGS__) : __fencepost_memcpy(__VA_ARGS__))
#define __builtin_memmove(...) (__builtin_is_constant_evaluated() ? __builtin_memmove(__VA_ARGS__) : __fencepost_memmove(__VA_ARGS__))
#define __builtin_memset(...) (__builtin_is_constant_evaluated() ? __builtin_memset(__VA_ARGS__) : __fencepost_memset(__VA_ARGS__))
#else
#define __builtin_memcpy(...) __fencepost_memcpy(__VA_ARGS__)
#define __builtin_memmove(...) __fencepost_memmove(__VA_ARGS__)
#define __builtin_memset(...) __fencepost_memset(__VA_ARGS__)
#endif
#endif
