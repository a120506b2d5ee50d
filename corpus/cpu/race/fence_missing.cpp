// The fence of the reader is missing.
#include <atomic>
#include <cstdlib>
#include <thread>

int value, sink;
std::atomic<bool> ready;

static void first() {
	value = 42; // want race
	std::atomic_thread_fence(std::memory_order_release);
	ready.store(true, std::memory_order_relaxed);
}

static void second() {
	while (!ready.load(std::memory_order_relaxed))
		;
	sink = value; // want race
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
