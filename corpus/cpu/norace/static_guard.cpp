// A static variable of a function is initialised once.
#include <atomic>
#include <cstdlib>
#include <thread>

struct Thing {
	int value;
	Thing() : value(42) {}
};
static Thing &thing() {
	static Thing t;
	return t;
}

static void first() {
	if (thing().value != 42)
		abort();
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
