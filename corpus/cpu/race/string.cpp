// One thread appends to a string that the other one reads.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <string>

std::string text = "a text that is too long to stand in the object itself";
size_t sink;

static void first() {
	text += "more"; // want race
}

static void second() {
	sink = text.size(); // want race
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
