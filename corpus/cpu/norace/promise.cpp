// A promise hands a value on.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <future>

std::promise<int *> p;
int value, sink;

static void first() {
	value = 42;
	p.set_value(&value);
}

static void second() {
	sink = *p.get_future().get();
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
