// Threads, their rings, and the connection to the checker.

#define HIDDEN __attribute__((visibility("hidden")))
#define EXPORT __attribute__((visibility("default"), weak)) // weak: a program may have a function of the same name
#define RETURN_ADDRESS ((uptr)__builtin_return_address(0))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum { SEEN_BITS = 11, SEEN = 1 << SEEN_BITS };

struct thread {
	u64 *ring;
	u64 head;
	u64 tail;       // as last read
	struct slot *slot;
	u64 epoch;      // epoch of seen: an access repeated between two synchronisations is not recorded
	u32 busy;       // inside the recorder: a signal handler that interrupts it records nothing
	u32 number;
	u32 ended;
	struct team *team;   // of OpenMP
	struct task *task;
	u32 present;         // number of the task that it executes; 0 for its own
	u32 levels;          // levels of the doacross loop that it executes
	u32 located;         // its thread-local variables have been recorded
	uptr target;         // frame of the target region that it executes
	u32 before, league, in_team; // numbers of tasks, while it executes the teams of a league
	u64 seen[SEEN];
};

static __thread struct thread *self __attribute__((tls_model("initial-exec")));
static __thread volatile int over __attribute__((tls_model("initial-exec"))); // the thread has ended, or cannot be recorded

static struct region_head *region;
static int attached; // 1 once the checker has been looked for
static u32 threads;  // number of threads that have numbers

// The addresses of code distinguish instrumented modules from other libraries. Interceptors record only calls from
// instrumented modules.
static struct module code[MODULES];
static u32 codes;

static inline int instrumented(uptr pc) {
	u32 n = __atomic_load_n(&codes, __ATOMIC_ACQUIRE);
	for (u32 i = 0; i < n; i++)
		if (pc - code[i].from < code[i].to - code[i].from)
			return 1;
	return 0;
}

static struct slot *slots(void) { return (struct slot *)((char *)region + SLOTS_AT); }

// The program's errno stays, as a signal may end the sleep.
static void nap(int n) {
	int error = errno;
	if (n < 8)
		sched_yield();
	else {
		struct timespec t = {0, 50000};
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, NULL);
	}
	errno = error;
}

// room waits until the ring has room for n more records. If it has to wait, it waits until there is room for many,
// because waking up costs more than a record. It returns 0 if the checker has stopped reading.
static int __attribute__((noinline)) room(struct thread *t, u64 n) {
	for (int i = 0;; i++) {
		t->tail = __atomic_load_n(&t->slot->tail, __ATOMIC_ACQUIRE);
		if (t->head + n - t->tail <= RECORDS - (i ? RECORDS / 4 : 0))
			return 1;
		if (__atomic_load_n(&region->stop, __ATOMIC_RELAXED))
			return 0;
		nap(i);
	}
}

static inline u64 word(uptr address, u64 kind, u64 size) {
	return ((u64)address & 0xffffffffffff) | kind << 48 | size << 56;
}

// put writes a record of two words. put2 writes one of four words.
static inline void put(struct thread *t, u64 a, u64 b) {
	if (UNLIKELY(t->head + 1 - t->tail > RECORDS) && !room(t, 1))
		return;
	u64 *at = t->ring + (t->head % RECORDS) * 2;
	at[0] = a, at[1] = b;
	__atomic_store_n(&t->slot->head, ++t->head, __ATOMIC_RELEASE);
}

static inline void put2(struct thread *t, u64 a, u64 b, u64 c, u64 d) {
	if (UNLIKELY(t->head + 2 - t->tail > RECORDS) && !room(t, 2))
		return;
	u64 *at = t->ring + (t->head % RECORDS) * 2;
	at[0] = a, at[1] = b;
	at = t->ring + ((t->head + 1) % RECORDS) * 2;
	at[0] = c, at[1] = d;
	t->head += 2;
	__atomic_store_n(&t->slot->head, t->head, __ATOMIC_RELEASE);
}

// synchronise writes a record with a ticket. It waits for room before it takes the ticket, because the checker waits
// for each ticket.
static void synchronise(struct thread *t, uptr address, u64 kind, u64 size, u64 number, uptr pc) {
	if (UNLIKELY(t->head + 2 - t->tail > RECORDS) && !room(t, 2))
		return;
	t->epoch++;
	if (UNLIKELY((t->epoch & 0xfff) == 0)) { // seen has only 12 bits of it
		for (int i = 0; i < SEEN; i++)
			t->seen[i] = 0;
		t->epoch++;
	}
	u64 ticket = __atomic_fetch_add(&region->ticket, 1, __ATOMIC_SEQ_CST);
	put2(t, word(address, kind, size), pc, ticket, number);
}

static void attach(void);

// enter returns the thread's state, or NULL if nothing is to be recorded. leave ends the section that enter begins.
static struct thread *begin(void);

static inline struct thread *enter(void) {
	struct thread *t = self;
	if (UNLIKELY(!t) && !(t = begin()))
		return NULL;
	if (UNLIKELY(t->busy)) {
		__atomic_fetch_add(&region->signals, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t->busy = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return t;
}

static inline void leave(struct thread *t) {
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	t->busy = 0;
}

// record writes a record with a ticket for the calling thread.
static void record(const volatile void *address, u64 kind, u64 size, u64 number, uptr pc) {
	struct thread *t = enter();
	if (t) {
		synchronise(t, (uptr)address, kind, size, number, pc);
		leave(t);
	}
}

// stack finds the stack of the calling thread. For the main thread, pthread_getattr_np would read /proc, so its stack
// is estimated from a local variable.
static void stack(uptr *from, uptr *to) {
	pthread_attr_t a;
	void *address = NULL;
	size_t size = 0;
	uptr here = (uptr)__builtin_frame_address(0);
	*from = here - (8 << 20), *to = here + (1 << 20);
	if (syscall(SYS_gettid) == getpid() || pthread_getattr_np(pthread_self(), &a))
		return;
	if (!pthread_attr_getstack(&a, &address, &size))
		*from = (uptr)address, *to = (uptr)address + size;
	pthread_attr_destroy(&a);
}

// start makes the state of the calling thread. forked is 0 for the first thread, and for threads whose creation was not
// recorded.
static struct thread *start(u32 number, int forked) {
	struct slot *s = slots();
	int i = 0;
	for (int n = 0; n < 4096; n++) { // slots of ended threads become free after they are read
		u32 none = FREE;
		for (i = 0; i < SLOTS && !(none = FREE, __atomic_compare_exchange_n(&s[i].state, &none, TAKEN, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)); i++)
			;
		int ended = 0;
		for (int k = 0; i == SLOTS && k < SLOTS; k++)
			ended |= __atomic_load_n(&s[k].state, __ATOMIC_RELAXED) != TAKEN;
		if (!ended || __atomic_load_n(&region->stop, __ATOMIC_RELAXED))
			break;
		nap(n);
	}
	over = 1; // what is called here is not recorded
	struct thread *t = i == SLOTS ? MAP_FAILED : (void *)syscall(SYS_mmap, NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	if (t == MAP_FAILED) {
		__atomic_fetch_add(&region->lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	t->slot = &s[i];
	t->ring = (u64 *)((char *)region + RINGS_AT + i * RING_BYTES);
	t->head = t->tail = __atomic_load_n(&s[i].head, __ATOMIC_ACQUIRE);
	t->number = number;
	t->epoch = 1;
	t->busy = 1;
	uptr from, to;
	stack(&from, &to);
	over = 0;
	self = t;
	synchronise(t, 0, THREAD, 0, number, 0);
	synchronise(t, from, BEGIN, forked, to, 0);
	leave(t);
	return t;
}

static char asked_for; // a synchronisation object: threads whose creation was not recorded are ordered after requests for such threads

static struct thread *__attribute__((noinline)) begin(void) {
	if (over)
		return NULL;
	if (!__atomic_load_n(&attached, __ATOMIC_ACQUIRE))
		attach();
	if (!region || self)
		return self;
	struct thread *t = start(__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED), 0);
	record(&asked_for, LEARN, OF_SIGNAL, 0, 0);
	return t;
}

// finish ends the calling thread. Signal handlers may still run in it.
static void finish(void) {
	struct thread *t = self;
	int ends = t && !t->busy;
	if (ends) {
		t->busy = 1;
		synchronise(t, 0, END, 0, 0, 0);
	}
	over = 1;
	self = NULL;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (ends) {
		__atomic_store_n(&t->slot->state, ENDED, __ATOMIC_RELEASE);
		syscall(SYS_munmap, t, sizeof *t);
	}
}

static void unlock_all(void);
static void adopt(void);

// child makes a forked process a recorded process of its own.
static void child(void) {
	unlock_all();
	if (region)
		syscall(SYS_munmap, region, REGION_BYTES);
	self = NULL;
	region = NULL;
	threads = 0;
	attached = 0;
	attach();
	begin();
	adopt();
}

// tell_modules writes the modules that the region does not have yet. The caller holds a lock, or no other thread runs.
static void tell_modules(void) {
	for (u32 i = region->modules; i < codes; i++) {
		((struct module *)((char *)region + MODULES_AT))[i] = code[i];
		__atomic_store_n(&region->modules, i + 1, __ATOMIC_RELEASE);
	}
}

static int attach_lock;

static void attach(void) {
	while (__atomic_exchange_n(&attach_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	if (attached)
		goto done;
	const char *name = getenv("FENCEPOST_CPU");
	if (!name || !*name)
		goto done;
	int fd = syscall(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC, 0);
	if (fd < 0)
		goto done;
	struct file_head *f = (void *)syscall(SYS_mmap, NULL, FILE_HEAD, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	if (f != MAP_FAILED) {
		u32 i = f->version == VERSION ? __atomic_fetch_add(&f->processes, 1, __ATOMIC_ACQ_REL) : PROCESSES;
		void *r = MAP_FAILED;
		if (i < PROCESSES)
			r = (void *)syscall(SYS_mmap, NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)(FILE_HEAD + i * REGION_BYTES));
		if (r != MAP_FAILED) {
			region = r;
			tell_modules();
			__atomic_store_n(&region->pid, (u32)getpid(), __ATOMIC_RELEASE);
		}
		syscall(SYS_munmap, f, FILE_HEAD);
	}
	syscall(SYS_close, fd);
done:
	__atomic_store_n(&attached, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&attach_lock, 0, __ATOMIC_RELEASE);
}

// imports reports whether a library has instrumented code: such a library needs __tsan_init. In its table of symbols,
// the needed ones precede the defined ones, and only the defined ones are hashed.
static int imports(struct dl_phdr_info *info) {
	const ElfW(Dyn) *d = NULL;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	const ElfW(Sym) *symbols = NULL;
	const char *names = NULL;
	const u32 *hash = NULL;
	for (; d && d->d_tag != DT_NULL; d++) {
		uptr at = d->d_un.d_ptr < info->dlpi_addr ? d->d_un.d_ptr + info->dlpi_addr : d->d_un.d_ptr;
		if (d->d_tag == DT_SYMTAB)
			symbols = (const void *)at;
		else if (d->d_tag == DT_STRTAB)
			names = (const void *)at;
		else if (d->d_tag == DT_GNU_HASH)
			hash = (const void *)at;
	}
	if (!symbols || !names || !hash)
		return 0;
	for (u32 i = 1; i < hash[1]; i++) {
		const char *a = names + symbols[i].st_name, *b = "__tsan_init";
		while (*a && *a == *b)
			a++, b++;
		if (*a == *b)
			return 1;
	}
	return 0;
}

// add_module adds the executable, or a library, if it has instrumented code.
static int add_module(struct dl_phdr_info *info, size_t size, void *first) {
	int executable = *(int *)first;
	*(int *)first = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uptr from = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || instrumented(from) || codes == MODULES || !(executable || imports(info)))
			continue;
		struct module *m = &code[codes];
		m->base = info->dlpi_addr, m->from = from, m->to = from + p->p_memsz;
		size_t n = 0;
		if (executable) {
			ssize_t k = readlink("/proc/self/exe", m->path, sizeof m->path - 1);
			n = k > 0 ? k : 0;
		} else {
			for (; info->dlpi_name[n] && n < sizeof m->path - 1; n++)
				m->path[n] = info->dlpi_name[n];
		}
		m->path[n] = 0;
		__atomic_store_n(&codes, codes + 1, __ATOMIC_RELEASE);
	}
	return 0;
}

static int modules_lock;

// load_modules records the executable and the libraries that have instrumented code.
static void load_modules(void) {
	int before = over, first = 1;
	over = 1;
	while (__atomic_exchange_n(&modules_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	dl_iterate_phdr(add_module, &first);
	if (region)
		tell_modules();
	__atomic_store_n(&modules_lock, 0, __ATOMIC_RELEASE);
	over = before;
}

// real returns the function that an interceptor replaces. The mathematical library may be loaded for a plugin alone.
static void *real(const char *name) {
	int before = over;
	over = 1;
	void *f = dlsym(RTLD_NEXT, name), *math;
	if (!f && (math = dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD)))
		f = dlsym(math, name);
	over = before;
	return f;
}

#define REAL(name) ({ static __typeof__(name) *f; __typeof__(name) *g = __atomic_load_n(&f, __ATOMIC_RELAXED); \
	if (!g) { g = (__typeof__(name) *)real(#name); __atomic_store_n(&f, g, __ATOMIC_RELAXED); } g; })
