// The layout of the shared memory, which layout.go repeats and a test compares, and the kinds of records.

typedef uint64_t u64;
typedef uint32_t u32;
typedef uintptr_t uptr;

enum {
	FILE_HEAD = 4096,
	PROCESSES = 64,        // regions in the file
	SLOTS = 2048,          // threads of a process that are recorded at a time
	RECORDS = 1 << 14,     // of a ring, 16 bytes each
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

// Head of the file: how many processes have asked for a region.
struct file_head {
	u32 version;
	u32 processes;
};

enum { VERSION = 4 };

// Head of a region.
struct region_head {
	u32 pid;
	u32 stop;      // the checker takes nothing more
	u32 modules;
	u32 lost;      // threads that found no slot
	u32 signals;   // records of signal handlers that interrupted the recorder, which are not written
	u32 unused[11];
	u64 ticket;    // of the next record that has one; on a cache line of its own
	u64 unused2[7];
};

struct module {
	u64 base; // what the file's addresses are added to
	u64 from, to;
	char path[MODULE_BYTES - 24];
};

// Slot of a thread. Records before head are written, those before tail are read.
struct slot {
	u32 state;
	u32 unused[15];
	u64 head;
	u64 tail;
	u64 unused2[6];
};

enum { FREE, TAKEN, ENDED };

// A record has two words. The first is an address (48 bits), the kind (8) and the size (8); the second is the return address of
// the call that made it. Records from TICKETED on have two words more: the ticket, which orders them over all threads, and a
// number.
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
	ATOMIC,      // the number has what it does: see atomic.c
	FENCE,       // likewise
	FORK,        // the number is that of the thread that begins
	JOIN,        // the size is 1 if the thread could not be created
	BEGIN,       // the address and the number are the thread's stack, from and to; the size is 1 if it is its alone
	END,
	BARRIER_ENTER,
	BARRIER_LEAVE,
	ALLOCATE,    // the number is the size
	RELEASE,     // memory, of which the number is the size; the record's size is 1 if it counts as a write
	PUBLISH,     // what the thread did is before what learns of it
	LEARN,
	THREAD,      // the number names the thread
	TASK_MADE,   // the number is that of an explicit task of OpenMP, which continues from the one whose number the address is, 0 for the
	             // present one; the size is 1 if it does nothing itself: the tasks of a loop continue from it
	TASK,        // the thread goes on with the task of this number, 0 for its own; what its stack holds below the address is of nobody;
	             // the size is 1 if the task that it leaves has ended
	TASKS_ENDED, // all tasks that the present one has made have ended, with those that they made if the size is 1
	TASK_JOINED, // the task of this number has ended before this, with those that continue from it
	FRESH,       // memory of which the number is the size is used for something else
	LOCAL,       // memory from the address to the number is the thread's whichever task uses it
};

// Namespaces of synchronisation objects, in the size of a record.
enum { OF_ATOMIC, OF_MUTEX, OF_CONDITION, OF_SEMAPHORE, OF_BARRIER, OF_ONCE, OF_OPENMP, OF_TASK, OF_DEPEND_IN, OF_DEPEND_OUT, OF_FILE, OF_SIGNAL, OF_DOACROSS, OF_NUMBER };
