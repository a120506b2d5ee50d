// std::shared_mutex.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <mutex>
#include <shared_mutex>

int value, sink;
std::shared_mutex m;

static void first() {
	std::unique_lock<std::shared_mutex> l(m);
	value = 42;
}

static void second() {
	std::shared_lock<std::shared_mutex> l(m);
	sink = value;
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
