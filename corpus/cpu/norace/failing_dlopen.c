// A library is missing. The linker's message is freed while the recorder looks for free.
#include <dlfcn.h>
#include <stdlib.h>

int main(void) {
	if (dlopen("libthere-is-no-such-library.so", RTLD_NOW))
		return 1;
	free(malloc(1));
	return 0;
}
