// Read-modify-writes carry a release on.
#include <atomic>
#include <cstdlib>
#include <thread>

int value, sink;
std::atomic<int> ready;

static void first() {
	value = 42;
	ready.store(1, std::memory_order_release);
	ready.fetch_add(1, std::memory_order_relaxed);
}

static void second() {
	while (ready.load(std::memory_order_acquire) != 2)
		;
	sink = value;
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
