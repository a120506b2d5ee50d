// python.h: finds the place of a call of the API in a Python script, by the interpreter of this process, if it runs
// one.
#ifndef FP_PYTHON_H
#define FP_PYTHON_H

// The functions of the interpreter that are needed to read a stack (Python/C API: Thread States, Frame Objects).
// Objects are void * here.
static struct {
  int (*initialized)(void), (*finalizing)(void), (*ensure)(void), (*line)(void *);
  void (*release)(int), (*decref)(void *), (*incref)(void *);
  int (*instruction)(void *); // of a frame; NULL before Python 3.11
  void *(*own)(void), *(*frame)(void), *(*back)(void *), *(*code)(void *), *(*attribute)(void *, const char *), *(*occurred)(void);
  const char *(*text)(void *);
  int (*collect)(void), (*collectNot)(void); // of Python 3.10 on
} fp_py;

enum { FP_PY_LINE = 500, FP_PY_LINES = 9 };

static pthread_once_t fp_py_once = PTHREAD_ONCE_INIT;
static int fp_py_known;
static const char *fp_py_ours; // folder of Fencepost's Python modules

static void fp_py_find(void) {
  const struct {
    void *function;
    const char *name, *before; // before: the name in older versions
  } all[] = {{&fp_py.initialized, "Py_IsInitialized"}, {&fp_py.finalizing, "Py_IsFinalizing", "_Py_IsFinalizing"},
             {&fp_py.ensure, "PyGILState_Ensure"},     {&fp_py.release, "PyGILState_Release"},
             {&fp_py.own, "PyGILState_GetThisThreadState"}, {&fp_py.frame, "PyEval_GetFrame"},
             {&fp_py.back, "PyFrame_GetBack"},         {&fp_py.code, "PyFrame_GetCode"},
             {&fp_py.line, "PyFrame_GetLineNumber"},   {&fp_py.attribute, "PyObject_GetAttrString"},
             {&fp_py.text, "PyUnicode_AsUTF8"},        {&fp_py.decref, "Py_DecRef"}, {&fp_py.incref, "Py_IncRef"},
             {&fp_py.occurred, "PyErr_Occurred"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *f = dlsym(RTLD_DEFAULT, all[i].name);
    if (!f && all[i].before) f = dlsym(RTLD_DEFAULT, all[i].before);
    if (!f) return;
    memcpy(all[i].function, &f, sizeof f);
  }
  void *instruction = dlsym(RTLD_DEFAULT, "PyFrame_GetLasti");
  memcpy(&fp_py.instruction, &instruction, sizeof instruction);
  void *collect = dlsym(RTLD_DEFAULT, "PyGC_Enable"), *collectNot = dlsym(RTLD_DEFAULT, "PyGC_Disable");
  if (collect && collectNot) {
    memcpy(&fp_py.collect, &collect, sizeof collect);
    memcpy(&fp_py.collectNot, &collectNot, sizeof collectNot);
  }
  fp_py_ours = getenv(FP_PYTHON_ENV);
  fp_py_known = 1;
}

// fp_py_library reports whether a file is not part of the user's program, but of an installed package, of Python, or of
// Fencepost.
static int fp_py_library(const char *file) {
  return *file == '<' || strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") || strstr(file, "/lib/python3") ||
         (fp_py_ours && *fp_py_ours && !strncmp(file, fp_py_ours, strlen(fp_py_ours)));
}

// fp_py_line is a line of code as text, found by its instruction, because querying the line of an instruction is slow.
// The interpreter's lock guards the cache. The cache holds a reference to the code object, so no other object gets its
// address.
static struct fp_py_line {
  void *code;
  int at, library, size;
  char text[FP_PY_LINE];
} fp_py_lines[1 << FP_PY_LINES];

static void fp_py_read(struct fp_py_line *l, void *code, int at, int line) {
  void *file = fp_py.attribute(code, "co_filename"), *name = fp_py.attribute(code, "co_name");
  const char *f = file ? fp_py.text(file) : NULL, *n = name ? fp_py.text(name) : NULL;
  if (l->code) fp_py.decref(l->code);
  fp_py.incref(code);
  l->code = code, l->at = at, l->size = 0;
  if (f && n && !strpbrk(f, "\t\n") && !strpbrk(n, "\t\n")) {
    l->library = fp_py_library(f);
    l->size = snprintf(l->text, sizeof l->text, "%d\t%s\t%s\n", line, f, n);
    if (l->size < 0 || l->size >= (int)sizeof l->text) l->size = 0;
  }
  if (name) fp_py.decref(name);
  if (file) fp_py.decref(file);
}

static const struct fp_py_line *fp_py_at(void *frame) {
  void *code = fp_py.code(frame);
  if (!code) return NULL;
  int at = fp_py.instruction ? fp_py.instruction(frame) : fp_py.line(frame);
  struct fp_py_line *l = &fp_py_lines[((u64)code / 16 * 31 + (u64)at) * 0x9e3779b97f4a7c15u >> (64 - FP_PY_LINES)];
  if (l->code != code || l->at != at) fp_py_read(l, code, at, fp_py.line(frame));
  fp_py.decref(code);
  return l;
}

// fp_py_stack writes the frames of the user's own files, innermost first. If there are none, it writes the innermost
// frame that is not Fencepost's.
static int fp_py_stack(char *to, size_t room) {
  enum { deepest = 200, most = 8 };
  int used = 0;
  struct fp_py_line other = {.size = 0};
  void *frame = fp_py.frame(), *held = NULL;
  for (int depth = 0, frames = 0; frame && depth < deepest && frames < most; depth++) {
    const struct fp_py_line *l = fp_py_at(frame);
    if (l && l->size && !l->library && (size_t)(used + l->size) < room) {
      memcpy(to + used, l->text, (size_t)l->size);
      used += l->size, frames++;
    } else if (l && l->size && !used && !other.size && strchr(l->text, '\t')[1] != '<' &&
               !(fp_py_ours && *fp_py_ours && strstr(l->text, fp_py_ours))) {
      other = *l;
    }
    void *back = fp_py.back(frame);
    if (held) fp_py.decref(held);
    held = frame = back;
  }
  if (held) fp_py.decref(held);
  if (!used && other.size) memcpy(to, other.text, (size_t)other.size), used = other.size;
  return used;
}

// fp_script is the place in the script of this thread's newest call.
THREAD char fp_script[FP_MAX_SCRIPT];
THREAD int fp_script_size;

// fp_stand sets fp_script. The connection must not be locked: a thread that waits for the interpreter must hold nothing
// that another thread needs. A thread that the interpreter does not know is in no script.
static void fp_stand(void) {
  fp_script_size = 0;
  pthread_once(&fp_py_once, fp_py_find);
  if (!fp_py_known || !fp_py.initialized() || fp_py.finalizing() || !fp_py.own()) return;
  int state = fp_py.ensure(), size = 0;
  // Looking at frames creates objects, which may start garbage collection. That frees device memory: a call within this
  // one, whose caller may hold a lock (torch's allocator does).
  int collects = fp_py.collectNot && fp_py.collectNot();
  char text[FP_MAX_SCRIPT]; // a call within this one would overwrite fp_script
  if (!fp_py.occurred()) size = fp_py_stack(text, sizeof text);
  if (collects) fp_py.collect();
  fp_py.release(state);
  memcpy(fp_script, text, (size_t)size);
  fp_script_size = size;
}

#endif
