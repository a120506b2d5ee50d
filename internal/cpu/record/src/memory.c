// Allocation, and functions of the C library that read and write memory.
//
// Memory that dlsym allocates while the real functions are looked up comes from a small arena that is never freed.

static char arena[1 << 16];
static size_t arena_used;

static void *from_arena(size_t n) {
	size_t at = __atomic_fetch_add(&arena_used, (n + 31) & ~(size_t)15, __ATOMIC_RELAXED);
	if (at + n + 16 > sizeof arena)
		return NULL;
	return (void *)(((uptr)arena + at + 15) & ~(uptr)15);
}

static int in_arena(void *p) { return (char *)p >= arena && (char *)p < arena + sizeof arena; }

// looking and over are volatile, because the compiler assumes that dlsym calls no function of this file.
static __thread volatile int looking __attribute__((tls_model("initial-exec")));

#define ALLOCATOR(name) ({ static __typeof__(name) *f; __typeof__(name) *g = __atomic_load_n(&f, __ATOMIC_RELAXED); \
	if (!g && !looking) { looking = 1; g = (__typeof__(name) *)real(#name); looking = 0; __atomic_store_n(&f, g, __ATOMIC_RELAXED); } g; })

extern size_t malloc_usable_size(void *);
extern void *memalign(size_t, size_t);

static void *allocated(void *p, size_t n, uptr pc) {
	if (p && n)
		record(p, ALLOCATE, 0, n, pc);
	return p;
}

// released is called before memory is freed, so that the checker sees it before another thread gets the memory.
static void released(void *p, uptr pc) {
	if (p && region && !over)
		record(p, RELEASE, instrumented(pc), malloc_usable_size(p), pc);
}

EXPORT void *malloc(size_t n) {
	__typeof__(malloc) *f = ALLOCATOR(malloc);
	return f ? allocated(f(n), n, RETURN_ADDRESS) : from_arena(n);
}

EXPORT void *calloc(size_t n, size_t each) {
	__typeof__(calloc) *f = ALLOCATOR(calloc);
	return f ? allocated(f(n, each), n * each, RETURN_ADDRESS) : from_arena(n * each);
}

EXPORT void free(void *p) {
	if (!p || in_arena(p))
		return;
	__typeof__(free) *f = ALLOCATOR(free);
	released(p, RETURN_ADDRESS);
	if (f)
		f(p);
}

EXPORT void *realloc(void *p, size_t n) {
	if (in_arena(p)) {
		void *q = malloc(n);
		size_t most = arena + sizeof arena - (char *)p;
		if (q)
			for (size_t i = 0; i < n && i < most; i++)
				((volatile char *)q)[i] = ((char *)p)[i];
		return q;
	}
	__typeof__(realloc) *f = ALLOCATOR(realloc);
	if (!f)
		return NULL;
	released(p, RETURN_ADDRESS);
	void *q = f(p, n);
	return allocated(q, n, RETURN_ADDRESS);
}

EXPORT int posix_memalign(void **to, size_t align, size_t n) {
	__typeof__(posix_memalign) *f = ALLOCATOR(posix_memalign);
	int e = f(to, align, n);
	if (!e)
		allocated(*to, n, RETURN_ADDRESS);
	return e;
}

EXPORT void *aligned_alloc(size_t align, size_t n) { return allocated(ALLOCATOR(aligned_alloc)(align, n), n, RETURN_ADDRESS); }
EXPORT void *memalign(size_t align, size_t n) { return allocated(ALLOCATOR(memalign)(align, n), n, RETURN_ADDRESS); }
EXPORT void *valloc(size_t n) { return allocated(ALLOCATOR(valloc)(n), n, RETURN_ADDRESS); }

// The C++ operators delete call free from libstdc++, which is not instrumented. So the program's own call is recorded.
#define DELETE(name, ...) EXPORT void name(void *p, ##__VA_ARGS__) { \
	if (!p) \
		return; \
	__typeof__(free) *f = ALLOCATOR(free); \
	released(p, RETURN_ADDRESS); \
	f(p); \
}
#define NEW(name, ...) EXPORT void *name(size_t n, ##__VA_ARGS__)

DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm, size_t n)
DELETE(_ZdaPvm, size_t n)
DELETE(_ZdlPvRKSt9nothrow_t, const void *x)
DELETE(_ZdaPvRKSt9nothrow_t, const void *x)
DELETE(_ZdlPvSt11align_val_t, size_t a)
DELETE(_ZdaPvSt11align_val_t, size_t a)
DELETE(_ZdlPvmSt11align_val_t, size_t n, size_t a)
DELETE(_ZdaPvmSt11align_val_t, size_t n, size_t a)

// Programs for large files call mmap64.
#define MAPPING(mmap) \
	EXPORT void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset) { \
		void *p = REAL(mmap)(at, n, prot, flags, fd, offset); \
		return p == MAP_FAILED ? p : allocated(p, n, RETURN_ADDRESS); \
	}
MAPPING(mmap)
MAPPING(mmap64)

// Another thread may map the old address immediately. A fence that orders nothing has a ticket, so the accesses before
// it come first.
EXPORT void *mremap(void *at, size_t from, size_t n, int flags, ...) {
	va_list more;
	va_start(more, flags);
	void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
	va_end(more);
	record(NULL, FENCE, 0, 0, RETURN_ADDRESS);
	void *p = REAL(mremap)(at, from, n, flags, to);
	if (p == MAP_FAILED)
		return p;
	size_t kept = p == at ? from : 0;
	if (n > kept)
		allocated((char *)p + kept, n - kept, RETURN_ADDRESS);
	return p;
}

EXPORT int munmap(void *p, size_t n) {
	if (region && !over && instrumented(RETURN_ADDRESS))
		record(p, RELEASE, 1, n, RETURN_ADDRESS);
	return REAL(munmap)(p, n);
}

// bytes copies before the real functions are known, for example when the dynamic linker starts.
static void *bytes(void *to, const void *from, size_t n) {
	volatile char *t = to;
	const volatile char *f = from;
	if (t < f)
		for (size_t i = 0; i < n; i++)
			t[i] = f[i];
	else
		while (n--)
			t[n] = f[n];
	return to;
}

#define TRACED (self && instrumented(RETURN_ADDRESS))

// move and fill do what memmove and memset do. If traced is set, they record it.
static inline void *move(void *to, const void *from, size_t n, int traced, uptr caller) {
	if (traced) {
		range(from, n, READ_RANGE, caller);
		range(to, n, WRITE_RANGE, caller);
	}
	__typeof__(memmove) *f = ALLOCATOR(memmove);
	return f ? f(to, from, n) : bytes(to, from, n);
}

static inline void *fill(void *to, int c, size_t n, int traced, uptr caller) {
	if (traced)
		range(to, n, WRITE_RANGE, caller);
	__typeof__(memset) *f = ALLOCATOR(memset);
	if (f)
		return f(to, c, n);
	for (volatile char *t = to; n--;)
		*t++ = c;
	return to;
}

#define MOVING(name, traced) \
	EXPORT void *name(void *to, const void *from, size_t n) { return move(to, from, n, traced, RETURN_ADDRESS); }
#define MOVING_CHECKED(name) \
	EXPORT void *name(void *to, const void *from, size_t n, size_t most) { \
		if (n > most) \
			abort(); \
		return move(to, from, n, TRACED, RETURN_ADDRESS); \
	}
MOVING(memcpy, TRACED)
MOVING(memmove, TRACED)
EXPORT void *memset(void *to, int c, size_t n) { return fill(to, c, n, TRACED, RETURN_ADDRESS); }

// The names that clang calls from version 15 on.
MOVING(__tsan_memcpy, self != NULL)
MOVING(__tsan_memmove, self != NULL)
EXPORT void *__tsan_memset(void *to, int c, size_t n) { return fill(to, c, n, self != NULL, RETURN_ADDRESS); }

// The names that are called with -D_FORTIFY_SOURCE.
MOVING_CHECKED(__memcpy_chk)
MOVING_CHECKED(__memmove_chk)
EXPORT void *__memset_chk(void *to, int c, size_t n, size_t most) {
	if (n > most)
		abort();
	return fill(to, c, n, TRACED, RETURN_ADDRESS);
}

// clang calls bcmp for a memcmp whose sign does not matter.
#define COMPARING_BYTES(name) \
	EXPORT int name(const void *a, const void *b, size_t n) { \
		if (TRACED) { \
			range(a, n, READ_RANGE, RETURN_ADDRESS); \
			range(b, n, READ_RANGE, RETURN_ADDRESS); \
		} \
		const unsigned char *x = a, *y = b; \
		for (; n && *x == *y; n--) \
			x++, y++; \
		return n ? *x - *y : 0; \
	}
COMPARING_BYTES(memcmp)
COMPARING_BYTES(bcmp)

EXPORT size_t strlen(const char *s) {
	size_t n = 0;
	while (((const volatile char *)s)[n])
		n++;
	if (TRACED)
		range(s, n + 1, READ_RANGE, RETURN_ADDRESS);
	return n;
}

static size_t length(const char *s, size_t most) {
	size_t n = 0;
	while (n < most && ((const volatile char *)s)[n])
		n++;
	return n;
}

EXPORT char *strcpy(char *restrict to, const char *restrict from) {
	size_t n = length(from, -1) + 1;
	if (TRACED) {
		range(from, n, READ_RANGE, RETURN_ADDRESS);
		range(to, n, WRITE_RANGE, RETURN_ADDRESS);
	}
	return REAL(memmove)(to, from, n);
}

EXPORT char *strncpy(char *restrict to, const char *restrict from, size_t n) {
	size_t k = length(from, n);
	if (TRACED) {
		range(from, k < n ? k + 1 : n, READ_RANGE, RETURN_ADDRESS);
		range(to, n, WRITE_RANGE, RETURN_ADDRESS);
	}
	REAL(memmove)(to, from, k);
	REAL(memset)(to + k, 0, n - k);
	return to;
}

EXPORT char *strcat(char *restrict to, const char *restrict from) {
	size_t at = length(to, -1), n = length(from, -1) + 1;
	if (TRACED) {
		range(to, at + 1, READ_RANGE, RETURN_ADDRESS);
		range(from, n, READ_RANGE, RETURN_ADDRESS);
		range(to + at, n, WRITE_RANGE, RETURN_ADDRESS);
	}
	REAL(memmove)(to + at, from, n);
	return to;
}

EXPORT int strcmp(const char *a, const char *b) {
	size_t i = 0;
	while (((const volatile char *)a)[i] && a[i] == b[i])
		i++;
	if (TRACED) {
		range(a, i + 1, READ_RANGE, RETURN_ADDRESS);
		range(b, i + 1, READ_RANGE, RETURN_ADDRESS);
	}
	return (unsigned char)a[i] - (unsigned char)b[i];
}

extern char *__strcpy_chk(char *, const char *, size_t), *__strncpy_chk(char *, const char *, size_t, size_t), *__strcat_chk(char *, const char *, size_t);

EXPORT char *__strcpy_chk(char *to, const char *from, size_t most) {
	if (TRACED) {
		size_t n = length(from, -1) + 1;
		range(from, n, READ_RANGE, RETURN_ADDRESS);
		range(to, n < most ? n : most, WRITE_RANGE, RETURN_ADDRESS);
	}
	return REAL(__strcpy_chk)(to, from, most);
}

EXPORT char *__strncpy_chk(char *to, const char *from, size_t n, size_t most) {
	if (TRACED) {
		size_t k = length(from, n);
		range(from, k < n ? k + 1 : n, READ_RANGE, RETURN_ADDRESS);
		range(to, n < most ? n : most, WRITE_RANGE, RETURN_ADDRESS);
	}
	return REAL(__strncpy_chk)(to, from, n, most);
}

EXPORT char *__strcat_chk(char *to, const char *from, size_t most) {
	if (TRACED) {
		size_t at = length(to, most), n = length(from, -1) + 1;
		range(to, at < most ? at + 1 : most, READ_RANGE, RETURN_ADDRESS);
		range(from, n, READ_RANGE, RETURN_ADDRESS);
		range(to + at, n < most - at ? n : most - at, WRITE_RANGE, RETURN_ADDRESS);
	}
	return REAL(__strcat_chk)(to, from, most);
}

// Threads communicate by pipes, sockets and eventfds: sending is ordered before receiving. One synchronisation object
// represents all of them, because a thread that waits for several is ordered after each.
static void any(u64 kind, uptr pc) {
	if (self)
		record(NULL, kind, OF_FILE, 0, pc);
}

static void through(int fd, u64 kind, uptr pc) {
	int error = errno;
	struct stat s;
	if (self && !syscall(SYS_fstat, fd, &s) && !S_ISREG(s.st_mode) && !S_ISCHR(s.st_mode) && !S_ISDIR(s.st_mode) && !S_ISBLK(s.st_mode))
		any(kind, pc);
	errno = error;
}

// A stream may be one end of a pipe. The standard streams are not for the program's own threads.
static void by_stream(FILE *f, u64 kind, uptr pc) {
	int error = errno; // a stream in memory has no descriptor
	int fd = f ? fileno_unlocked(f) : -1;
	if (fd > 2)
		through(fd, kind, pc);
	errno = error;
}

#define READING(name, params, args) \
	EXPORT ssize_t name params { \
		ssize_t k = REAL(name) args; \
		if (k >= 0) \
			through(fd, LEARN, RETURN_ADDRESS); \
		if (k > 0 && TRACED) \
			range(to, (size_t)k < n ? k : n, WRITE_RANGE, RETURN_ADDRESS); \
		return k; \
	}
#define WRITING(name, params, args) \
	EXPORT ssize_t name params { \
		if (TRACED) \
			range(from, n, READ_RANGE, RETURN_ADDRESS); \
		through(fd, PUBLISH, RETURN_ADDRESS); \
		return REAL(name) args; \
	}
READING(read, (int fd, void *to, size_t n), (fd, to, n))
READING(recv, (int fd, void *to, size_t n, int flags), (fd, to, n, flags))
READING(recvfrom, (int fd, void *to, size_t n, int flags, struct sockaddr *a, socklen_t *len), (fd, to, n, flags, a, len))
WRITING(write, (int fd, const void *from, size_t n), (fd, from, n))
WRITING(send, (int fd, const void *from, size_t n, int flags), (fd, from, n, flags))
WRITING(sendto, (int fd, const void *from, size_t n, int flags, const struct sockaddr *a, socklen_t len), (fd, from, n, flags, a, len))

// Closing a pipe or a connection ends the read of the other side.
EXPORT int close(int fd) {
	through(fd, PUBLISH, RETURN_ADDRESS);
	return REAL(close)(fd);
}

// scattered records an access of the first so many bytes of several buffers.
static void scattered(const struct iovec *v, size_t n, size_t bytes, u64 kind, uptr pc) {
	for (; n && bytes; n--, v++) {
		size_t k = v->iov_len < bytes ? v->iov_len : bytes;
		range(v->iov_base, k, kind, pc);
		bytes -= k;
	}
}

#define SENDING(result, name, params, args, ...) \
	EXPORT result name params { \
		if (TRACED) { \
			__VA_ARGS__; \
		} \
		through(fd, PUBLISH, RETURN_ADDRESS); \
		return REAL(name) args; \
	}
#define RECEIVING(result, name, params, args, ...) \
	EXPORT result name params { \
		result k = REAL(name) args; \
		if (k >= 0) \
			through(fd, LEARN, RETURN_ADDRESS); \
		if (k >= 0 && TRACED) { \
			__VA_ARGS__; \
		} \
		return k; \
	}
#define FROM_VECTOR(v, n) scattered(v, n, -1, READ_RANGE, RETURN_ADDRESS)
#define TO_VECTOR(v, n) scattered(v, n, k, WRITE_RANGE, RETURN_ADDRESS)
SENDING(ssize_t, writev, (int fd, const struct iovec *v, int n), (fd, v, n), FROM_VECTOR(v, n))
SENDING(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), FROM_VECTOR(v, n))
SENDING(ssize_t, pwritev64, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), FROM_VECTOR(v, n))
SENDING(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), FROM_VECTOR(m->msg_iov, m->msg_iovlen))
SENDING(int, shutdown, (int fd, int how), (fd, how))
SENDING(int, eventfd_write, (int fd, eventfd_t n), (fd, n))
SENDING(int, connect, (int fd, const struct sockaddr *a, socklen_t len), (fd, a, len))
SENDING(int, epoll_ctl, (int fd, int op, int of, struct epoll_event *e), (fd, op, of, e))
RECEIVING(ssize_t, readv, (int fd, const struct iovec *v, int n), (fd, v, n), TO_VECTOR(v, n))
RECEIVING(ssize_t, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), TO_VECTOR(v, n))
RECEIVING(ssize_t, preadv64, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at), TO_VECTOR(v, n))
RECEIVING(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags), TO_VECTOR(m->msg_iov, m->msg_iovlen))
RECEIVING(int, eventfd_read, (int fd, eventfd_t *n), (fd, n), range(n, sizeof *n, WRITE_RANGE, RETURN_ADDRESS))
RECEIVING(int, accept, (int fd, struct sockaddr *a, socklen_t *len), (fd, a, len))
RECEIVING(int, accept4, (int fd, struct sockaddr *a, socklen_t *len, int flags), (fd, a, len, flags))
RECEIVING(int, epoll_wait, (int fd, struct epoll_event *e, int n, int timeout), (fd, e, n, timeout), range(e, k * sizeof *e, WRITE_RANGE, RETURN_ADDRESS))
RECEIVING(int, epoll_pwait, (int fd, struct epoll_event *e, int n, int timeout, const sigset_t *mask), (fd, e, n, timeout, mask), range(e, k * sizeof *e, WRITE_RANGE, RETURN_ADDRESS))

// Threads that lock the same file by descriptors of their own.
EXPORT int flock(int fd, int operation) {
	if (operation & LOCK_UN)
		any(PUBLISH, RETURN_ADDRESS);
	int e = REAL(flock)(fd, operation);
	if (!e && !(operation & LOCK_UN))
		any(LEARN, RETURN_ADDRESS);
	return e;
}

#define POLLING(name, params, args) \
	EXPORT int name params { \
		int k = REAL(name) args; \
		if (k > 0) \
			any(LEARN, RETURN_ADDRESS); \
		return k; \
	}
POLLING(poll, (struct pollfd *p, nfds_t n, int timeout), (p, n, timeout))
POLLING(ppoll, (struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *mask), (p, n, t, mask))
POLLING(select, (int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, struct timeval *restrict t), (n, r, w, x, t))
POLLING(pselect, (int n, fd_set *restrict r, fd_set *restrict w, fd_set *restrict x, const struct timespec *restrict t, const sigset_t *restrict mask), (n, r, w, x, t, mask))

// Message queues, and semaphores of System V.
#define QUEUEING(name, params, args) \
	EXPORT int name params { \
		if (TRACED) \
			range(from, n, READ_RANGE, RETURN_ADDRESS); \
		any(PUBLISH, RETURN_ADDRESS); \
		return REAL(name) args; \
	}
#define DEQUEUEING(name, params, args) \
	EXPORT ssize_t name params { \
		ssize_t k = REAL(name) args; \
		if (k >= 0) \
			any(LEARN, RETURN_ADDRESS); \
		if (k > 0 && TRACED) \
			range(to, k, WRITE_RANGE, RETURN_ADDRESS); \
		return k; \
	}
QUEUEING(mq_send, (mqd_t q, const char *from, size_t n, unsigned priority), (q, from, n, priority))
QUEUEING(mq_timedsend, (mqd_t q, const char *from, size_t n, unsigned priority, const struct timespec *t), (q, from, n, priority, t))
QUEUEING(msgsnd, (int q, const void *from, size_t n, int flags), (q, from, n, flags))
DEQUEUEING(mq_receive, (mqd_t q, char *to, size_t n, unsigned *priority), (q, to, n, priority))
DEQUEUEING(mq_timedreceive, (mqd_t q, char *restrict to, size_t n, unsigned *restrict priority, const struct timespec *restrict t), (q, to, n, priority, t))
DEQUEUEING(msgrcv, (int q, void *to, size_t n, long type, int flags), (q, to, n, type, flags))

#define SEMAPHORES(name, params, args) \
	EXPORT int name params { \
		any(PUBLISH, RETURN_ADDRESS); \
		int e = REAL(name) args; \
		if (!e) \
			any(LEARN, RETURN_ADDRESS); \
		return e; \
	}
SEMAPHORES(semop, (int s, struct sembuf *o, size_t n), (s, o, n))
SEMAPHORES(semtimedop, (int s, struct sembuf *o, size_t n, const struct timespec *t), (s, o, n, t))
