// More functions of the C library that read and write the program's memory: of strings, and of files.

#define READS(what, n) range(what, n, READ_RANGE, RETURN_ADDRESS)
#define WRITES_TO(what, n) range(what, n, WRITE_RANGE, RETURN_ADDRESS)

// upto is how many bytes are looked at to find an end, most at the most.
static size_t upto(const char *s, size_t most) {
	size_t n = length(s, most);
	return n < most ? n + 1 : n;
}

EXPORT size_t strnlen(const char *s, size_t most) {
	if (TRACED)
		READS(s, upto(s, most));
	return length(s, most);
}

EXPORT char *strncat(char *restrict to, const char *restrict from, size_t n) {
	size_t at = length(to, -1), k = length(from, n);
	if (TRACED) {
		READS(to, at + 1);
		READS(from, upto(from, n));
		WRITES_TO(to + at, k + 1);
	}
	REAL(memmove)(to + at, from, k);
	to[at + k] = 0;
	return to;
}

EXPORT char *stpcpy(char *restrict to, const char *restrict from) {
	size_t n = length(from, -1) + 1;
	if (TRACED) {
		READS(from, n);
		WRITES_TO(to, n);
	}
	REAL(memmove)(to, from, n);
	return to + n - 1;
}

#define SEARCHING(result, name, params, args, s, most) \
	EXPORT result name params { \
		result found = REAL(name) args; \
		if (TRACED) \
			READS(s, found ? (char *)found - (char *)s + 1 : most); \
		return found; \
	}
SEARCHING(char *, strchr, (const char *s, int c), (s, c), s, upto(s, -1))
SEARCHING(void *, memchr, (const void *s, int c, size_t n), (s, c, n), s, n)

EXPORT char *strrchr(const char *s, int c) {
	if (TRACED)
		READS(s, upto(s, -1));
	return REAL(strrchr)(s, c);
}

EXPORT char *strstr(const char *s, const char *what) {
	char *found = REAL(strstr)(s, what);
	if (TRACED) {
		READS(what, upto(what, -1));
		READS(s, found ? found - s + length(what, -1) : upto(s, -1));
	}
	return found;
}

// compared is how many bytes of two strings are compared.
static size_t compared(const char *a, const char *b, size_t most, unsigned ignored) {
	size_t i = 0;
	for (; i < most; i++) {
		unsigned x = ((const volatile char *)a)[i], y = ((const volatile char *)b)[i];
		if (!x || (x | ignored) != (y | ignored))
			return i + 1;
	}
	return i;
}

#define COMPARING(name, params, args, most, ignored) \
	EXPORT int name params { \
		if (TRACED) { \
			size_t k = compared(a, b, most, ignored); \
			READS(a, k); \
			READS(b, k); \
		} \
		return REAL(name) args; \
	}
COMPARING(strncmp, (const char *a, const char *b, size_t n), (a, b, n), n, 0)
COMPARING(strcasecmp, (const char *a, const char *b), (a, b), -1, 'a' - 'A')
COMPARING(strncasecmp, (const char *a, const char *b, size_t n), (a, b, n), n, 'a' - 'A')

EXPORT char *strdup(const char *s) {
	size_t n = length(s, -1) + 1;
	if (TRACED)
		READS(s, n);
	char *copy = allocated(ALLOCATOR(malloc)(n), n, RETURN_ADDRESS);
	return copy ? REAL(memmove)(copy, s, n) : NULL;
}

EXPORT char *strndup(const char *s, size_t most) {
	size_t n = length(s, most);
	if (TRACED)
		READS(s, upto(s, most));
	char *copy = allocated(ALLOCATOR(malloc)(n + 1), n + 1, RETURN_ADDRESS);
	if (!copy)
		return NULL;
	REAL(memmove)(copy, s, n);
	copy[n] = 0;
	return copy;
}

EXPORT void bzero(void *to, size_t n) { fill(to, 0, n, TRACED, RETURN_ADDRESS); }

// The text is written, and what its arguments point to is not told.
EXPORT int vsnprintf(char *restrict to, size_t most, const char *restrict format, va_list list) {
	int n = REAL(vsnprintf)(to, most, format, list);
	if (TRACED && n >= 0 && most)
		WRITES_TO(to, (size_t)n < most ? n + 1 : most);
	return n;
}

EXPORT int snprintf(char *restrict to, size_t most, const char *restrict format, ...) {
	va_list list;
	va_start(list, format);
	int n = REAL(vsnprintf)(to, most, format, list);
	va_end(list);
	if (TRACED && n >= 0 && most)
		WRITES_TO(to, (size_t)n < most ? n + 1 : most);
	return n;
}

EXPORT int sprintf(char *restrict to, const char *restrict format, ...) {
	va_list list;
	va_start(list, format);
	int n = REAL(vsprintf)(to, format, list);
	va_end(list);
	if (TRACED && n >= 0)
		WRITES_TO(to, n + 1);
	return n;
}

EXPORT ssize_t pread(int fd, void *to, size_t n, off_t at) {
	ssize_t k = REAL(pread)(fd, to, n, at);
	if (k > 0 && TRACED)
		WRITES_TO(to, k);
	return k;
}

EXPORT ssize_t pwrite(int fd, const void *from, size_t n, off_t at) {
	if (TRACED)
		READS(from, n);
	return REAL(pwrite)(fd, from, n, at);
}

EXPORT size_t fread(void *restrict to, size_t size, size_t n, FILE *restrict f) {
	size_t k = REAL(fread)(to, size, n, f);
	if (TRACED)
		WRITES_TO(to, k * size);
	return k;
}

EXPORT size_t fwrite(const void *restrict from, size_t size, size_t n, FILE *restrict f) {
	if (TRACED)
		READS(from, n * size);
	return REAL(fwrite)(from, size, n, f);
}

EXPORT char *fgets(char *restrict to, int n, FILE *restrict f) {
	char *line = REAL(fgets)(to, n, f);
	if (line && TRACED)
		WRITES_TO(to, upto(to, n));
	return line;
}

EXPORT int fputs(const char *restrict s, FILE *restrict f) {
	if (TRACED)
		READS(s, upto(s, -1));
	return REAL(fputs)(s, f);
}

EXPORT int puts(const char *s) {
	if (TRACED)
		READS(s, upto(s, -1));
	return REAL(puts)(s);
}
