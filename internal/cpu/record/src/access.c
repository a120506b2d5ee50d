// The calls that the compiler makes for accesses and functions.

// place is where an address is in a thread's table of what it did. Neighbours are neighbours; blocks of 512 bytes are scattered, as
// the rows of a matrix would meet in the same places.
static inline u64 place(uptr address) {
	return (address >> 2 ^ (u64)(address >> 9) * 0x9E3779B97F4A7C15 >> (64 - SEEN_BITS)) % SEEN;
}

// access records an access of the program. What the thread did already since it last synchronised is left out: no detector would
// find more. A read after a write of the same bytes is, too.
static inline void access_at(uptr address, u64 size, u64 code, u64 write, uptr pc) {
	struct thread *t = self;
	if (UNLIKELY(!t) && !(t = begin()))
		return;
	u64 key = ((u64)address & 0xffffffffffff) | code << 48 | (t->epoch & 0xfff) << 52;
	u64 *seen = &t->seen[place(address)];
	if (LIKELY((*seen & ~(write ? 0 : 1ULL << 51)) == (key | write << 51)))
		return;
	if (UNLIKELY(t->busy)) {
		__atomic_fetch_add(&region->signals, 1, __ATOMIC_RELAXED);
		return;
	}
	t->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*seen = key | write << 51;
	put(t, word(address, write ? WRITE : READ, size), pc);
	leave(t);
}

static void range(const volatile void *address, u64 size, u64 kind, uptr pc) {
	if (!size)
		return;
	struct thread *t = enter();
	if (t) {
		put2(t, word((uptr)address, kind, 0), pc, size, 0);
		leave(t);
	}
}

#define ACCESS(size, code) \
	EXPORT void __tsan_read##size(void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); } \
	EXPORT void __tsan_write##size(void *a) { access_at((uptr)a, size, code, 1, RETURN_ADDRESS); } \
	EXPORT void __tsan_read_write##size(void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); access_at((uptr)a, size, code, 1, RETURN_ADDRESS); } \
	EXPORT void __tsan_read##size##_pc(void *a, void *pc) { access_at((uptr)a, size, code, 0, (uptr)pc); } \
	EXPORT void __tsan_write##size##_pc(void *a, void *pc) { access_at((uptr)a, size, code, 1, (uptr)pc); } \
	EXPORT void __tsan_unaligned_read##size(const void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); } \
	EXPORT void __tsan_unaligned_write##size(void *a) { access_at((uptr)a, size, code, 1, RETURN_ADDRESS); } \
	EXPORT void __tsan_unaligned_read_write##size(void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); access_at((uptr)a, size, code, 1, RETURN_ADDRESS); } \
	EXPORT void __tsan_volatile_read##size(void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); } \
	EXPORT void __tsan_volatile_write##size(void *a) { access_at((uptr)a, size, code, 1, RETURN_ADDRESS); } \
	EXPORT void __tsan_unaligned_volatile_read##size(const void *a) { access_at((uptr)a, size, code, 0, RETURN_ADDRESS); } \
	EXPORT void __tsan_unaligned_volatile_write##size(void *a) { access_at((uptr)a, size, code, 1, RETURN_ADDRESS); }

ACCESS(1, 0)
ACCESS(2, 1)
ACCESS(4, 2)
ACCESS(8, 3)
ACCESS(16, 4)

EXPORT void __tsan_read_range(void *a, unsigned long n) { range(a, n, READ_RANGE, RETURN_ADDRESS); }
EXPORT void __tsan_write_range(void *a, unsigned long n) { range(a, n, WRITE_RANGE, RETURN_ADDRESS); }

// A destructor stores a virtual table that is there already: that changes nothing.
EXPORT void __tsan_vptr_update(void **a, void *to) {
	if (*a != to)
		access_at((uptr)a, sizeof to, 3, 1, RETURN_ADDRESS);
}
EXPORT void __tsan_vptr_read(void **a) { access_at((uptr)a, sizeof *a, 3, 0, RETURN_ADDRESS); }

EXPORT void __tsan_func_entry(void *caller) {
	struct thread *t = self;
	if (t && !t->busy) {
		t->busy = 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		put(t, word(0, ENTER, 0), (uptr)caller);
		leave(t);
	}
}

EXPORT void __tsan_func_exit(void) {
	struct thread *t = self;
	if (t && !t->busy) {
		t->busy = 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		put(t, word(0, EXIT, 0), 0);
		leave(t);
	}
}

// Each instrumented object file calls this before its constructors.
EXPORT void __tsan_init(void) {
	static int once;
	if (!__atomic_exchange_n(&once, 1, __ATOMIC_ACQ_REL)) {
		if (!__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
			attach();
		pthread_atfork(NULL, NULL, child);
		begin();
		adopt();
	}
	load_modules(); // the caller is not known: the compiler may jump here
}

EXPORT void __tsan_ignore_thread_begin(void) {}
EXPORT void __tsan_ignore_thread_end(void) {}
