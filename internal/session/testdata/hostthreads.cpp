// Two threads fill one buffer, each in a stream of its own that it waits for. The first argument says what orders the threads.
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <pthread.h>
#include <semaphore.h>
#include <shared_mutex>
#include <thread>
#include <unistd.h>

extern "C" {
int cudaMalloc(void **, size_t), cudaMemsetAsync(void *, int, size_t, void *), cudaMemset(void *, int, size_t), cudaStreamCreateWithFlags(void **, unsigned);
int cudaStreamSynchronize(void *), cudaDeviceSynchronize(void), cudaEventCreate(void **), cudaEventRecord(void *, void *), cudaStreamWaitEvent(void *, void *, unsigned);
int cudaLaunchHostFunc(void *, void (*)(void *), void *), cudaStreamQuery(void *);
}

enum { size = 4096 };
static void *buffer, *streams[3], *event;
static void *const per_thread = (void *)2;

static void fill(int i) {
  cudaMemsetAsync(buffer, i, size, streams[i]);
  cudaStreamSynchronize(streams[i]);
}

static std::mutex mutex, second;
static std::shared_mutex shared;
static std::condition_variable changed;
static std::once_flag flag;
static bool done;
static std::atomic<bool> seen;
static sem_t semaphore;
static pthread_barrier_t barrier;
static pthread_spinlock_t spin;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

// until calls f until it gives true.
template <class F> static void until(F f) {
  while (!f()) usleep(100);
}

// each runs two threads.
template <class F, class G> static void each(F f, G g) {
  std::thread a(f), b(g);
  a.join(), b.join();
}

// function has the first stream call a function between two fills, which are ordered if the function orders them.
static int function(const char *which) {
  auto is = [&](const char *name) { return !strcmp(which, name); };
  auto calls = [](void *stream, void (*f)(void *)) { cudaLaunchHostFunc(stream, f, nullptr); };
  auto finish = [](void *) { { std::lock_guard l(mutex); done = true; } changed.notify_one(); };
  auto nothing = [](void *) {};
  auto begin = [](int i) { cudaMemsetAsync(buffer, i, size, streams[i]); };
  if (is("function")) begin(0), calls(streams[0], nothing), begin(1);
  else if (is("function of two streams")) begin(0), calls(streams[0], nothing), calls(streams[1], nothing), begin(1);
  else if (is("function in order")) begin(0), calls(streams[0], nothing), begin(0);
  else if (is("function waited for")) begin(0), calls(streams[0], nothing), cudaStreamSynchronize(streams[0]), begin(1);
  else if (is("function and atomic")) begin(0), calls(streams[0], [](void *) { seen = true; }), until([] { return seen.load(); }), begin(1);
  else if (is("function and condition")) {
    begin(0), calls(streams[0], finish);
    { std::unique_lock l(mutex); changed.wait(l, [] { return done; }); }
    begin(1);
  } else if (is("function and other thread")) { // which comes before the function, and so before what follows in its stream
    std::thread t([&] { fill(1); finish(nullptr); });
    calls(streams[0], [](void *) { std::unique_lock l(mutex); changed.wait(l, [] { return done; }); });
    begin(0), t.join();
  } else if (is("function and held mutex")) { // work of another stream, and questions, do not wait for it
    { std::lock_guard l(mutex); begin(0), calls(streams[0], finish), fill(2); if (cudaStreamQuery(streams[0]) != 600) return 0; }
    { std::unique_lock l(mutex); changed.wait(l, [] { return done; }); }
  } else if (is("function and gate")) { // that the host opens behind later work
    calls(streams[0], [](void *) { until([] { return seen.load(); }); });
    int refused = cudaMemsetAsync(buffer, 0, size, streams[0]);
    seen = true;
    if (refused != 801) return 0;
  } else return 0;
  cudaDeviceSynchronize();
  return 1;
}

static int scenario(const char *which) {
  auto is = [&](const char *name) { return !strcmp(which, name); };
  if (is("nothing")) each([] { fill(0); }, [] { fill(1); });
  else if (is("atomic")) each([] { fill(0); seen = true; }, [] { until([] { return seen.load(); }); fill(1); });
  else if (is("join")) { std::thread(fill, 0).join(); fill(1); }
  else if (is("before")) { fill(0); std::thread(fill, 1).join(); }
  else if (is("beside")) { std::thread t([] { fill(0); seen = true; }); until([] { return seen.load(); }); fill(1); t.join(); }
  else if (is("chain")) std::thread([] { fill(0); std::thread(fill, 1).join(); }).join(), fill(2);
  else if (is("mutex")) each([] { std::lock_guard l(mutex); fill(0); }, [] { std::lock_guard l(mutex); fill(1); });
  else if (is("two mutexes")) each([] { std::lock_guard l(mutex); fill(0); }, [] { std::lock_guard l(second); fill(1); });
  else if (is("one mutex")) each([] { { std::lock_guard l(mutex); } fill(0); seen = true; }, [] { until([] { return seen.load(); }); { std::lock_guard l(mutex); } fill(1); });
  else if (is("condition"))
    each([] { fill(0); { std::lock_guard l(mutex); done = true; } changed.notify_one(); }, [] { std::unique_lock l(mutex); changed.wait(l, [] { return done; }); fill(1); });
  else if (is("timed"))
    each([] { fill(0); { std::lock_guard l(mutex); done = true; } changed.notify_all(); },
         [] { std::unique_lock l(mutex); while (!changed.wait_for(l, std::chrono::milliseconds(1), [] { return done; })); fill(1); });
  else if (is("semaphore")) each([] { fill(0); sem_post(&semaphore); }, [] { sem_wait(&semaphore); fill(1); });
  else if (is("other semaphore")) each([] { sem_post(&semaphore); fill(0); seen = true; }, [] { until([] { return seen.load(); }); sem_wait(&semaphore); fill(1); });
  else if (is("barrier")) each([] { fill(0); pthread_barrier_wait(&barrier); }, [] { pthread_barrier_wait(&barrier); fill(1); });
  else if (is("barriers")) // five rounds in turn
    each([] { for (int i = 0; i < 5; i++) { fill(0); pthread_barrier_wait(&barrier); pthread_barrier_wait(&barrier); } },
         [] { for (int i = 0; i < 5; i++) { pthread_barrier_wait(&barrier); fill(1); pthread_barrier_wait(&barrier); } });
  else if (is("late barrier"))
    each([] { pthread_barrier_wait(&barrier); fill(0); seen = true; }, [] { pthread_barrier_wait(&barrier); until([] { return seen.load(); }); fill(1); });
  else if (is("shared")) each([] { std::unique_lock l(shared); fill(0); seen = true; }, [] { until([] { return seen.load(); }); std::shared_lock l(shared); fill(1); });
  else if (is("readers")) each([] { std::shared_lock l(shared); fill(0); seen = true; }, [] { until([] { return seen.load(); }); std::shared_lock l(shared); fill(1); });
  else if (is("spin")) each([] { pthread_spin_lock(&spin); fill(0); pthread_spin_unlock(&spin); }, [] { pthread_spin_lock(&spin); fill(1); pthread_spin_unlock(&spin); });
  else if (is("once")) each([] { std::call_once(flag, fill, 0); seen = true; }, [] { until([] { return seen.load(); }); std::call_once(flag, fill, 2); fill(1); });
  else if (is("async")) { auto f = std::async(std::launch::async, fill, 0); f.get(); fill(1); }
  else if (is("event")) // the device orders the two, the host its calls only
    each([] { cudaMemsetAsync(buffer, 0, size, streams[0]); cudaEventRecord(event, streams[0]); sem_post(&semaphore); },
         [] { sem_wait(&semaphore); cudaStreamWaitEvent(streams[1], event, 0); cudaMemsetAsync(buffer, 1, size, streams[1]); });
  else if (is("no event"))
    each([] { cudaMemsetAsync(buffer, 0, size, streams[0]); sem_post(&semaphore); }, [] { sem_wait(&semaphore); cudaMemsetAsync(buffer, 1, size, streams[1]); });
  else if (is("device")) // the second thread waits for all work
    each([] { cudaMemsetAsync(buffer, 0, size, streams[0]); sem_post(&semaphore); }, [] { sem_wait(&semaphore); cudaDeviceSynchronize(); fill(1); });
  else if (is("legacy")) each([] { cudaMemset(buffer, 0, size); }, [] { cudaMemset(buffer, 1, size); }); // one stream
  else if (is("per thread")) // default streams of their own
    each([] { cudaMemsetAsync(buffer, 0, size, per_thread); sem_post(&semaphore); }, [] { sem_wait(&semaphore); cudaMemsetAsync(buffer, 1, size, per_thread); });
  else if (is("per thread waits"))
    each([] { cudaMemsetAsync(buffer, 0, size, per_thread); cudaStreamSynchronize(per_thread); sem_post(&semaphore); },
         [] { sem_wait(&semaphore); cudaMemsetAsync(buffer, 1, size, per_thread); });
  else if (is("per thread and legacy")) // the legacy stream waits for those of threads
    each([] { cudaMemsetAsync(buffer, 0, size, per_thread); sem_post(&semaphore); }, [] { sem_wait(&semaphore); cudaMemset(buffer, 1, size); });
  else if (is("many")) { // more threads than have a number, one after the other
    for (int i = 0; i < 100; i++) std::thread(fill, i & 1).join();
  } else if (is("pool")) { // jobs in turn, handed out under a mutex
    int next = 0;
    auto work = [&] { for (;;) { std::lock_guard l(mutex); if (next == 200) return; fill(next++ & 1); } };
    std::thread a(work), b(work), c(work);
    a.join(), b.join(), c.join();
  } else return function(which);
  return 1;
}

int main(int, char **argv) {
  sem_init(&semaphore, 0, 0), pthread_barrier_init(&barrier, nullptr, 2), pthread_spin_init(&spin, 0);
  cudaMalloc(&buffer, size), cudaEventCreate(&event);
  for (auto &s : streams) cudaStreamCreateWithFlags(&s, 1);
  puts(scenario(argv[1]) ? "right" : "wrong");
}
