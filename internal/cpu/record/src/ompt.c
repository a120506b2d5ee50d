// OpenMP by LLVM (and Intel): libomp calls a tool that it finds in the program, by OMPT (OpenMP 5.0, chapter 4).

typedef union { u64 value; void *ptr; } ompt_data;

enum { // of the manual
	OMPT_PARALLEL_BEGIN = 3, OMPT_PARALLEL_END, OMPT_TASK_CREATE, OMPT_TASK_SCHEDULE, OMPT_IMPLICIT_TASK,
	OMPT_MUTEX_RELEASED = 17, OMPT_DEPENDENCES = 18, OMPT_SYNC_REGION = 23, OMPT_MUTEX_ACQUIRED = 27, OMPT_REDUCTION = 31,
	OMPT_SCOPE_BEGIN = 1, OMPT_SCOPE_END,
	OMPT_TASKWAIT = 5, OMPT_TASKGROUP, OMPT_IN_REDUCTION,
	OMPT_TASK_COMPLETE = 1, OMPT_TASK_CANCEL = 3, OMPT_TASK_DETACH = 4, OMPT_TASK_LATE = 6,
	OMPT_TASK_INITIAL = 1,
	OMPT_DEPEND_IN = 1, OMPT_DEPEND_SOURCE = 5, OMPT_DEPEND_SINK,
};

// Objects to synchronise on have numbers that are no addresses of programs. A team has, from its number on: its begin, the even and
// the odd barriers, its end, its tasks, and posts of loops; a task: its begin, its children.
enum { TEAM_BEGIN, TEAM_BARRIERS, TEAM_END = 3, TEAM_TASKS, TEAM_POSTS, TASK_BEGIN = 0, TASK_CHILDREN };

static u64 new_object(void) {
	static u64 last;
	return (1ULL << 47) + 8 * __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

struct lgroup { struct lgroup *outer; u64 object; };

struct ltask {
	u64 object, parent, team;
	u32 barriers; // that its thread has come to in the team
	u32 begun;
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
}

static void implicit_task(int end, ompt_data *team, ompt_data *task, unsigned threads, unsigned index, int flags) {
	if (end == OMPT_SCOPE_BEGIN) {
		struct ltask *t = new_task();
		task->ptr = t;
		if (team && !(flags & OMPT_TASK_INITIAL)) {
			t->team = team->value;
			learn(t->team + TEAM_BEGIN, NULL);
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
			learn(t->object + TASK_CHILDREN, pc);
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
		// A thread may come to the next barrier while others leave this one, but not to the one after that.
		u64 barrier = t->team + TEAM_BARRIERS + t->barriers % 2;
		if (end == OMPT_SCOPE_BEGIN) {
			publish(barrier, pc);
		} else {
			learn(barrier, pc);
			learn(t->team + TEAM_TASKS, pc);
			t->barriers++;
		}
	}
}

// Combining the threads' parts is the runtime's business, which orders it.
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
}

static void task_schedule(ompt_data *prior, int status, ompt_data *next) {
	struct ltask *t = prior ? prior->ptr : NULL, *n = next ? next->ptr : NULL;
	if (t && t->parent && (status == OMPT_TASK_COMPLETE || status == OMPT_TASK_CANCEL || status == OMPT_TASK_DETACH || status == OMPT_TASK_LATE)) {
		depends_end(&t->depends);
		publish(t->parent + TASK_CHILDREN, NULL);
		for (struct lgroup *g = t->group; g; g = g->outer)
			publish(g->object, NULL);
		if (t->team)
			publish(t->team + TEAM_TASKS, NULL);
		if (status != OMPT_TASK_DETACH) {
			ALLOCATOR(free)(t);
			prior->ptr = NULL;
		}
	}
	if (n && n->parent && !n->begun) {
		n->begun = 1;
		learn(n->object + TASK_BEGIN, NULL);
		depends_begin(&n->depends);
	}
}

struct ompt_depend { ompt_data variable; int type; };

static void dependences(ompt_data *task, const struct ompt_depend *list, int n) {
	struct ltask *t = task ? task->ptr : NULL;
	if (t && n > 0 && list[0].type == OMPT_DEPEND_SOURCE)
		publish(t->team + TEAM_POSTS, NULL);
	else if (t && n > 0 && list[0].type == OMPT_DEPEND_SINK)
		learn(t->team + TEAM_POSTS, NULL);
	else if (t)
		for (int i = 0; i < n && t->depends.depends < 16; i++) {
			t->depends.depend[t->depends.depends].address = list[i].variable.value;
			t->depends.depend[t->depends.depends++].writes = list[i].type != OMPT_DEPEND_IN;
		}
}

static void mutex_acquired(int kind, u64 id, const void *pc) { record((void *)id, LOCK, OF_OPENMP, 0, (uptr)pc); }
static void mutex_released(int kind, u64 id, const void *pc) { record((void *)id, UNLOCK, OF_OPENMP, 0, (uptr)pc); }

static int initialize(void *(*lookup)(const char *), int device, ompt_data *tool) {
	int (*set)(int, void *) = lookup("ompt_set_callback");
	if (!set)
		return 0;
	set(OMPT_PARALLEL_BEGIN, parallel_begin);
	set(OMPT_PARALLEL_END, parallel_end);
	set(OMPT_IMPLICIT_TASK, implicit_task);
	set(OMPT_SYNC_REGION, sync_region);
	set(OMPT_REDUCTION, reduction);
	set(OMPT_TASK_CREATE, task_create);
	set(OMPT_TASK_SCHEDULE, task_schedule);
	set(OMPT_DEPENDENCES, dependences);
	set(OMPT_MUTEX_ACQUIRED, mutex_acquired);
	set(OMPT_MUTEX_RELEASED, mutex_released);
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
