// A stack whose head is a pointer and a number, exchanged together.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <unistd.h>

struct Node {
	Node *next;
	int value;
};
struct alignas(16) Head {
	Node *node;
	uintptr_t number;
};
std::atomic<Head> head;

static void push(Node *n) {
	Head old = head.load(std::memory_order_relaxed), now;
	do {
		n->next = old.node;
		now = {n, old.number + 1};
	} while (!head.compare_exchange_weak(old, now, std::memory_order_release, std::memory_order_relaxed));
}

static Node *take_all() {
	Head old = head.load(std::memory_order_relaxed);
	while (!head.compare_exchange_weak(old, Head{nullptr, old.number + 1}, std::memory_order_acquire, std::memory_order_relaxed)) {
	}
	return old.node;
}

int main() {
	std::thread maker([] {
		for (int i = 0; i < 50; i++) push(new Node{nullptr, i});
	});
	int taken = 0, sum = 0;
	while (taken < 50) {
		Node *n = take_all();
		if (!n) usleep(100);
		for (; n; taken++) {
			Node *next = n->next;
			sum += n->value;
			delete n;
			n = next;
		}
	}
	maker.join();
	printf("%d\n", sum);
}
