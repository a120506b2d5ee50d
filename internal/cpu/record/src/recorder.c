// The recorder, which "fencepost cc" links instead of ThreadSanitizer's runtime library. The compiler's calls
// (__tsan_*) and the interceptors write the program's operations into rings in memory that is shared with the checker,
// one ring for each thread. Without a checker, nothing is recorded, and the program runs normally.
//
// The recorder is one translation unit, so that the compiler's calls for accesses are inlined into few instructions.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <math.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "layout.h"
#include "thread.c"
#include "access.c"
#include "atomic.c"
#include "memory.c"
#include "string.c"
#include "libc.c"
#include "lock.c"
#include "create.c"
#include "gomp.c"
#include "share.c"
#include "ompt.c"

// unlock_all runs in a forked process, which does not have the threads that may have held the recorder's locks.
static void unlock_all(void) {
	attach_lock = modules_lock = handles_lock = loops_lock = 0;
	for (int i = 0; i < STRIPES; i++)
		stripes[i].lock = 0;
}

// This symbol identifies programs that are linked with the recorder.
EXPORT const int fencepost_recorder = VERSION;
