// Futures that become ready when the thread ends come after all that it did.
#include <cstdlib>
#include <exception>
#include <future>
#include <thread>

int x;

int main() {
	for (int i = 0; i < 10; i++) {
		std::promise<int> p;
		auto f = p.get_future();
		std::thread a([&] { x = 1; p.set_value_at_thread_exit(2); x = 3; });
		if (f.get() != 2)
			abort();
		x = 4;
		std::packaged_task<int()> t([] { x = 5; return 1; });
		auto g = t.get_future();
		std::thread b([&] { t.make_ready_at_thread_exit(); x = 6; });
		g.wait();
		x = 7;
		std::promise<void> q;
		auto h = q.get_future();
		std::thread c([&] { q.set_exception_at_thread_exit(std::make_exception_ptr(1)); x = 8; });
		try {
			h.get();
			abort();
		} catch (int) {
		}
		x = 9;
		std::thread d([r = std::promise<void>()]() mutable { r.set_value_at_thread_exit(); }); // nobody waits
		a.join(), b.join(), c.join(), d.join();
	}
	return 0;
}
