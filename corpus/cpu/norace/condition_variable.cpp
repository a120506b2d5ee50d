// std::condition_variable with a predicate.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <condition_variable>
#include <mutex>

int value, sink;
bool ready;
std::mutex m;
std::condition_variable c;

static void first() {
	{
		std::lock_guard<std::mutex> l(m);
		value = 42;
		ready = true;
	}
	c.notify_one();
}

static void second() {
	std::unique_lock<std::mutex> l(m);
	c.wait(l, [] { return ready; });
	sink = value;
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
