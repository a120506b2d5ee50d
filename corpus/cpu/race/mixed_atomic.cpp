// One thread adds atomically, the other does not.
#include <atomic>
#include <cstdlib>
#include <thread>

int counter;

static void first() {
	__atomic_fetch_add(&counter, 1, __ATOMIC_SEQ_CST); // want race
}

static void second() {
	counter++; // want race
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
