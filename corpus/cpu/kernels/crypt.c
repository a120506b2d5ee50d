// A stream cipher encrypts and decrypts blocks of a buffer. Arguments: threads (4), size.
#include "kernel.h"

static unsigned char *text, *secret, *again;
static unsigned char key[256];

static void cipher(unsigned char *to, const unsigned char *from, long a, long b) {
	for (long i = a; i < b; i++)
		to[i] = from[i] ^ key[(i * 7 + key[i & 255]) & 255];
}

static void work(int id, int threads) {
	long a = size * id / threads, b = size * (id + 1) / threads;
	cipher(secret, text, a, b);
	meet();
	cipher(again, secret, a, b);
}

int main(int argc, char **argv) {
	begin(argc, argv);
	size = size ? size : 100000;
	text = malloc(size), secret = malloc(size), again = malloc(size);
	unsigned r = 1;
	for (int i = 0; i < 256; i++)
		key[i] = rnd(&r);
	for (long i = 0; i < size; i++)
		text[i] = rnd(&r);
	in_threads(work);
	printf("%d\n", memcmp(text, again, size));
	return 0;
}
