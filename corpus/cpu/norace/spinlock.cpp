// A lock made of an exchange.
#include <atomic>
#include <cstdlib>
#include <thread>

int counter;
std::atomic<int> lock;

static void first() {
	for (int i = 0; i < 100; i++) {
		while (lock.exchange(1, std::memory_order_acquire))
			std::this_thread::yield();
		counter++;
		lock.store(0, std::memory_order_release);
	}
}

static void second() {
	first();
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
