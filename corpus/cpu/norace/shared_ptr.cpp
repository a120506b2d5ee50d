// The last owner deletes.
#include <atomic>
#include <cstdlib>
#include <thread>
#include <memory>

auto shared = std::make_shared<int>(42);
int sink[2];
static void use(std::shared_ptr<int> p, int i) { sink[i] = *p; }

static void first() {
	auto p = std::atomic_load(&shared);
	use(p, 0);
}

static void second() {
	auto p = std::atomic_load(&shared);
	use(p, 1);
}

int main() {
	std::thread a(first), b(second);
	a.join();
	b.join();
	return 0;
}
