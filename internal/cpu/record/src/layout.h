// The layout of the shared memory, and the kinds of records. A test compares it with layout.go.

typedef uint64_t u64;
typedef uint32_t u32;
typedef uintptr_t uptr;

enum {
	FILE_HEAD = 4096,
	PROCESSES = 64,        // regions in the file
	SLOTS = 2048,          // threads of a process that can be recorded at a time
	RECORDS = 1 << 14,     // of a ring; 16 bytes each
	MODULES = 256,         // executables and libraries with recorded code
	MODULE_BYTES = 512,
	HEAD_BYTES = 4096,
	SLOT_BYTES = 128,
};

#define MODULES_AT ((u64)HEAD_BYTES)
#define SLOTS_AT (MODULES_AT + (u64)MODULES * MODULE_BYTES)
#define RINGS_AT (SLOTS_AT + (u64)SLOTS * SLOT_BYTES)
#define RING_BYTES ((u64)RECORDS * 16)
#define REGION_BYTES (RINGS_AT + (u64)SLOTS * RING_BYTES)

// Head of the file: how many processes have requested a region.
struct file_head {
	u32 version;
	u32 processes;
};

enum { VERSION = 4 };

// Head of a region.
struct region_head {
	u32 pid;
	u32 stop;      // the checker has stopped reading
	u32 modules;
	u32 lost;      // threads that got no slot
	u32 signals;   // records that are missing because a signal handler interrupted the recorder
	u32 unused[11];
	u64 ticket;    // the next ticket; on a cache line of its own
	u64 unused2[7];
};

struct module {
	u64 base; // load bias: added to addresses of the file
	u64 from, to;
	char path[MODULE_BYTES - 24];
};

// Slot of a thread. Records before head have been written, and those before tail have been read.
struct slot {
	u32 state;
	u32 unused[15];
	u64 head;
	u64 tail;
	u64 unused2[6];
};

enum { FREE, TAKEN, ENDED };

// A record has two words. The first holds an address (48 bits), the kind (8) and the size (8). The second is the return
// address of the call that made the record. Records from TICKETED on have two more words: the ticket, which orders them
// over all threads, and a number.
enum {
	READ = 1,
	WRITE,
	READ_RANGE,  // the next record is the length
	WRITE_RANGE,
	ENTER,       // a function was called from this place
	EXIT,
	TICKETED = 16,
	LOCK = TICKETED,
	UNLOCK,
	LOCK_SHARED,
	UNLOCK_RW, // a read-write lock, by a reader or the writer
	ATOMIC,      // the number describes the operation: see atomic.c
	FENCE,       // likewise
	FORK,        // the number is that of the new thread
	JOIN,        // the size is 1 if the thread could not be created
	BEGIN,       // the address and the number are the begin and the end of the thread's stack; the size is 1 if only the thread uses the stack
	END,
	BARRIER_ENTER,
	BARRIER_LEAVE,
	ALLOCATE,    // the number is the size
	RELEASE,     // the number is the size of the memory; the record's size is 1 if this counts as a write
	PUBLISH,     // the operations so far are ordered before a LEARN of the same object
	LEARN,
	THREAD,      // the number names the thread
	TASK_MADE,   // the number is that of a new explicit task of OpenMP; the address is the number of the task that it continues from, 0 for
	             // the current one; the size is 1 if the task makes no events itself, and the tasks of a loop continue from it
	TASK,        // the thread continues with the task of this number, 0 for its own; its stack below the address is unused from now on;
	             // the size is 1 if the task that it leaves has ended
	TASKS_ENDED, // all tasks that the current one has made have ended; if the size is 1, so have those that they made
	TASK_JOINED, // the task of this number, and those that continue from it, ended before this
	FRESH,       // the memory at the address is reused; the number is its size
	LOCAL,       // the memory from the address to the number belongs to the thread, whichever task uses it
};

// Namespaces of synchronisation objects. The size of a record holds them.
enum { OF_ATOMIC, OF_MUTEX, OF_CONDITION, OF_SEMAPHORE, OF_BARRIER, OF_ONCE, OF_OPENMP, OF_TASK, OF_DEPEND_IN, OF_DEPEND_OUT, OF_FILE, OF_SIGNAL, OF_DOACROSS, OF_NUMBER };
