// Double-checked locking with a plain pointer.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <mutex>

struct Thing {
	int value;
};
Thing *thing;
int sink;
std::mutex m;
static int get() {
	if (!thing) { // want race
		std::lock_guard<std::mutex> l(m);
		if (!thing) {
			Thing *t = new Thing{42};
			thing = t; // want race
		}
	}
	return 1;
}

static void first() {
	get();
}

static void second() {
	get();
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
