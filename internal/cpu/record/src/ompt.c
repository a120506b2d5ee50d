// OpenMP by LLVM and Intel. libomp calls a tool that it finds in the program, by the interface OMPT (OpenMP 5.0,
// chapter 4).

typedef union { u64 value; void *ptr; } ompt_data;

enum { // constants of the specification
	OMPT_PARALLEL_BEGIN = 3, OMPT_PARALLEL_END, OMPT_TASK_CREATE, OMPT_TASK_SCHEDULE, OMPT_IMPLICIT_TASK,
	OMPT_SYNC_REGION_WAIT = 16, OMPT_DEPENDENCES = 18, OMPT_SYNC_REGION = 23, OMPT_MUTEX_ACQUIRED = 27, OMPT_FLUSH = 29, OMPT_REDUCTION = 31,
	OMPT_SCOPE_BEGIN = 1, OMPT_SCOPE_END,
	OMPT_TASKWAIT = 5, OMPT_TASKGROUP, OMPT_IN_REDUCTION,
	OMPT_TASK_COMPLETE = 1, OMPT_TASK_CANCEL = 3, OMPT_TASK_DETACH = 4, OMPT_TASK_LATE = 6, OMPT_TASK_SWITCH = 7,
	OMPT_TASK_INITIAL = 1, OMPT_TASK_UNDEFERRED = 0x8000000, OMPT_TASK_UNTIED = 0x10000000,
	OMPT_CRITICAL = 5, OMPT_ORDERED = 7, // kinds of mutexes
	OMPT_DEPEND_IN = 1, OMPT_DEPEND_SOURCE = 5, OMPT_DEPEND_SINK,
};

// Synchronisation objects. Those of a team, numbered from the team's number on: its begin, its even and its odd
// barriers, its end, and its tasks. Those of a task: its begin, and its children.
enum { TEAM_BEGIN, TEAM_BARRIERS, TEAM_END = 3, TEAM_TASKS, TASK_BEGIN = 0, TASK_CHILDREN };

struct lgroup { struct lgroup *outer; u64 object; };

struct ltask {
	u64 object, parent, team;
	u32 barriers; // number of barriers that its thread has reached in the team
	u32 begun;
	u32 number; // as a thread; 0 if it is part of the thread that executes it
	u32 at_once, untied;
	u32 asked; // it has asked for the number of its thread
	struct lgroup *group;
	struct deferred depends;
};

static void publish(u64 object, const void *pc) { record((void *)object, PUBLISH, OF_TASK, 0, (uptr)pc); }
static void learn(u64 object, const void *pc) { record((void *)object, LEARN, OF_TASK, 0, (uptr)pc); }

static struct ltask *new_task(void) {
	struct ltask *t = ALLOCATOR(calloc)(1, sizeof *t);
	t->object = new_object();
	return t;
}

static void parallel_begin(ompt_data *task, const void *frame, ompt_data *team, unsigned threads, int flags, const void *pc) {
	team->value = new_object();
	publish(team->value + TEAM_BEGIN, pc);
}

static void parallel_end(ompt_data *team, ompt_data *task, int flags, const void *pc) {
	learn(team->value + TEAM_BARRIERS, pc);
	learn(team->value + TEAM_BARRIERS + 1, pc);
	learn(team->value + TEAM_END, pc);
	learn(team->value + TEAM_TASKS, pc);
	tasks_ended(1, pc);
}

static void implicit_task(int end, ompt_data *team, ompt_data *task, unsigned threads, unsigned index, int flags) {
	if (end == OMPT_SCOPE_BEGIN) {
		struct ltask *t = new_task();
		task->ptr = t;
		t->number = self ? self->present : 0;
		if (team && team->value) { // a team of a league begins like the first task of a program
			t->team = team->value;
			learn(t->team + TEAM_BEGIN, NULL);
			tasks_ended(1, NULL); // of an earlier region
		}
	} else if (task && task->ptr) {
		struct ltask *t = task->ptr;
		if (t->team)
			publish(t->team + TEAM_END, NULL);
		ALLOCATOR(free)(t);
		task->ptr = NULL;
	}
}

static void sync_region(int kind, int end, ompt_data *team, ompt_data *task, const void *pc) {
	struct ltask *t = task ? task->ptr : NULL;
	if (!t)
		return;
	if (kind == OMPT_TASKWAIT) {
		if (end != OMPT_SCOPE_BEGIN)
			learn(t->object + TASK_CHILDREN, pc), tasks_ended(0, pc);
	} else if (kind == OMPT_TASKGROUP) {
		if (end == OMPT_SCOPE_BEGIN) {
			struct lgroup *g = ALLOCATOR(calloc)(1, sizeof *g);
			g->outer = t->group, g->object = new_object();
			t->group = g;
		} else if (t->group) {
			struct lgroup *g = t->group;
			learn(g->object, pc);
			t->group = g->outer;
			ALLOCATOR(free)(g);
		}
	} else if (kind != OMPT_IN_REDUCTION && t->team) {
		// A thread may reach the next barrier while others leave this one, but not the one after the next.
		u64 barrier = t->team + TEAM_BARRIERS + t->barriers % 2;
		if (end == OMPT_SCOPE_BEGIN) {
			publish(barrier, pc);
		} else {
			learn(barrier, pc);
			learn(t->team + TEAM_TASKS, pc);
			tasks_ended(1, pc);
			t->barriers++;
		}
	}
}

// The parts of a task reduction are combined after the tasks of the group have ended, and before the end of the group's
// region.
static void sync_region_wait(int kind, int end, ompt_data *team, ompt_data *task, const void *pc) {
	struct ltask *t = task ? task->ptr : NULL;
	if (t && kind == OMPT_TASKGROUP && end == OMPT_SCOPE_END && t->group)
		learn(t->group->object, pc);
}

// The runtime orders the combination of the threads' parts. This is not recorded.
static __thread struct thread *combining __attribute__((tls_model("initial-exec")));

static void reduction(int kind, int end, ompt_data *team, ompt_data *task, const void *pc) {
	if (end == OMPT_SCOPE_BEGIN && self) {
		combining = self;
		self = NULL;
		over = 1;
	} else if (end == OMPT_SCOPE_END && combining) {
		self = combining;
		combining = NULL;
		over = 0;
	}
}

static void task_create(ompt_data *by, const void *frame, ompt_data *task, int flags, int depends, const void *pc) {
	struct ltask *t = new_task(), *parent = by ? by->ptr : NULL;
	task->ptr = t;
	if (parent)
		t->parent = parent->object, t->team = parent->team, t->group = parent->group;
	if (!(flags & OMPT_TASK_INITIAL))
		publish(t->object + TASK_BEGIN, pc);
	if (t->team && !(flags & OMPT_TASK_INITIAL))
		t->number = make_task(0, 0, (uptr)pc);
	t->at_once = (flags & OMPT_TASK_UNDEFERRED) != 0;
	t->untied = (flags & OMPT_TASK_UNTIED) != 0;
}

static int (*task_memory)(void **, size_t *, int);
static int (*task_info)(int, int *, ompt_data **, void **, ompt_data **, int *);

// Tasks that wait while the thread executes others. A task that is not tied to a thread may be in two threads at a
// time: in one that begins its next part, and in one that has left the last part and has not reported it.
enum { DEPTH = 128 };
static __thread struct { struct ltask *task; uptr frame; } waiting[DEPTH] __attribute__((tls_model("initial-exec")));
static __thread u32 waits __attribute__((tls_model("initial-exec")));

// libomp calls task_schedule before it calls the code of a task. The frames of that code are below this frame, and
// those within MARGIN belong to libomp.
enum { MARGIN = 256 };

static void task_schedule(ompt_data *prior, int status, ompt_data *next) {
	struct ltask *t = prior ? prior->ptr : NULL, *n = next ? next->ptr : NULL;
	uptr frame = (uptr)__builtin_frame_address(0) + MARGIN;
	u32 joined = 0;
	int ended = 0, begins = 0;
	if (t && t->asked)
		by_number(t->team, PUBLISH, 0);
	int done = t && t->parent && (status == OMPT_TASK_COMPLETE || status == OMPT_TASK_CANCEL || status == OMPT_TASK_DETACH || status == OMPT_TASK_LATE);
	if (done) {
		void *block = NULL;
		size_t size = 0;
		if (t->untied)
			learn(t->object + TASK_BEGIN, NULL);
		depends_end(&t->depends);
		publish(t->parent + TASK_CHILDREN, NULL);
		for (struct lgroup *g = t->group; g; g = g->outer)
			publish(g->object, NULL);
		if (t->team)
			publish(t->team + TEAM_TASKS, NULL);
		if (t->number && self && self->present == t->number && status != OMPT_TASK_LATE) {
			ended = 1;
			// Some versions return a block that begins and ends too early. The task's block is between its descriptor
			// and the end of a cache line.
			if (task_memory && task_memory(&block, &size, 0) && block)
				record(prior, FRESH, 0, (((uptr)block + size + 63) & ~63ULL) - (uptr)prior, 0);
		}
		if (t->at_once)
			joined = t->number;
	}
	if (waits && waits <= DEPTH && n == waiting[waits - 1].task) {
		frame = waiting[--waits].frame;
	} else if (status == OMPT_TASK_SWITCH) {
		if (waits < DEPTH)
			waiting[waits].task = t, waiting[waits].frame = frame;
		waits++;
		begins = n && n->parent && (!n->begun || n->untied);
	} else if (waits > DEPTH) {
		waits--;
	}
	if (status != OMPT_TASK_LATE && (ended || (n && self && n->number != self->present)))
		go_on(n ? n->number : 0, ended, frame);
	if (joined)
		record(NULL, TASK_JOINED, 0, joined, 0);
	if (done && status != OMPT_TASK_DETACH) {
		depends_free(&t->depends);
		ALLOCATOR(free)(t);
		prior->ptr = NULL;
	}
	if (begins) {
		learn(n->object + TASK_BEGIN, NULL);
		if (!n->begun)
			depends_begin(&n->depends);
		n->begun = 1;
	}
	if (n && n->asked)
		by_number(n->team, LEARN, 0);
}

#define NUMBER(name) EXPORT int name(void) { \
	int (*f)(void) = LIBGOMP(#name); \
	ompt_data *task = NULL; \
	struct thread *t = self; \
	if (t && t->task && t->team) \
		ask(&t->task->asked, t->team->object, RETURN_ADDRESS); \
	else if (t && task_info && task_info(0, NULL, &task, NULL, NULL, NULL) && task && task->ptr) \
		ask(&((struct ltask *)task->ptr)->asked, ((struct ltask *)task->ptr)->team, RETURN_ADDRESS); \
	return f(); \
}
NUMBER(omp_get_thread_num)
NUMBER(omp_get_thread_num_)

// The code of a task that is not tied to a thread runs in parts. Another thread may end the task before a thread that
// has run a part reports it. So the code itself reports the end of a part. Each such code gets its own function, like
// loops.
typedef int routine(int, void *);
static routine *untied[LOOPS];

// leave_part orders what the current task did before its next part.
static void leave_part(uptr pc) {
	ompt_data *task = NULL;
	if (self && task_info && task_info(0, NULL, &task, NULL, NULL, NULL) && task && task->ptr && ((struct ltask *)task->ptr)->untied)
		publish(((struct ltask *)task->ptr)->object + TASK_BEGIN, (void *)pc);
}

static int run_part(int i, int thread, void *task) {
	int r = untied[i](thread, task);
	leave_part(0);
	return r;
}

// A part that is not the last one makes the next part.
EXPORT int __kmpc_omp_task(void *location, int thread, void *task) {
	int (*f)(void *, int, void *) = LIBGOMP("__kmpc_omp_task");
	leave_part(RETURN_ADDRESS);
	return f(location, thread, task);
}

#define PART(i) static int part##i(int thread, void *task) { return run_part(0##i, thread, task); }
EACH8(PART, 0) EACH8(PART, 1) EACH8(PART, 2) EACH8(PART, 3) EACH8(PART, 4) EACH8(PART, 5) EACH8(PART, 6) EACH8(PART, 7)
#define PART_NAME(i) part##i,
static routine *const parts[LOOPS] = {EACH8(PART_NAME, 0) EACH8(PART_NAME, 1) EACH8(PART_NAME, 2) EACH8(PART_NAME, 3) EACH8(PART_NAME, 4) EACH8(PART_NAME, 5) EACH8(PART_NAME, 6) EACH8(PART_NAME, 7)};

static routine *part_of(routine *run) {
	for (int i = 0; i < LOOPS; i++) {
		routine *none = NULL;
		if (__atomic_compare_exchange_n(&untied[i], &none, run, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || none == run)
			return parts[i];
	}
	return run;
}

static __thread void *made __attribute__((tls_model("initial-exec"))); // the last task
static __thread size_t made_size __attribute__((tls_model("initial-exec")));

// When the program writes to the memory of a task before it makes the task, the write is ordered after those that had
// the memory before.
EXPORT void *__kmpc_omp_task_alloc(void *location, int thread, int flags, size_t size, size_t shared, routine *run) {
	if (!(flags & 1) && self)
		run = part_of(run);
	void *(*f)(void *, int, int, size_t, size_t, routine *) = LIBGOMP("__kmpc_omp_task_alloc"), *t = f(location, thread, flags, size, shared, run);
	uptr variables = *(uptr *)t, end = shared ? variables + shared : (uptr)t + size;
	record(t, FRESH, 0, end - (uptr)t, RETURN_ADDRESS);
	made = t, made_size = end - (uptr)t;
	return t;
}

// The tasks of a loop are copies of a task that is freed without a callback.
static void given_back(void *task, uptr pc) {
	if (task == made)
		record(task, FRESH, 0, made_size, pc);
}

EXPORT void __kmpc_taskloop(void *location, int thread, void *task, int now, u64 *from, u64 *to, long long step, int nogroup, int schedule, u64 grain, void *copy) {
	void (*f)(void *, int, void *, int, u64 *, u64 *, long long, int, int, u64, void *) = LIBGOMP("__kmpc_taskloop");
	given_back(task, RETURN_ADDRESS);
	f(location, thread, task, now, from, to, step, nogroup, schedule, grain, copy);
}

EXPORT void __kmpc_taskloop_5(void *location, int thread, void *task, int now, u64 *from, u64 *to, long long step, int nogroup, int schedule, u64 grain, int modifier, void *copy) {
	void (*f)(void *, int, void *, int, u64 *, u64 *, long long, int, int, u64, int, void *) = LIBGOMP("__kmpc_taskloop_5");
	given_back(task, RETURN_ADDRESS);
	f(location, thread, task, now, from, to, step, nogroup, schedule, grain, modifier, copy);
}

// A task that takes part in a reduction uses the thread's copies, whose address libomp returns.
EXPORT void *__kmpc_task_reduction_get_th_data(int thread, void *group, void *data) {
	void *(*f)(int, void *, void *) = LIBGOMP("__kmpc_task_reduction_get_th_data");
	become_thread((uptr)__builtin_frame_address(0));
	return f(thread, group, data);
}

// For a reduction with the modifier task, the first thread makes the threads' parts and the last one combines them.
// There is no callback for this. Each function that combines is wrapped by one of ours, like the code of tasks.
typedef void combiner(void *, void *);
static combiner *combiners[LOOPS];

static void combine(int i, void *to, void *from) {
	reduction(0, OMPT_SCOPE_BEGIN, NULL, NULL, NULL);
	combiners[i](to, from);
	reduction(0, OMPT_SCOPE_END, NULL, NULL, NULL);
}

#define COMBINER(i) static void combiner##i(void *to, void *from) { combine(0##i, to, from); }
EACH8(COMBINER, 0) EACH8(COMBINER, 1) EACH8(COMBINER, 2) EACH8(COMBINER, 3) EACH8(COMBINER, 4) EACH8(COMBINER, 5) EACH8(COMBINER, 6) EACH8(COMBINER, 7)
#define COMBINER_NAME(i) combiner##i,
static combiner *const ours[LOOPS] = {EACH8(COMBINER_NAME, 0) EACH8(COMBINER_NAME, 1) EACH8(COMBINER_NAME, 2) EACH8(COMBINER_NAME, 3) EACH8(COMBINER_NAME, 4) EACH8(COMBINER_NAME, 5) EACH8(COMBINER_NAME, 6) EACH8(COMBINER_NAME, 7)};

struct reduced { void *shared, *original; size_t size; void *init, *fini; combiner *combine; unsigned flags; };

EXPORT void *__kmpc_taskred_modifier_init(void *location, int thread, int loop, int n, struct reduced *list) {
	void *(*f)(void *, int, int, int, struct reduced *) = LIBGOMP("__kmpc_taskred_modifier_init");
	for (int k = 0; k < n; k++)
		for (int i = 0; i < LOOPS; i++) {
			combiner *none = NULL;
			if (__atomic_compare_exchange_n(&combiners[i], &none, list[k].combine, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || none == list[k].combine) {
				list[k].combine = ours[i];
				break;
			}
		}
	reduction(0, OMPT_SCOPE_BEGIN, NULL, NULL, NULL);
	void *group = f(location, thread, loop, n, list);
	reduction(0, OMPT_SCOPE_END, NULL, NULL, NULL);
	return group;
}

struct ompt_depend { ompt_data variable; int type; };

static void doacross(u64 team, const struct ompt_depend *list, int n, u64 kind) {
	u64 at[9];
	if (n > 9)
		n = 9;
	for (int i = 0; i < n; i++)
		at[i] = list[i].variable.value;
	record((void *)iteration(team, (u32)n, at), kind, OF_DOACROSS, 0, 0);
}

static void dependences(ompt_data *task, const struct ompt_depend *list, int n) {
	struct ltask *t = task ? task->ptr : NULL;
	if (t && n > 0 && list[0].type == OMPT_DEPEND_SOURCE)
		doacross(t->team, list, n, PUBLISH);
	else if (t && n > 0 && list[0].type == OMPT_DEPEND_SINK)
		doacross(t->team, list, n, LEARN);
	else if (t)
		for (int i = 0; i < n; i++)
			add_depend(&t->depends, t->parent, list[i].variable.value, list[i].type != OMPT_DEPEND_IN);
}

// Waits for dependences that make no task: taskwait, and tasks that are executed immediately. There is no callback for
// them.
struct kmp_depend { uptr address; size_t size; unsigned char flags; };

static void learn_depends(int n, struct kmp_depend *list) {
	ompt_data *task = NULL;
	if (!self || !task_info || !task_info(0, NULL, &task, NULL, NULL, NULL) || !task || !task->ptr)
		return;
	struct deferred d = {.depends = 0};
	for (int i = 0; i < n; i++)
		add_depend(&d, ((struct ltask *)task->ptr)->object, list[i].address, list[i].flags != 1 /* in */);
	depends_begin(&d);
	depends_free(&d);
}

EXPORT void __kmpc_omp_wait_deps(void *location, int thread, int n, struct kmp_depend *list, int n2, struct kmp_depend *list2) {
	void (*f)(void *, int, int, struct kmp_depend *, int, struct kmp_depend *) = LIBGOMP("__kmpc_omp_wait_deps");
	f(location, thread, n, list, n2, list2);
	learn_depends(n, list);
	learn_depends(n2, list2);
}

EXPORT void __kmpc_omp_taskwait_deps_51(void *location, int thread, int n, struct kmp_depend *list, int n2, struct kmp_depend *list2, int nowait) {
	void (*f)(void *, int, int, struct kmp_depend *, int, struct kmp_depend *, int) = LIBGOMP("__kmpc_omp_taskwait_deps_51");
	f(location, thread, n, list, n2, list2, nowait);
	learn_depends(n, list);
	learn_depends(n2, list2);
}

// Mutually exclusive and ordered regions. libomp reports the end of a region when another thread may already have begun
// the next one, and crashes in the report if its first thread has ended. So the end is recorded before the program's
// call. The object of a region's id is known from its begin. Locks have their own calls.
enum { HELD = 16 };
static __thread u64 held[HELD] __attribute__((tls_model("initial-exec")));
static __thread u32 holds __attribute__((tls_model("initial-exec")));

static void mutex_acquired(int kind, u64 id, const void *pc) {
	if (kind != OMPT_CRITICAL && kind != OMPT_ORDERED)
		return;
	if (holds < HELD) {
		record((void *)id, LOCK, OF_OPENMP, 0, (uptr)pc);
		held[holds] = id;
	}
	holds++;
}

static void region_ends(uptr pc) {
	if (holds && --holds < HELD)
		record((void *)held[holds], UNLOCK, OF_OPENMP, 0, pc);
}

EXPORT void __kmpc_end_critical(void *location, int thread, void *name) {
	void (*f)(void *, int, void *) = LIBGOMP("__kmpc_end_critical");
	region_ends(RETURN_ADDRESS);
	f(location, thread, name);
}

EXPORT void __kmpc_end_ordered(void *location, int thread) {
	void (*f)(void *, int) = LIBGOMP("__kmpc_end_ordered");
	region_ends(RETURN_ADDRESS);
	f(location, thread);
}

static void flush(ompt_data *thread, const void *pc) { record(NULL, FENCE, 0, __ATOMIC_SEQ_CST << 2, (uptr)pc); }

static int locate_libomp(struct dl_phdr_info *info, size_t size, void *inside) {
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uptr from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, to = from + info->dlpi_phdr[i].p_memsz;
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X && (uptr)inside - from < to - from)
			libomp_to = to, libomp_from = from;
	}
	return 0;
}

static int initialize(void *(*lookup)(const char *), int device, ompt_data *tool) {
	int (*set)(int, void *) = lookup("ompt_set_callback");
	if (!set)
		return 0;
	if (!instrumented((uptr)set)) // not linked with the program
		dl_iterate_phdr(locate_libomp, (void *)set);
	task_memory = lookup("ompt_get_task_memory");
	task_info = lookup("ompt_get_task_info");
	set(OMPT_PARALLEL_BEGIN, parallel_begin);
	set(OMPT_PARALLEL_END, parallel_end);
	set(OMPT_IMPLICIT_TASK, implicit_task);
	set(OMPT_SYNC_REGION, sync_region);
	set(OMPT_SYNC_REGION_WAIT, sync_region_wait);
	set(OMPT_REDUCTION, reduction);
	set(OMPT_TASK_CREATE, task_create);
	set(OMPT_TASK_SCHEDULE, task_schedule);
	set(OMPT_DEPENDENCES, dependences);
	set(OMPT_MUTEX_ACQUIRED, mutex_acquired);
	set(OMPT_FLUSH, flush);
	return 1;
}

static void finalize(ompt_data *tool) {}

EXPORT void *ompt_start_tool(unsigned version, const char *runtime) {
	static struct {
		int (*initialize)(void *(*)(const char *), int, ompt_data *);
		void (*finalize)(ompt_data *);
		ompt_data data;
	} tool = {initialize, finalize, {0}};
	return self || begin() ? &tool : NULL;
}
