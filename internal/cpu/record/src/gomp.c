// OpenMP by GCC. libgomp synchronises by futexes, which are not recorded, so these functions record the meaning of its
// calls.

struct team {
	struct team *outer;
	u64 object; // number of the first of its synchronisation objects: see TEAM_BARRIER
	u32 tasks;  // it has made tasks
};

// task is an explicit task, or the implicit task of a thread in a team.
struct task {
	struct task *outer;
	struct group *group;
	u32 final; // the tasks that it makes are executed at once
	u32 asked; // it has asked for the number of its thread
	u64 id;
};

struct group { struct group *outer; u64 id; };

// Synchronisation objects have numbers that are not addresses of the program: a variable on a stack may have the
// address of an earlier one. Each call of new_object returns 8 numbers.
static u64 new_object(void) {
	static u64 last;
	return (1ULL << 47) + 8 * __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

enum { TEAM_BARRIER, TEAM_ORDERED, TEAM_COPY, TEAM_BEGINS, TEAM_ENDS };

struct region_start {
	void *reductions; // libgomp finds them here in the data of a region with reductions
	void (*run)(void *);
	void *data;
	struct team team;
};

// Explicit tasks are recorded as threads of their own, with numbers of threads: two tasks are not ordered because one
// thread has executed both. tasked is set if there has been any.
static u32 tasked;

// make_task begins the life of a task and returns its number. The task continues from another one, or from the current
// one if from is 0. The tasks of a loop continue from a task that does nothing itself.
static u32 make_task(u32 from, int loop, uptr pc) {
	u32 number = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&tasked, 1, __ATOMIC_RELAXED);
	record((void *)(uptr)from, TASK_MADE, loop, number, pc);
	return number;
}

static int locate_module(struct dl_phdr_info *info, size_t size, void *unused) {
	if (size < offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof info->dlpi_tls_data || !info->dlpi_tls_data)
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			record(info->dlpi_tls_data, LOCAL, 0, (uptr)info->dlpi_tls_data + info->dlpi_phdr[i].p_memsz, 0);
	return 0;
}

// go_on makes the thread continue with a task. The part of its stack below frame is then unused.
static void go_on(u32 number, int ended, uptr frame) {
	struct thread *t = self;
	if (!t)
		return;
	if (!t->located) {
		t->located = 1;
		dl_iterate_phdr(locate_module, NULL);
	}
	record((void *)frame, TASK, ended, number, 0);
	t->present = number;
}

// become_thread makes the rest of the current task a part of the thread. For a reduction, the task uses copies of
// variables that belong to the thread.
static void become_thread(uptr frame) {
	struct thread *t = self;
	if (t && t->present) {
		record(t, PUBLISH, OF_TASK, 0, 0);
		go_on(0, 1, frame);
		record(t, LEARN, OF_TASK, 0, 0);
	}
}

static void learn_fulfilled(uptr pc);

static void tasks_ended(int all, uptr pc) {
	if (__atomic_load_n(&tasked, __ATOMIC_RELAXED)) {
		record(NULL, TASKS_ENDED, all, 0, pc);
		learn_fulfilled(pc);
	}
}

#define LIBGOMP(name) ({ static void *f; void *g = __atomic_load_n(&f, __ATOMIC_RELAXED); \
	if (!g) { g = real(name); __atomic_store_n(&f, g, __ATOMIC_RELAXED); } g; })

static void in(struct team *t, int what, u64 kind, uptr pc) { record((void *)(t->object + what), kind, OF_OPENMP, 0, pc); }
static void of_task(u64 id, u64 kind, uptr pc) { record((void *)id, kind, OF_TASK, 0, pc); }

// A task that asks for the number of its thread in the team may use what belongs to that thread. Tasks that have asked
// in one thread are therefore ordered, because no other thread of the team has that number. Different teams are not
// ordered.
static void by_number(u64 team, u64 kind, uptr pc) {
	struct thread *t = self;
	if (t && team && __atomic_load_n(&tasked, __ATOMIC_RELAXED))
		record((void *)(uptr)((team * 0x9E3779B97F4A7C15 + t->number) & ((1ULL << 48) - 1)), kind, OF_NUMBER, 0, pc);
}

static void ask(u32 *asked, u64 team, uptr pc) {
	if (!*asked)
		*asked = 1, by_number(team, LEARN, pc);
}

// in_team is executed by each thread of a team.
static void in_team(void *p) {
	struct region_start *r = p;
	struct thread *t = self;
	struct team *outer = t ? t->team : NULL;
	struct task implicit = {t ? t->task : NULL, .id = new_object()}, *before = implicit.outer;
	in(&r->team, TEAM_BEGINS, LEARN, 0);
	tasks_ended(1, 0); // of an earlier region
	if (t)
		t->team = &r->team, t->task = &implicit;
	r->run(r->data);
	if (implicit.asked)
		by_number(r->team.object, PUBLISH, 0);
	if ((t = self))
		t->team = outer, t->task = before;
	in(&r->team, TEAM_ENDS, PUBLISH, 0);
}

// Parallel regions of a thread with the same address are ordered. Those of the tasks that it executes are not.
#define IN_TEAM(reductions, call) do { \
	struct region_start r = {reductions, run, data}; \
	uptr pc = RETURN_ADDRESS; \
	r.team.object = self && self->present ? new_object() : (uptr)&r; \
	in(&r.team, TEAM_BEGINS, PUBLISH, pc); \
	call; \
	in(&r.team, TEAM_ENDS, LEARN, pc); \
	if (__atomic_load_n(&r.team.tasks, __ATOMIC_RELAXED)) \
		of_task(r.team.object, LEARN, pc); \
	tasks_ended(1, pc); \
} while (0)

typedef void body(void *);

EXPORT void GOMP_parallel(body *run, void *data, unsigned threads, unsigned flags) {
	void (*f)(body *, void *, unsigned, unsigned) = LIBGOMP("GOMP_parallel");
	IN_TEAM(NULL, f(in_team, &r, threads, flags));
}

EXPORT unsigned GOMP_parallel_reductions(body *run, void *data, unsigned threads, unsigned flags) {
	unsigned (*f)(body *, void *, unsigned, unsigned) = LIBGOMP("GOMP_parallel_reductions"), made;
	IN_TEAM(*(void **)data, made = f(in_team, &r, threads, flags));
	return made;
}

#define PARALLEL_LOOP(name) \
	EXPORT void name(body *run, void *data, unsigned threads, long from, long to, long step, long chunk, unsigned flags) { \
		void (*f)(body *, void *, unsigned, long, long, long, long, unsigned) = LIBGOMP(#name); \
		IN_TEAM(NULL, f(in_team, &r, threads, from, to, step, chunk, flags)); \
	}
PARALLEL_LOOP(GOMP_parallel_loop_static)
PARALLEL_LOOP(GOMP_parallel_loop_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_guided)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_dynamic)
PARALLEL_LOOP(GOMP_parallel_loop_nonmonotonic_guided)

#define PARALLEL_RUNTIME(name) \
	EXPORT void name(body *run, void *data, unsigned threads, long from, long to, long step, unsigned flags) { \
		void (*f)(body *, void *, unsigned, long, long, long, unsigned) = LIBGOMP(#name); \
		IN_TEAM(NULL, f(in_team, &r, threads, from, to, step, flags)); \
	}
PARALLEL_RUNTIME(GOMP_parallel_loop_runtime)
PARALLEL_RUNTIME(GOMP_parallel_loop_nonmonotonic_runtime)
PARALLEL_RUNTIME(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

EXPORT void GOMP_parallel_sections(body *run, void *data, unsigned threads, unsigned count, unsigned flags) {
	void (*f)(body *, void *, unsigned, unsigned, unsigned) = LIBGOMP("GOMP_parallel_sections");
	IN_TEAM(NULL, f(in_team, &r, threads, count, flags));
}

// A barrier also waits for the tasks of the team. Outside a team there is only one thread, and nothing to order.
#define AT_BARRIER(call) do { \
	struct team *team = self ? self->team : NULL; \
	uptr pc = RETURN_ADDRESS; \
	if (team) \
		in(team, TEAM_BARRIER, BARRIER_ENTER, pc); \
	call; \
	if (team) { \
		in(team, TEAM_BARRIER, BARRIER_LEAVE, pc); \
		if (__atomic_load_n(&team->tasks, __ATOMIC_RELAXED)) \
			of_task(team->object, LEARN, pc); \
		tasks_ended(1, pc); \
	} \
} while (0)

#define BARRIER(name) EXPORT void name(void) { void (*f)(void) = LIBGOMP(#name); AT_BARRIER(f()); }
#define BARRIER_CANCEL(name) EXPORT _Bool name(void) { _Bool (*f)(void) = LIBGOMP(#name), r; AT_BARRIER(r = f()); return r; }
BARRIER(GOMP_barrier)
BARRIER(GOMP_loop_end)
BARRIER(GOMP_sections_end)
BARRIER_CANCEL(GOMP_barrier_cancel)
BARRIER_CANCEL(GOMP_loop_end_cancel)
BARRIER_CANCEL(GOMP_sections_end_cancel)

#define LOCK_CALL(name, params, args, lock) EXPORT void name params { void (*f) params = LIBGOMP(#name); f args; record(lock, LOCK, OF_OPENMP, 0, RETURN_ADDRESS); }
#define UNLOCK_CALL(name, params, args, lock) EXPORT void name params { void (*f) params = LIBGOMP(#name); record(lock, UNLOCK, OF_OPENMP, 0, RETURN_ADDRESS); f args; }
static char unnamed, atomics;
LOCK_CALL(GOMP_critical_start, (void), (), &unnamed)
UNLOCK_CALL(GOMP_critical_end, (void), (), &unnamed)
LOCK_CALL(GOMP_critical_name_start, (void **name), (name), name)
UNLOCK_CALL(GOMP_critical_name_end, (void **name), (name), name)
LOCK_CALL(GOMP_atomic_start, (void), (), &atomics)
UNLOCK_CALL(GOMP_atomic_end, (void), (), &atomics)
LOCK_CALL(omp_set_lock, (void *lock), (lock), lock)
UNLOCK_CALL(omp_unset_lock, (void *lock), (lock), lock)
LOCK_CALL(omp_set_nest_lock, (void *lock), (lock), lock)
UNLOCK_CALL(omp_unset_nest_lock, (void *lock), (lock), lock)

// The functions for Fortran have names of their own.
LOCK_CALL(omp_set_lock_, (void *lock), (lock), lock)
UNLOCK_CALL(omp_unset_lock_, (void *lock), (lock), lock)
LOCK_CALL(omp_set_nest_lock_, (void *lock), (lock), lock)
UNLOCK_CALL(omp_unset_nest_lock_, (void *lock), (lock), lock)

#define TEST_CALL(name) EXPORT int name(void *lock) { int (*f)(void *) = LIBGOMP(#name), ok = f(lock); \
	if (ok) \
		record(lock, LOCK, OF_OPENMP, 0, RETURN_ADDRESS); \
	return ok; }
TEST_CALL(omp_test_lock)
TEST_CALL(omp_test_nest_lock)
TEST_CALL(omp_test_lock_)
TEST_CALL(omp_test_nest_lock_)

// Ordered parts of loops, and waits of one iteration for others.
EXPORT void GOMP_ordered_start(void) {
	void (*f)(void) = LIBGOMP("GOMP_ordered_start");
	f();
	if (self && self->team)
		in(self->team, TEAM_ORDERED, LEARN, RETURN_ADDRESS);
}
EXPORT void GOMP_ordered_end(void) {
	void (*f)(void) = LIBGOMP("GOMP_ordered_end");
	if (self && self->team)
		in(self->team, TEAM_ORDERED, PUBLISH, RETURN_ADDRESS);
	f();
}

// A wait of a doacross loop is ordered after the post of the iteration that it waits for. Their synchronisation object
// has a number computed from the iteration. In a loop of more than 4096 iterations, iterations share numbers, and a
// wait is ordered after the posts of all that share its number.
static uptr iteration(u64 team, u32 levels, const u64 *at) {
	u64 n = at[0];
	for (u32 i = 1; i < levels; i++)
		n = n * 0x9E3779B97F4A7C15 + at[i], n ^= n >> 29;
	return (uptr)(team << 9 | (n & 4095)) & ((1ULL << 48) - 1); // teams are 8 apart
}

// The start of the loop gives how many numbers identify an iteration.
#define DOACROSS(name) EXPORT _Bool name(unsigned levels, uptr a, uptr b, uptr c, uptr d, uptr e, uptr f, uptr g) { \
	_Bool (*start)(unsigned, uptr, uptr, uptr, uptr, uptr, uptr, uptr) = LIBGOMP(#name); \
	if (self) \
		self->levels = levels; \
	return start(levels, a, b, c, d, e, f, g); }
DOACROSS(GOMP_loop_doacross_start)
DOACROSS(GOMP_loop_doacross_static_start)
DOACROSS(GOMP_loop_doacross_dynamic_start)
DOACROSS(GOMP_loop_doacross_guided_start)
DOACROSS(GOMP_loop_doacross_runtime_start)
DOACROSS(GOMP_loop_ull_doacross_start)
DOACROSS(GOMP_loop_ull_doacross_static_start)
DOACROSS(GOMP_loop_ull_doacross_dynamic_start)
DOACROSS(GOMP_loop_ull_doacross_guided_start)
DOACROSS(GOMP_loop_ull_doacross_runtime_start)

#define POST(name) EXPORT void name(u64 *at) { void (*f)(u64 *) = LIBGOMP(#name); \
	if (self && self->team) \
		record((void *)iteration(self->team->object, self->levels < 9 ? self->levels : 9, at), PUBLISH, OF_DOACROSS, 0, RETURN_ADDRESS); \
	f(at); }
POST(GOMP_doacross_post)
POST(GOMP_doacross_ull_post)

// Reading more numbers than the loop has is harmless. Loops of more than 8 levels are not known to exist.
#define AWAIT(name) EXPORT void name(u64 first, ...) { void (*f)(u64, ...) = LIBGOMP(#name); \
	u64 at[9] = {first}; va_list list; va_start(list, first); \
	for (int i = 1; i < 9; i++) at[i] = va_arg(list, u64); \
	va_end(list); \
	f(first, at[1], at[2], at[3], at[4], at[5], at[6], at[7], at[8]); \
	if (self && self->team) record((void *)iteration(self->team->object, self->levels < 9 ? self->levels : 9, at), LEARN, OF_DOACROSS, 0, RETURN_ADDRESS); }
AWAIT(GOMP_doacross_wait)
AWAIT(GOMP_doacross_ull_wait)

static void offer(uptr pc);
static void came(int some, int more);

EXPORT void *GOMP_single_copy_start(void) {
	void *(*f)(void) = LIBGOMP("GOMP_single_copy_start"), *r;
	offer(RETURN_ADDRESS);
	came(!(r = f()), 1);
	if (r && self && self->team)
		in(self->team, TEAM_COPY, LEARN, RETURN_ADDRESS);
	return r;
}
EXPORT void GOMP_single_copy_end(void *data) {
	void (*f)(void *) = LIBGOMP("GOMP_single_copy_end");
	if (self && self->team)
		in(self->team, TEAM_COPY, PUBLISH, RETURN_ADDRESS);
	f(data);
}

// deferred is the recorder's data of a task. They precede the program's data in the task.
struct deferred {
	void *event;          // libgomp writes the event of a detached task here
	void (*run)(void *);
	void *reductions;     // libgomp finds them here in the data of a taskloop with reductions
	void (*copy)(void *, void *);
	void *from;
	size_t offset;        // of the program's data
	size_t size;          // of the program's data
	struct group *group;
	struct team *team;
	u64 id, parent;
	u32 number;           // as a thread; 0 if it is part of the thread that executes it
	u32 final, detached;
	u32 depends, room;    // number and capacity of depend
	struct { uptr address; int writes; } *depend;
};

// COPIED executes copy, which copies a task's data to a block of size bytes. The copy is ordered after those that had
// the block before, and before the task.
#define COPIED(to, size, d, copy) do { \
	record(to, FRESH, 0, size, 0); \
	copy; \
	of_task((d)->id, PUBLISH, 0); \
} while (0)

static void copy_task(void *to, void *from) {
	struct deferred *d = from;
	REAL(memmove)(to, d, sizeof *d);
	COPIED(to, d->offset + d->size, d, d->copy((char *)to + d->offset, d->from));
}

// What follows a detached task is ordered after the fulfilment of its event. All events are one synchronisation object.
static u32 fulfilled;

EXPORT void omp_fulfill_event(uptr event) {
	void (*f)(uptr) = LIBGOMP("omp_fulfill_event");
	__atomic_store_n(&fulfilled, 1, __ATOMIC_RELAXED);
	record(&fulfilled, PUBLISH, OF_TASK, 0, RETURN_ADDRESS);
	f(event);
}

EXPORT void omp_fulfill_event_(uptr *event) { omp_fulfill_event(*event); }

static void learn_fulfilled(uptr pc) {
	if (__atomic_load_n(&fulfilled, __ATOMIC_RELAXED))
		record(&fulfilled, LEARN, OF_TASK, 0, pc);
}

// Dependences order the tasks that one task makes. So the parent's number is part of the number of their
// synchronisation object.
static void add_depend(struct deferred *d, u64 parent, uptr address, int writes) {
	if (d->depends == d->room) {
		d->room = d->room ? 2 * d->room : 4;
		d->depend = ALLOCATOR(realloc)(d->depend, d->room * sizeof d->depend[0]);
	}
	d->depend[d->depends].address = address + parent * 0x9E3779B97F4A7C15;
	d->depend[d->depends++].writes = writes;
}

static void depends_free(struct deferred *d) {
	ALLOCATOR(free)(d->depend);
	d->depend = NULL;
	d->depends = d->room = 0;
}

static void depends_begin(struct deferred *d) {
	if (d->depends)
		learn_fulfilled(0);
	for (u32 i = 0; i < d->depends; i++) {
		record((void *)d->depend[i].address, LEARN, OF_DEPEND_OUT, 0, 0);
		if (d->depend[i].writes)
			record((void *)d->depend[i].address, LEARN, OF_DEPEND_IN, 0, 0);
	}
}

static void depends_end(struct deferred *d) {
	for (u32 i = 0; i < d->depends; i++)
		record((void *)d->depend[i].address, PUBLISH, d->depend[i].writes ? OF_DEPEND_OUT : OF_DEPEND_IN, 0, 0);
}

// run_task executes a task. Only the task uses the size bytes at block.
static void run_task(struct deferred *d, u32 number, void *data, void *block, size_t size) {
	struct thread *t = self;
	struct task mine = {t ? t->task : NULL, d->group, d->final, .id = new_object()};
	struct team *team = t ? t->team : NULL; // NULL if the thread has finished its part of the region and executes remaining tasks
	u64 asked = team && mine.outer && mine.outer->asked ? team->object : 0; // the team whose number the waiting task has asked for
	u32 before = t ? t->present : 0;
	uptr frame = (uptr)__builtin_frame_address(0);
	by_number(asked, PUBLISH, 0);
	go_on(number, 0, frame);
	if (number)
		record(block, FRESH, 0, size, 0);
	of_task(d->id, LEARN, 0);
	depends_begin(d);
	if (t)
		t->task = &mine, t->team = d->team;
	d->run(data);
	if (mine.asked)
		by_number(d->team->object, PUBLISH, 0);
	if ((t = self))
		t->task = mine.outer, t->team = team;
	depends_end(d);
	depends_free(d);
	of_task(d->parent, PUBLISH, 0);
	for (struct group *g = d->group; g; g = g->outer)
		of_task(g->id, PUBLISH, 0);
	if (d->team)
		of_task(d->team->object, PUBLISH, 0);
	if (number)
		record(block, FRESH, 0, size, 0);
	go_on(before, number && t && t->present == number, frame);
	by_number(asked, LEARN, 0);
}

static void begin_task(void *p) {
	struct deferred *d = p;
	if (d->detached)
		*(void **)((char *)p + d->offset) = d->event;
	run_task(d, d->number, (char *)p + d->offset, p, d->offset + d->size);
}

// present_task returns the number of the task that the thread executes, or 0 outside of tasks.
static u64 present_task(void) { return self && self->task ? self->task->id : 0; }

static void describe(struct deferred *d, body *run, uptr pc) {
	struct thread *t = self;
	d->run = run;
	d->id = new_object();
	d->final |= t && t->task && t->task->final;
	d->parent = present_task();
	d->group = t && t->task ? t->task->group : NULL;
	d->team = t ? t->team : NULL;
	if (d->team)
		__atomic_store_n(&d->team->tasks, 1, __ATOMIC_RELAXED);
	of_task(d->id, PUBLISH, pc);
}

// list_depends reads the compiler's list. In one form it has the number of dependences, the number of writes, and the
// addresses. In the other it has 0, the number of dependences, the numbers of writes, of mutually exclusive ones and of
// reads, and the addresses. The remaining addresses are those of objects that hold an address.
static void list_depends(struct deferred *d, void **list) {
	size_t n = (size_t)list[0], out = (size_t)list[1], at = 2, in = n;
	if (!n)
		n = (size_t)list[1], out = (size_t)list[2] + (size_t)list[3], in = out + (size_t)list[4], at = 5;
	for (size_t i = 0; i < n; i++) {
		void *a = list[at + i];
		int writes = i < out;
		if (i >= in)
			writes = ((uptr *)a)[1] != 1 /* in */, a = *(void **)a;
		add_depend(d, present_task(), (uptr)a, writes);
	}
}

enum { TASK_FINAL = 2, TASK_DEPEND = 8, TASK_NOGROUP = 1 << 11, TASK_REDUCTION = 1 << 12, TASK_DETACH = 1 << 13 };

// make makes a task. If apart is set, the task is a thread of its own even outside a team.
static void make(int apart, uptr pc, body *run, void *data, void (*copy)(void *, void *), long size, long align, _Bool now, unsigned flags, void **depend, int priority, void *detach) {
	void (*f)(body *, void *, void (*)(void *, void *), long, long, _Bool, unsigned, void **, int, void *) = LIBGOMP("GOMP_task");
	if (!self) {
		f(run, data, copy, size, align, now, flags, depend, priority, detach);
		return;
	}
	long unit = align > 16 ? align : 16, offset = (sizeof(struct deferred) + unit - 1) / unit * unit;
	char *pack = __builtin_alloca(offset + size + unit);
	struct deferred *d = (struct deferred *)(((uptr)pack + unit - 1) / unit * unit);
	*d = (struct deferred){.copy = copy, .from = data, .offset = offset, .size = size, .final = flags / TASK_FINAL & 1, .detached = flags / TASK_DETACH & 1};
	int at_once = !now || (self->task && self->task->final);
	if (flags & TASK_DEPEND)
		list_depends(d, depend);
	if (!copy)
		REAL(memmove)((char *)d + offset, data, size);
	describe(d, run, pc);
	if (d->team || apart)
		d->number = make_task(0, 0, pc);
	u32 number = d->number;
	f(begin_task, d, copy ? copy_task : NULL, offset + size, unit, now, flags, depend, priority, detach);
	if (number && at_once)
		record(NULL, TASK_JOINED, 0, number, pc);
}

EXPORT void GOMP_task(body *run, void *data, void (*copy)(void *, void *), long size, long align, _Bool now, unsigned flags, void **depend, int priority, void *detach) {
	make(0, RETURN_ADDRESS, run, data, copy, size, align, now, flags, depend, priority, detach);
}

EXPORT void GOMP_taskwait(void) {
	void (*f)(void) = LIBGOMP("GOMP_taskwait");
	f();
	of_task(present_task(), LEARN, RETURN_ADDRESS);
	tasks_ended(0, RETURN_ADDRESS);
}

static void await_depends(void **list) {
	void (*f)(void **) = LIBGOMP("GOMP_taskwait_depend");
	f(list);
	struct deferred d = {.depends = 0};
	list_depends(&d, list);
	depends_begin(&d);
	depends_free(&d);
}

EXPORT void GOMP_taskwait_depend(void **list) { await_depends(list); }

// Groups are allocated, because they begin and end in different calls.
EXPORT void GOMP_taskgroup_start(void) {
	void (*f)(void) = LIBGOMP("GOMP_taskgroup_start");
	struct task *t = self ? self->task : NULL;
	if (t) {
		struct group *g = ALLOCATOR(malloc)(sizeof *g);
		g->outer = t->group, g->id = new_object();
		t->group = g;
	}
	f();
}

EXPORT void GOMP_taskgroup_end(void) {
	void (*f)(void) = LIBGOMP("GOMP_taskgroup_end");
	f();
	struct task *t = self ? self->task : NULL;
	if (t && t->group) {
		struct group *g = t->group;
		of_task(g->id, LEARN, RETURN_ADDRESS);
		t->group = g->outer;
		ALLOCATOR(free)(g);
	}
}

// In the data of a task of a taskloop, the bounds come first, where libgomp writes them, and then the recorder's data.
// Each loop of the program gets its own function, which knows the size.
enum { LOOPS = 64 };
static struct { body *run; long size; } loops[LOOPS];
static int loops_lock;

static long behind(long size) { return (size + 15) / 16 * 16; }

static void run_loop(int i, void *data) {
	struct deferred *d = (struct deferred *)((char *)data + behind(loops[i].size));
	run_task(d, d->number ? make_task(d->number, 0, 0) : 0, data, data, behind(loops[i].size) + sizeof *d);
}

#define LOOP(i) static void loop##i(void *data) { run_loop(0##i, data); }
#define EACH8(M, o) M(o##0) M(o##1) M(o##2) M(o##3) M(o##4) M(o##5) M(o##6) M(o##7)
EACH8(LOOP, 0) EACH8(LOOP, 1) EACH8(LOOP, 2) EACH8(LOOP, 3) EACH8(LOOP, 4) EACH8(LOOP, 5) EACH8(LOOP, 6) EACH8(LOOP, 7)
#define NAME(i) loop##i,
static body *const bodies[LOOPS] = {EACH8(NAME, 0) EACH8(NAME, 1) EACH8(NAME, 2) EACH8(NAME, 3) EACH8(NAME, 4) EACH8(NAME, 5) EACH8(NAME, 6) EACH8(NAME, 7)};

static int loop_of(body *run, long size) {
	int i = 0;
	while (__atomic_exchange_n(&loops_lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
	for (; i < LOOPS; i++)
		if (!loops[i].run || (loops[i].run == run && loops[i].size == size)) {
			loops[i].run = run, loops[i].size = size;
			break;
		}
	__atomic_store_n(&loops_lock, 0, __ATOMIC_RELEASE);
	return i;
}

static void copy_loop(void *to, void *from) {
	struct deferred *d = from;
	if (d->copy)
		COPIED(to, behind(d->offset) + sizeof *d, d, d->copy(to, d->from));
	else
		REAL(memmove)(to, d->from, d->offset);
	REAL(memmove)((char *)to + behind(d->offset), d, sizeof *d);
}

// A taskloop waits for its tasks in a group of its own, unless it has the clause nogroup.
#define TASKLOOP(name, type) \
	EXPORT void name(body *run, void *data, void (*copy)(void *, void *), long size, long align, unsigned flags, unsigned long tasks, int priority, type from, type to, type step) { \
		void (*f)(body *, void *, void (*)(void *, void *), long, long, unsigned, unsigned long, int, type, type, type) = LIBGOMP(#name); \
		int i = self ? loop_of(run, size) : LOOPS; \
		if (i == LOOPS) { \
			f(run, data, copy, size, align, flags, tasks, priority, from, to, step); \
			return; \
		} \
		struct group mine = {NULL}; \
		struct task *t = self->task; \
		if (t && !(flags & TASK_NOGROUP)) \
			mine.outer = t->group, mine.id = new_object(), t->group = &mine; \
		struct deferred d = {.copy = copy, .from = data, .offset = size}; \
		if (flags & TASK_REDUCTION) \
			d.reductions = ((void **)data)[2]; \
		describe(&d, run, RETURN_ADDRESS); \
		if (d.team && !(flags & TASK_REDUCTION)) \
			d.number = make_task(0, 1, RETURN_ADDRESS); \
		u32 number = d.number; \
		f(bodies[i], &d, copy_loop, behind(size) + sizeof d, align > 16 ? align : 16, flags, tasks, priority, from, to, step); \
		if (t && !(flags & TASK_NOGROUP)) { \
			of_task(mine.id, LEARN, RETURN_ADDRESS); \
			t->group = mine.outer; \
			if (number) \
				record(NULL, TASK_JOINED, 0, number, RETURN_ADDRESS); \
		} \
	}
TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, unsigned long long)

// A task that takes part in a reduction uses the thread's copies.
EXPORT void GOMP_task_reduction_remap(size_t n, size_t originals, void **list) {
	void (*f)(size_t, size_t, void **) = LIBGOMP("GOMP_task_reduction_remap");
	become_thread((uptr)__builtin_frame_address(0));
	f(n, originals, list);
}

// libgomp executes the teams of a league one after another in one thread, so each team is recorded as a task.
struct league { body *run; void *data; u32 number; };

static void in_league(void *p) {
	struct league *l = p;
	struct thread *t = self;
	struct task mine = {t ? t->task : NULL, .id = new_object()};
	u32 before = t ? t->present : 0, number = make_task(l->number, 0, 0);
	uptr frame = (uptr)__builtin_frame_address(0);
	go_on(number, 0, frame);
	if (t)
		t->task = &mine;
	l->run(l->data);
	if ((t = self))
		t->task = mine.outer;
	go_on(before, t && t->present == number, frame);
}

EXPORT void GOMP_teams_reg(body *run, void *data, unsigned teams, unsigned threads, unsigned flags) {
	void (*f)(body *, void *, unsigned, unsigned, unsigned) = LIBGOMP("GOMP_teams_reg");
	if (!self) {
		f(run, data, teams, threads, flags);
		return;
	}
	struct league l = {run, data, make_task(0, 1, RETURN_ADDRESS)};
	f(in_league, &l, teams, threads, flags);
	record(NULL, TASK_JOINED, 0, l.number, RETURN_ADDRESS);
}

// The teams of a target region are iterations of a loop in its function, which asks for each team. Each team has its
// own private variables on the stack of that function, so the history of the stack is forgotten between teams.
EXPORT _Bool GOMP_teams4(unsigned least, unsigned most, unsigned threads, _Bool first) {
	_Bool (*f)(unsigned, unsigned, unsigned, _Bool) = LIBGOMP("GOMP_teams4"), more = f(least, most, threads, first);
	struct thread *t = self;
	if (!t || !t->target)
		return more;
	if (first)
		t->before = t->present, t->league = make_task(0, 1, RETURN_ADDRESS), t->in_team = 0;
	if (t->in_team)
		go_on(t->before, t->present == t->in_team, t->target);
	t->in_team = more ? make_task(t->league, 0, RETURN_ADDRESS) : 0;
	if (more)
		go_on(t->in_team, 0, t->target);
	else
		record(NULL, TASK_JOINED, 0, t->league, RETURN_ADDRESS);
	return more;
}

// Target regions on the host. A region that is not waited for (nowait) is made a task: libgomp would execute it in this
// thread, or would not tell when another thread executes it. A task without a function is a transfer of data, which the
// host does not need.
typedef void target_call(int, body *, size_t, void **, size_t *, unsigned short *, unsigned, void **, void **);
struct target { int device; unsigned flags; body *run; size_t n; void **addresses; size_t *sizes; unsigned short *kinds; void **args; };
enum { TARGET_NOWAIT = 1, MAP_KIND = 0xff, MAP_FIRSTPRIVATE = 0xc };

static void run_target(int device, body *run, size_t n, void **addresses, size_t *sizes, unsigned short *kinds, unsigned flags, void **args) {
	target_call *f = LIBGOMP("GOMP_target_ext");
	uptr outer = self ? self->target : 0;
	if (self)
		self->target = (uptr)__builtin_frame_address(0);
	f(device, run, n, addresses, sizes, kinds, flags, NULL, args);
	if (self)
		self->target = outer;
}

static void target_task(void *p) {
	struct target *t = *(struct target **)p;
	if (t->run)
		run_target(t->device, t->run, t->n, t->addresses, t->sizes, t->kinds, t->flags, t->args);
	ALLOCATOR(free)(t);
}

static size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

// later makes a target region a task, with copies of its arguments.
static void later(struct target *o, void **depend, uptr pc) {
	size_t args = 0, size = aligned(sizeof *o) + aligned(o->n * sizeof(void *)) + aligned(o->n * sizeof(size_t)) + aligned(o->n * sizeof(short));
	for (void **a = o->args; a && *a; a++) // the next value belongs to an argument with this bit
		if (args++, (uptr)*a & 1 << 7)
			a++, args++;
	size += aligned((args + 1) * sizeof(void *)) + 64;
	for (size_t i = 0; i < o->n; i++)
		if ((o->kinds[i] & MAP_KIND) == MAP_FIRSTPRIVATE)
			size += aligned(o->sizes[i]);
	struct target *t = ALLOCATOR(calloc)(1, size);
	char *to = (char *)t + aligned(sizeof *t);
#define TAKE(what, bytes) (what = REAL(memmove)(to, what, bytes), to += aligned(bytes))
	*t = *o;
	TAKE(t->addresses, o->n * sizeof(void *));
	TAKE(t->sizes, o->n * sizeof(size_t));
	TAKE(t->kinds, o->n * sizeof(short));
	if (t->args)
		TAKE(t->args, args * sizeof(void *));
	to += 64 - (uptr)to % 64;
	for (size_t i = 0; i < o->n; i++)
		if ((o->kinds[i] & MAP_KIND) == MAP_FIRSTPRIVATE)
			TAKE(t->addresses[i], o->sizes[i]);
	make(1, pc, target_task, &t, NULL, sizeof t, sizeof t, 1, depend ? TASK_DEPEND : 0, depend, 0, NULL);
}

EXPORT void GOMP_target_ext(int device, body *run, size_t n, void **addresses, size_t *sizes, unsigned short *kinds, unsigned flags, void **depend, void **args) {
	if (!self) {
		target_call *f = LIBGOMP("GOMP_target_ext");
		f(device, run, n, addresses, sizes, kinds, flags, depend, args);
	} else if (flags & TARGET_NOWAIT) {
		later(&(struct target){device, flags & ~TARGET_NOWAIT, run, n, addresses, sizes, kinds, args}, depend, RETURN_ADDRESS);
	} else {
		if (depend)
			await_depends(depend);
		run_target(device, run, n, addresses, sizes, kinds, flags, args);
	}
}
