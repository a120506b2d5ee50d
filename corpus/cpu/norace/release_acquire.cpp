// A flag is published with release and read with acquire.
#include <atomic>
#include <cstdlib>
#include <thread>

int value, sink;
std::atomic<bool> ready;

static void first() {
	value = 42;
	ready.store(true, std::memory_order_release);
}

static void second() {
	while (!ready.load(std::memory_order_acquire))
		;
	sink = value;
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
