// A lock made of a compare-and-swap.
#include <atomic>
#include <cstdlib>
#include <thread>

int counter;
std::atomic<int> lock;

static void first() {
	for (int i = 0; i < 100; i++) {
		int zero = 0;
		while (!lock.compare_exchange_weak(zero, 1)) {
			zero = 0;
			std::this_thread::yield();
		}
		counter++;
		lock = 0;
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
