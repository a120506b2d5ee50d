// mail.h: requests that need no answer are put into the process's mailbox, in memory that is shared with the checker.
// The checker executes them before any other request of this process, and when this process has ended. So they are
// executed in order, and a crash loses none. A posted request cannot fail: the tables here have the memory and the
// streams of this process. Requests on memory or streams that the tables do not have are sent.
#ifndef FP_MAIL_H
#define FP_MAIL_H

#include <sched.h>

enum {
  FP_MAIL_BLOCKS = 1 << 16,
  FP_MAIL_STREAMS = 512,
  FP_MAIL_MOST = FP_MAIL_RING / 8, // bytes of a request
  FP_MAIL_BELL = 8 << 10,          // bytes after which the checker is notified
  FP_MAIL_LEASE = 64 << 20,
  FP_MAIL_CLASSES = 64, // of sizes in the pool
};
#define FP_MAIL_NONE (~(u64)0) // not in the pool

// The head of the mailbox. The fields after the checker's words belong to the libraries of this process, which share
// them.
struct fp_mail {
  u64 written, done;
  u32 closed;
  u32 lock;
  u32 distrusted; // memory may have been freed without the tables being updated
  u32 pools;      // allocations are sent, because their pool may refuse them
  u32 streams, blocks, dead;
  u64 belled;                 // value of written when the checker was last notified
  u64 lease_next, lease_end;  // addresses that are still available
  u64 pool_used;                  // bytes of the pool that have been given out at least once
  u64 pool_free[FP_MAIL_CLASSES]; // offset + 1 of the piece that was freed last; its first word is that of the piece before
  u64 stream[FP_MAIL_STREAMS];
  struct fp_block {
    u64 at, size; // size is 0 if it was freed
    u64 place;    // in the pool, or FP_MAIL_NONE
    u64 ending;   // a request to free it has been sent
  } block[FP_MAIL_BLOCKS]; // memory of cudaMallocAsync, by address
};
_Static_assert(offsetof(struct fp_mail, written) == FP_MAIL_WRITTEN && offsetof(struct fp_mail, done) == FP_MAIL_DONE &&
                   offsetof(struct fp_mail, closed) == FP_MAIL_CLOSED && sizeof(struct fp_mail) <= FP_MAIL_HEAD,
               "the head of a mailbox");

// fp_mail_take locks the tables. A holder may never unlock them (a signal handler that leaves its call). Requests are
// then sent.
static int fp_mail_take(void) {
  for (int i = 0; i < 1000; i++) {
    if (!__atomic_exchange_n(&fp.mail->lock, 1, __ATOMIC_ACQUIRE)) return 0;
    sched_yield();
  }
  return -1;
}

static void fp_mail_give(void) { __atomic_store_n(&fp.mail->lock, 0, __ATOMIC_RELEASE); }

// fp_mail_find returns the index of the first block that begins after an address.
static u32 fp_mail_find(u64 address) {
  u32 low = 0, high = fp.mail->blocks;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (fp.mail->block[middle].at > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static struct fp_block *fp_mail_block(u64 address) {
  u32 i = fp_mail_find(address);
  while (i && !fp.mail->block[i - 1].size) i--; // a freed block may be inside a later block
  struct fp_block *b = i ? &fp.mail->block[i - 1] : NULL;
  return b && address - b->at < b->size ? b : NULL;
}

static char *fp_pool_at(u64 place) { return (char *)fp.mail + FP_MAIL_HEAD + FP_MAIL_RING + place; }

// fp_pool_class returns the class of a size, of four for each power of two, and the size of the pieces of the class.
static int fp_pool_class(u64 size, u64 *bytes) {
  u64 unit = 128, quarters;
  int class = 0;
  for (; 8 * unit < size; unit *= 2) class += 4;
  quarters = size > 4 * unit ? (size + unit - 1) / unit : 4;
  *bytes = quarters * unit;
  return class + (int)quarters - 4;
}

// fp_pool_take returns a place for size bytes: the one that was freed last, or a new one. used is set if its bytes must
// be cleared.
static u64 fp_pool_take(u64 size, int *used) {
  struct fp_mail *m = fp.mail;
  u64 bytes, place;
  int class = fp_pool_class(size, &bytes);
  *used = class < FP_MAIL_CLASSES && m->pool_free[class];
  place = *used ? m->pool_free[class] - 1 : 0;
  if (*used && (place % 512 || place > m->pool_used || bytes > m->pool_used - place)) // a program that uses freed memory has overwritten the list
    *used = 0, m->pool_free[class] = 0;
  if (*used) {
    memcpy(&m->pool_free[class], fp_pool_at(place), sizeof(u64));
    return place;
  }
  place = (m->pool_used + 511) & ~(u64)511;
  if (class >= FP_MAIL_CLASSES || place + bytes > FP_MAIL_POOL) return FP_MAIL_NONE;
  m->pool_used = place + bytes;
  return place;
}

// fp_mail_add records a block. If there is no room, the block is unknown, and requests for it are sent.
static void fp_mail_add(u64 at, u64 size, u64 place) {
  struct fp_mail *m = fp.mail;
  if (m->dead > m->blocks / 2 && m->blocks > 64) {
    u32 n = 0;
    for (u32 i = 0; i < m->blocks; i++)
      if (m->block[i].size) m->block[n++] = m->block[i];
    m->blocks = n, m->dead = 0;
  }
  u32 i = fp_mail_find(at);
  if (i && m->block[i - 1].at == at) { // an address that is reused
    if (!m->block[i - 1].size) m->dead--;
    m->block[i - 1] = (struct fp_block){at, size, place, 0};
    return;
  }
  if (m->blocks == FP_MAIL_BLOCKS) return;
  memmove(&m->block[i + 1], &m->block[i], (m->blocks - i) * sizeof *m->block);
  m->block[i] = (struct fp_block){at, size, place, 0};
  m->blocks++;
}

// fp_mail_remove removes a freed block, and frees its place.
static void fp_mail_remove(struct fp_block *b) {
  u64 bytes, *list = &fp.mail->pool_free[b->place == FP_MAIL_NONE ? 0 : fp_pool_class(b->size, &bytes)];
  if (b->place != FP_MAIL_NONE) {
    memcpy(fp_pool_at(b->place), list, sizeof(u64));
    *list = b->place + 1;
  }
  b->size = 0, fp.mail->dead++;
}

static int fp_mail_stream(u64 stream) {
  if (stream == FP_STREAM_LEGACY || stream == FP_STREAM_PER_THREAD) return 1;
  for (u32 i = 0; i < fp.mail->streams; i++)
    if (fp.mail->stream[i] == stream) return 1;
  return 0;
}

// fp_mail_before records what a request may end, and fp_mail_after what it did. They are called before and after
// requests that are sent.
static void fp_mail_before(u32 op, const u64 *args) {
  struct fp_mail *m = fp.mail;
  if (op != FP_Free && op != FP_FreeAsync && op != FP_StreamDestroy && op != FP_DeviceReset) return;
  if (fp_mail_take()) {
    __atomic_store_n(&m->distrusted, 1, __ATOMIC_RELAXED);
    return;
  }
  struct fp_block *b = op == FP_Free || op == FP_FreeAsync ? fp_mail_block(args[0]) : NULL;
  if (b) b->ending = 1;
  for (u32 i = 0; op == FP_DeviceReset && i < m->blocks; i++) m->block[i].ending = 1;
  if (op == FP_DeviceReset) m->streams = 0;
  if (op == FP_StreamDestroy)
    for (u32 i = 0; i < m->streams; i++)
      if (m->stream[i] == args[0]) m->stream[i--] = m->stream[--m->streams];
  fp_mail_give();
}

static void fp_mail_after(u32 op, const u64 *args, const u64 *results, int error) {
  struct fp_mail *m = fp.mail;
  int made = !error && (op == FP_StreamCreate || op == FP_MallocAsync) && *results, ended = op == FP_Free || op == FP_FreeAsync;
  if ((!made && !ended && op != FP_DeviceReset) || fp_mail_take()) return;
  if (made && op == FP_MallocAsync) fp_mail_add(*results, args[0], FP_MAIL_NONE);
  if (made && op == FP_StreamCreate && m->streams < FP_MAIL_STREAMS) m->stream[m->streams++] = *results;
  struct fp_block *b = ended ? fp_mail_block(args[0]) : NULL;
  if (b && error) b->ending = 0;
  if (b && !error) fp_mail_remove(b);
  if (op == FP_DeviceReset) { // it ends everything, whatever it returns
    for (u32 i = 0; i < m->blocks; i++)
      if (m->block[i].size) fp_mail_remove(&m->block[i]);
    m->blocks = m->dead = 0, m->lease_next = m->lease_end = 0;
  }
  fp_mail_give();
}

// fp_mail_boxes reports whether an operator touches only known memory.
static int fp_mail_boxes(const struct fp_call *c) {
  const char *end = memchr(c->blob, 0, c->blob_size);
  if (!end) return 0;
  u64 w[7];
  size_t rest = c->blob_size - (size_t)(++end - (const char *)c->blob);
  for (; rest >= sizeof w; end += sizeof w, rest -= sizeof w) {
    memcpy(w, end, sizeof w);
    const u64 row = w[4], height = w[5], depth = w[6], limit = 1ul << 40, most = 1 << 20; // limits that keep products small enough
    const struct fp_block *b = fp_mail_block(w[1]);
    if (!b || b->ending || !row || !height || !depth) return 0;
    if (row > limit || w[2] > limit || w[3] > limit || height > most || depth > most) return 0;
    u64 slice = height > 1 ? (height - 1) * w[2] + row : row;
    if ((height > 1 && w[2] < row) || (depth > 1 && w[3] < slice)) return 0;
    if ((depth - 1) * w[3] + slice > b->size - (w[1] - b->at)) return 0;
  }
  return rest == 0;
}

static void fp_mail_write(u64 *at, const void *data, size_t n) {
  char *ring = (char *)fp.mail + FP_MAIL_HEAD;
  size_t from = *at % FP_MAIL_RING, first = n < FP_MAIL_RING - from ? n : FP_MAIL_RING - from;
  memcpy(ring + from, data, first);
  memcpy(ring, (const char *)data + first, n - first);
  *at += n;
}

enum { fpMustSend, fpPosted, fpNoLease, fpNoRoom };

// fp_mail_put posts a request if possible. The tables are locked. clear returns memory that the request allocated and
// that must be cleared.
static int fp_mail_put(const struct fp_call *c, const u64 *args, int nargs, char **clear) {
  struct fp_mail *m = fp.mail;
  struct fp_call leased;
  struct fp_block *freed = NULL;
  u64 with_address[4], end = 0, place = FP_MAIL_NONE;
  int used = 0;
  if (m->closed || m->distrusted || !fp_mail_stream(args[c->op == FP_Operator ? 0 : 1])) return fpMustSend;
  if (c->op == FP_Operator && !fp_mail_boxes(c)) return fpMustSend;
  if (c->op == FP_FreeAsync && (!(freed = fp_mail_block(args[0])) || freed->at != args[0] || freed->ending)) return fpMustSend;
  if (c->op == FP_MallocAsync) {
    if (!args[0] || args[2] || m->pools || args[0] > FP_MAIL_LEASE / 4 || m->blocks == FP_MAIL_BLOCKS || !c->results_max) return fpMustSend;
    end = (m->lease_next + args[0] + 1023) & ~(u64)511; // at least 512 bytes stay free between two
    if (end > m->lease_end) return fpNoLease;
    leased = *c, leased.op = FP_MallocLeased;
    with_address[0] = args[0], with_address[1] = args[1], with_address[2] = m->lease_next;
    c = &leased, args = with_address, nargs = 4;
  }
  u64 done = __atomic_load_n(&m->done, __ATOMIC_ACQUIRE), all[16 + FP_FRAMES], at = m->written;
  u32 head[4], tail;
  if (at - done + FP_MAIL_MOST > FP_MAIL_RING) return fpNoRoom;
  if (end) with_address[3] = place = fp_pool_take(args[0], &used);
  fp_header(c, args, &nargs, head, all, &tail);
  size_t size = sizeof head + (size_t)nargs * sizeof(u64) + head[3];
  if (size > FP_MAIL_MOST) return fpMustSend; // not for an allocation, which has no blob
  fp_mail_write(&at, head, sizeof head);
  fp_mail_write(&at, all, (size_t)nargs * sizeof(u64));
  fp_mail_write(&at, c->blob, c->blob_size);
  fp_mail_write(&at, fp_script, tail);
  if (end) {
    fp_mail_add(m->lease_next, args[0], place);
    if (used) *clear = fp_pool_at(place);
    *c->results = m->lease_next;
    m->lease_next = end;
  }
  if (freed) fp_mail_remove(freed);
  __atomic_store_n(&m->written, at, __ATOMIC_RELEASE);
  return fpPosted;
}

static int fp_swap(const struct fp_call *c, const u64 *args, int nargs);

// fp_mail_map maps the mailbox, or finds the mapping of another library of this process.
static void fp_mail_map(void) {
  enum { never = 1 };
  u64 r[3] = {0}, tell[1] = {0};
  struct fp_call c = {.op = FP_Posting, .results = r, .results_max = 3};
  fp.mailless = 1;
  if (fp_swap(&c, tell, 1)) return;
  if (!r[2]) {
    void *own = MAP_FAILED;
    if (fp_own(fp.memory, &fp.file))
      own = mmap(NULL, r[1], PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fp.memory, (off_t)r[0]);
    tell[0] = own == MAP_FAILED ? never : (u64)own;
    if (own != MAP_FAILED) madvise(own, r[1], MADV_DONTDUMP);
    if (fp_swap(&c, tell, 1)) return;
    if (own != MAP_FAILED && r[2] != tell[0]) munmap(own, r[1]);
  }
  if (r[2] != never) fp.mail = (struct fp_mail *)r[2];
}

// fp_mail_host returns the address in the pool of device memory, or NULL if the memory is not there. The connection is
// locked.
static char *fp_mail_host(u64 address) {
  if (!fp.mail && !fp.mailless && fp.state == fpOpen) fp_mail_map();
  if (!fp.mail) return NULL;
  int unlocked = fp_mail_take();
  struct fp_block *b = fp_mail_block(address);
  char *at = b && b->place != FP_MAIL_NONE ? fp_pool_at(b->place) + (address - b->at) : NULL;
  if (!unlocked) fp_mail_give();
  return at;
}

static int fp_mail_lease(void) {
  u64 r[2] = {0}, size[1] = {FP_MAIL_LEASE};
  struct fp_call c = {.op = FP_Lease, .results = r, .results_max = 2};
  if (fp_mail_take()) return -1;
  int e = fp_swap(&c, size, 1); // the lock keeps other threads from the lease, which this call ends
  if (!e) fp.mail->lease_next = r[0], fp.mail->lease_end = r[1];
  fp_mail_give();
  return e;
}

// fp_post posts a request and reports whether it did. The connection is locked and open.
static int fp_post(const struct fp_call *c, const u64 *args, int nargs) {
  if (c->op != FP_Operator && c->op != FP_MallocAsync && c->op != FP_FreeAsync) return 0;
  if (!fp.mail && !fp.mailless) fp_mail_map();
  for (int tries = 0; fp.mail && tries < 3; tries++) {
    if (fp_mail_take()) return 0;
    char *clear = NULL;
    int how = fp_mail_put(c, args, nargs, &clear), bell = 0;
    if (how == fpPosted && (bell = fp.mail->written - fp.mail->belled > FP_MAIL_BELL)) fp.mail->belled = fp.mail->written;
    fp_mail_give();
    if (clear) memset(clear, 0, args[0]);
    struct fp_call posted = {.op = FP_Posted};
    if (how == fpPosted) {
      const u64 no_answer[1] = {0};
      if (bell && fp_own(fp.fd, &fp.socket)) fp_send_request(&posted, no_answer, 1);
      return 1;
    }
    if (how == fpMustSend) return 0;
    const u64 answer[1] = {1};
    if (how == fpNoLease ? fp_mail_lease() : fp_swap(&posted, answer, 1)) return 0;
  }
  return 0;
}

#endif
