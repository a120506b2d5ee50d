// The functions that the compiler calls for accesses and function calls.

// place returns the index of an address in the table seen of a thread. Adjacent addresses have adjacent places. Blocks
// of 512 bytes are scattered, because rows of a matrix would otherwise share the same places.
static inline u64 place(uptr address) {
	return (address >> 2 ^ (u64)(address >> 9) * 0x9E3779B97F4A7C15 >> (64 - SEEN_BITS)) % SEEN;
}

// access_at records an access. It omits an access that the thread has already made since its last synchronisation, and
// a read after a write of the same bytes: a detector would find no more races.
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

// A destructor stores the pointer of a virtual table that is stored already. This changes nothing.
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
	load_modules(); // the caller is unknown, because the compiler may jump here
}

EXPORT void __tsan_ignore_thread_begin(void) {}
EXPORT void __tsan_ignore_thread_end(void) {}
