// Both threads append to a vector.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

std::vector<int> list;

static void first() {
	list.push_back(1); // want race
}

static void second() {
	list.push_back(2); // want race
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
