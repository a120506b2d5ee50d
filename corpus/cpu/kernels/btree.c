// A search tree under a read-write lock: most look up, some insert. Arguments: threads (4), size.
#include "kernel.h"

struct node { long key; struct node *left, *right; };
static struct node *root;
static long found[64];
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void insert(long key) {
	struct node **at = &root;
	while (*at && (*at)->key != key)
		at = key < (*at)->key ? &(*at)->left : &(*at)->right;
	if (!*at) {
		*at = calloc(1, sizeof **at);
		(*at)->key = key;
	}
}

static int has(long key) {
	struct node *n = root;
	while (n && n->key != key)
		n = key < n->key ? n->left : n->right;
	return n != NULL;
}

static void work(int id, int threads) {
	unsigned r = id + 1;
	for (long i = id; i < size; i += threads) {
		long key = rnd(&r) % size;
		if (i % 8 == 0) {
			pthread_rwlock_wrlock(&lock);
			insert(key);
		} else {
			pthread_rwlock_rdlock(&lock);
			found[id] += has(key);
		}
		pthread_rwlock_unlock(&lock);
	}
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 8000;
	unsigned r = 9;
	for (long i = 0; i < size / 8; i++)
		insert(rnd(&r) % size);
	in_threads(work);
	printf("%d\n", root != NULL);
	return 0;
}
