// A promise that is kept at once hands nothing on of what the thread does later.
#include <future>
#include <thread>

int x;

int main() {
	std::promise<int> p;
	auto f = p.get_future();
	std::thread a([&] {
		p.set_value(2);
		x = 1; // want race
	});
	f.get();
	x = 2; // want race
	a.join();
	return 0;
}
