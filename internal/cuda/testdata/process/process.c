// Programs that are hard on their connection to the checker, one for each name in the table at the end. TestProcesses
// says what is expected of them.
#define _GNU_SOURCE
#include "../api.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

typedef struct { unsigned x, y, z; } dim3;
int cudaLibraryLoadData(void **, const void *, void *, void **, unsigned, void *, void **, unsigned);
int cudaLibraryGetKernel(void **, void *, const char *), cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, stream);

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry add(.param .u64 p)\n{\n"
    ".reg .u64 %a; .reg .u32 %x;\n"
    "ld.param.u64 %a, [p]; ld.global.u32 %x, [%a]; add.u32 %x, %x, 1; st.global.u32 [%a], %x; ret;\n}\n"
    ".visible .entry spin(.param .u32 n)\n{\n"
    ".reg .u32 %x, %n; .reg .pred %p;\n"
    "ld.param.u32 %n, [n]; mov.u32 %x, 0;\n"
    "L: add.u32 %x, %x, 1; setp.lt.u32 %p, %x, %n; @%p bra L; ret;\n}\n";

static void *library, *add, *spinning, *cell;
static int expected;

static void prepare(void) {
  OK(cudaLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
  OK(cudaLibraryGetKernel(&add, library, "add"));
  OK(cudaLibraryGetKernel(&spinning, library, "spin"));
  OK(cudaMalloc(&cell, 4));
  OK(cudaMemset(cell, 0, 4));
}

static int launch(void) {
  dim3 one = {1, 1, 1};
  void *args[] = {&cell};
  return cudaLaunchKernel(add, one, one, args, 0, 0);
}

static int spin(unsigned turns) {
  dim3 one = {1, 1, 1};
  void *args[] = {&turns};
  return cudaLaunchKernel(spinning, one, one, args, 0, 0);
}

// use launches the kernel and checks what it did.
static void use(void) {
  int got = -1;
  if (!library) prepare();
  OK(launch());
  OK(cudaMemcpy(&got, cell, 4, DeviceToHost));
  TRUE(got == ++expected);
}

static void again(char *const env[]) {
  char *args[] = {"process", "once", NULL};
  execve("/proc/self/exe", args, env);
  _exit(8);
}

static void await(pid_t child) {
  int status;
  TRUE(waitpid(child, &status, 0) == child);
  TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void nothing(int s) { (void)s; }

static void at_1khz(void (*handler)(int)) {
  struct itimerval t = {{0, 1000}, {0, 1000}};
  struct sigaction a = {.sa_handler = handler};
  sigaction(SIGALRM, &a, NULL);
  setitimer(ITIMER_REAL, &t, NULL);
}

static void once(void) { use(); }

static void closes(void) {
  use();
  closefrom(3);
  use();
  use();
}

static void closes_first(void) {
  closefrom(3);
  use();
}

// The program's own sockets take the numbers of the connection and of the memory.
static void reuses(void) {
  int pair[2];
  char byte;
  use();
  closefrom(3);
  TRUE(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  for (int i = 10; i < 1000; i++) dup2(pair[0], i);
  use();
  TRUE(recv(pair[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
  char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  strcpy(page, "kept");
  OK(cudaHostRegister(page, 4096, 0));
  TRUE(!strcmp(page, "kept"));
  TRUE(send(pair[1], "x", 1, 0) == 1 && recv(pair[0], &byte, 1, 0) == 1 && byte == 'x');
  use();
}

static void shuts_down(void) {
  use();
  for (int i = 3; i < 1024; i++) shutdown(i, SHUT_RDWR);
  use();
  for (int i = 3; i < 1024; i++) shutdown(i, SHUT_WR);
  use();
}

static void loses_environment(void) {
  clearenv();
  closefrom(3);
  TRUE(!chdir("/"));
  use();
}

static void leaves_network(void) {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET)) return use();
  use();
}

static void leaves_root(void) {
  if (geteuid() == 0) {
    TRUE(!chroot("/proc/self/fdinfo"));
    TRUE(!setuid(65534));
  }
  closefrom(3);
  use();
}

static void few_descriptors(void) {
  struct rlimit l = {4, 4};
  setrlimit(RLIMIT_NOFILE, &l);
  use();
}

static void no_descriptors(void) {
  struct rlimit l = {3, 3};
  int n = -1;
  void *p;
  setrlimit(RLIMIT_NOFILE, &l);
  WANT(cudaMalloc(&p, 16), 999);
}

static void no_room(void) {
  struct rlimit l = {1 << 30, 1 << 30};
  void *p;
  setrlimit(RLIMIT_AS, &l);
  WANT(cudaMalloc(&p, 16), 999);
}

static void small_files(void) {
  struct rlimit l = {4096, 4096};
  setrlimit(RLIMIT_FSIZE, &l);
  use();
}

static void forbids(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sendto, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {4, code};
  use();
  TRUE(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
  WANT(launch(), 999);
  WANT(launch(), 999);
}

static void interrupted(void) {
  at_1khz(nothing);
  for (int i = 0; i < 50; i++) use();
  OK(spin(300000));
}

static void calls_cuda(int s) {
  (void)s;
  cudaDeviceSynchronize();
}

static void nested(void) {
  use();
  at_1khz(calls_cuda);
  OK(spin(300000));
  struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  use();
}

static void *spins(void *result) {
  use();
  spin(3000000);
  return result;
}

static sigjmp_buf out;

static void jumps_out(int s) { siglongjmp(out, s); }

// The call that the handler leaves is never finished.
static void jumps(void) {
  prepare();
  signal(SIGALRM, jumps_out);
  if (!sigsetjmp(out, 1)) {
    alarm(1);
    spin(~0u);
  }
  WANT(launch(), 999);
}

static void *spins_on_and_on(void *result) {
  spin(~0u);
  return result;
}

static void leaves_thread(void) {
  pthread_t t;
  use();
  pthread_create(&t, NULL, spins_on_and_on, NULL);
  usleep(100000);
}

static void cancelled(void) {
  pthread_t t;
  prepare();
  pthread_create(&t, NULL, spins, NULL);
  usleep(20000);
  pthread_cancel(t);
  pthread_join(t, NULL);
  use();
}

static void forks(void) {
  use();
  pid_t child = fork();
  if (!child) {
    WANT(launch(), 3);
    exit(0);
  }
  await(child);
  use();
}

static int stop;

static void *works(void *arg) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void *p;
    OK(cudaMalloc(&p, 16));
    OK(cudaFree(p));
  }
  return arg;
}

static void forks_among_threads(void) {
  pthread_t t[2];
  void *p;
  use();
  for (int i = 0; i < 2; i++) pthread_create(&t[i], NULL, works, NULL);
  for (int i = 0; i < 20; i++) {
    pid_t child = fork();
    if (!child) {
      WANT(cudaMalloc(&p, 16), 3);
      _exit(0);
    }
    await(child);
  }
  stop = 1;
  for (int i = 0; i < 2; i++) pthread_join(t[i], NULL);
  use();
}

static void spawns(void) {
  extern char **environ;
  char *args[] = {"process", "once", NULL};
  pid_t child;
  use();
  TRUE(!posix_spawn(&child, "/proc/self/exe", NULL, NULL, args, environ));
  await(child);
  child = vfork();
  if (!child) again(environ);
  await(child);
}

// The child has no environment, and so no word of the checker.
static void empty_environment(void) {
  char *none[] = {NULL};
  pid_t child = fork();
  if (!child) again(none);
  await(child);
}

static void empty_environment_orphan(void) {
  char *none[] = {NULL};
  if (fork()) _exit(0);
  setsid();
  if (fork()) _exit(0);
  usleep(50000);
  again(none);
}

// The program's end comes before its first CUDA call.
static void daemonizes(void) {
  if (fork()) _exit(0);
  setsid();
  if (fork()) _exit(0);
  closefrom(3);
  usleep(200000);
  use();
}

static void lingers(void) {
  use();
  if (fork()) _exit(0);
  setsid();
  alarm(5);
  pause();
}

static void leaves_sleeper(void) {
  use();
  if (fork()) _exit(0);
  setsid();
  for (int i = 0; i < 3; i++) close(i);
  execl("/bin/sleep", "sleep", "3", NULL);
}

// truncates takes the memory away from the checker, or tries to.
static void truncates(void) {
  char path[64], name[256];
  struct stat s;
  int found = 0;
  use();
  for (int i = 3; i < 1024; i++) {
    snprintf(path, sizeof path, "/proc/self/fd/%d", i);
    ssize_t n = readlink(path, name, sizeof name - 1);
    if (n <= 0 || (name[n] = 0, !strstr(name, "device-memory"))) continue;
    found = 1;
    TRUE(ftruncate(i, 0) && errno == EPERM);
    fallocate(i, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20);
  }
  TRUE(found);
  expected = 0;
  use();
}

// covers puts its own pages where the memory was.
static void covers(void) {
  char line[300];
  use();
  FILE *f = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, f)) {
    unsigned long from, to;
    if (strstr(line, "device-memory") && sscanf(line, "%lx-%lx", &from, &to) == 2)
      mmap((void *)from, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  OK(launch());
  closefrom(3);
  usleep(100000);
  launch(); // of a process that has nothing of the device any more
}

static int ready[2];

// spin_ready launches an endless kernel, shortly after it has said so.
static void spin_ready(void) {
  prepare();
  TRUE(write(ready[1], "", 1) == 1);
  spin(~0u);
}

static void await_spin(void) {
  char byte;
  TRUE(read(ready[0], &byte, 1) == 1);
  usleep(200000);
}

static void killed_child(void) {
  TRUE(!pipe(ready));
  pid_t child = fork();
  if (!child) {
    spin_ready();
    _exit(0);
  }
  await_spin();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  use();
}

// The first call of one process waits for the kernel of another one, which is killed then.
static void killed_before_us(void) {
  TRUE(!pipe(ready));
  pid_t child = fork();
  if (!child) {
    spin_ready();
    _exit(0);
  }
  await_spin();
  if (!fork()) {
    usleep(200000);
    kill(child, SIGKILL);
    _exit(0);
  }
  use();
}

static void killed(void) {
  TRUE(!pipe(ready));
  if (!fork()) {
    await_spin();
    kill(getppid(), SIGKILL);
    _exit(0);
  }
  spin_ready();
}

static void stops(void) {
  printf("held back");
  raise(SIGSTOP);
}

static void loops(void) {
  printf("held back");
  if (getenv("READY")) close(creat(getenv("READY"), 0600));
  for (;;) {}
}

static void loops_later(void) {
  use();
  printf("held back");
  for (;;) {}
}

static void spins_on(void) {
  prepare();
  printf("held back");
  spin(~0u);
}

static void blocks_signals(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  for (;;) {}
}

static void leaves_group(void) {
  for (int i = 0; i < 3; i++)
    if (!fork()) {
      setsid();
      for (;;) pause();
    }
  for (;;) pause();
}

static void crashes(void) {
  void *p;
  OK(cudaMalloc(&p, 16));
  raise(SIGSEGV);
}

static void no_output(void) {
  closefrom(0);
  use();
}

static void loads_at_run_time(void) {
  for (int i = 0; i < 3; i++) {
    void *p, *so = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    TRUE(so != NULL);
    int (*alloc)(void **, size_t) = (int (*)(void **, size_t))dlsym(so, "cudaMalloc");
    OK(alloc(&p, 16));
    dlclose(so);
    use();
  }
}

static void replaces_itself(void) {
  extern char **environ;
  use();
  if (!fork()) {
    sleep(1); // holds the connection of the program that is replaced
    _exit(0);
  }
  again(environ);
}

int main(int argc, char **argv) {
  static const struct { const char *name; void (*run)(void); } table[] = {
#define CASE(f) {#f, f}
      CASE(once), CASE(closes), CASE(closes_first), CASE(reuses), CASE(shuts_down), CASE(loses_environment), CASE(leaves_network),
      CASE(leaves_root), CASE(few_descriptors), CASE(no_descriptors), CASE(no_room), CASE(small_files), CASE(forbids),
      CASE(interrupted), CASE(nested), CASE(cancelled), CASE(jumps), CASE(leaves_thread), CASE(forks), CASE(forks_among_threads), CASE(spawns),
      CASE(empty_environment), CASE(empty_environment_orphan), CASE(daemonizes), CASE(lingers), CASE(leaves_sleeper),
      CASE(truncates), CASE(covers), CASE(killed_child), CASE(killed_before_us), CASE(killed), CASE(stops), CASE(loops), CASE(loops_later), CASE(spins_on),
      CASE(blocks_signals), CASE(leaves_group), CASE(crashes), CASE(no_output), CASE(loads_at_run_time), CASE(replaces_itself),
  };
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (argc > 1 && !strcmp(argv[1], table[i].name)) {
      table[i].run();
      return 0;
    }
  return 7;
}
