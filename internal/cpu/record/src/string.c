// More functions of the C library that access the program's memory: those of strings and of files.

#define READS(what, n) range(what, n, READ_RANGE, RETURN_ADDRESS)
#define WRITES_TO(what, n) range(what, n, WRITE_RANGE, RETURN_ADDRESS)

// upto returns how many bytes a search for the end of a string reads: at most most.
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

#define SPANNING(name) \
	EXPORT size_t name(const char *s, const char *set) { \
		size_t n = REAL(name)(s, set); \
		if (TRACED) { \
			READS(set, upto(set, -1)); \
			READS(s, n + 1); \
		} \
		return n; \
	}
SPANNING(strspn)
SPANNING(strcspn)

EXPORT char *strpbrk(const char *s, const char *set) {
	char *found = REAL(strpbrk)(s, set);
	if (TRACED) {
		READS(set, upto(set, -1));
		READS(s, found ? (size_t)(found - s) + 1 : upto(s, -1));
	}
	return found;
}

// token overwrites the end of a token, unless the string ends there.
static char *token(char *s, const char *ends, char **rest, int traced, uptr caller) {
	char *from = s ? s : *rest, *token = REAL(strtok_r)(s, ends, rest);
	if (traced) {
		range(ends, upto(ends, -1), READ_RANGE, caller);
		range(from, *rest > from ? *rest - from : from != NULL, READ_RANGE, caller);
		range(rest, sizeof *rest, WRITE_RANGE, caller);
		if (token && *rest > token + length(token, -1))
			range(*rest - 1, 1, WRITE_RANGE, caller);
	}
	return token;
}

EXPORT char *strtok_r(char *restrict s, const char *restrict ends, char **restrict rest) { return token(s, ends, rest, TRACED, RETURN_ADDRESS); }

// strtok continues at one place for all threads.
static char *strtok_rest;
EXPORT char *strtok(char *restrict s, const char *restrict ends) { return token(s, ends, &strtok_rest, TRACED, RETURN_ADDRESS); }

// Conversions of numbers. They read up to the first character that is not part of a number, and nothing if the base is
// invalid. Headers of glibc 2.38 name functions of C23.
#define NUMBER(result, name, more, args) \
	extern result name(const char *, char ** more); \
	EXPORT result name(const char *s, char **end more) { \
		char *to = NULL; \
		result r = REAL(name)args; \
		if (TRACED && to) { \
			READS(s, to - s + 1); \
			if (end) \
				WRITES_TO(end, sizeof *end); \
		} \
		if (end && to) \
			*end = to; \
		return r; \
	}
#define BASE , int base
#define INTEGER(result, name) NUMBER(result, name, BASE, (s, &to, base)) NUMBER(result, __isoc23_##name, BASE, (s, &to, base))
INTEGER(long, strtol)
INTEGER(long long, strtoll)
INTEGER(unsigned long, strtoul)
INTEGER(unsigned long long, strtoull)
NUMBER(float, strtof, , (s, &to))
NUMBER(double, strtod, , (s, &to))
NUMBER(long double, strtold, , (s, &to))

#define SHORT_NUMBER(result, name, parse) \
	EXPORT result name(const char *s) { \
		char *to; \
		result r = (result)parse; \
		if (TRACED) \
			READS(s, to - s + 1); \
		return r; \
	}
SHORT_NUMBER(int, atoi, REAL(strtol)(s, &to, 10))
SHORT_NUMBER(long, atol, REAL(strtol)(s, &to, 10))
SHORT_NUMBER(double, atof, REAL(strtod)(s, &to))

// compared returns how many bytes of two strings are compared.
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
EXPORT void *mempcpy(void *restrict to, const void *restrict from, size_t n) { return (char *)move(to, from, n, TRACED, RETURN_ADDRESS) + n; }

// Strings of wide characters, which std::wstring uses too.
EXPORT wchar_t *wmemcpy(wchar_t *restrict to, const wchar_t *restrict from, size_t n) { return move(to, from, n * sizeof *to, TRACED, RETURN_ADDRESS); }
EXPORT wchar_t *wmemmove(wchar_t *to, const wchar_t *from, size_t n) { return move(to, from, n * sizeof *to, TRACED, RETURN_ADDRESS); }
EXPORT wchar_t *wmemset(wchar_t *to, wchar_t c, size_t n) {
	if (TRACED)
		WRITES_TO(to, n * sizeof *to);
	return REAL(wmemset)(to, c, n);
}
EXPORT size_t wcslen(const wchar_t *s) {
	size_t n = REAL(wcslen)(s);
	if (TRACED)
		READS(s, (n + 1) * sizeof *s);
	return n;
}
EXPORT wchar_t *wcscpy(wchar_t *restrict to, const wchar_t *restrict from) {
	return move(to, from, (REAL(wcslen)(from) + 1) * sizeof *to, TRACED, RETURN_ADDRESS);
}

#define SORTING(name, params, args) \
	EXPORT void name params { \
		if (TRACED) \
			WRITES_TO(base, n * size); \
		REAL(name) args; \
	}
SORTING(qsort, (void *base, size_t n, size_t size, int (*compare)(const void *, const void *)), (base, n, size, compare))
SORTING(qsort_r, (void *base, size_t n, size_t size, int (*compare)(const void *, const void *, void *), void *more), (base, n, size, compare, more))

// Programs for large files call the functions with the second name.
#define PLACED(pread, pwrite) \
	EXPORT ssize_t pread(int fd, void *to, size_t n, off_t at) { \
		ssize_t k = REAL(pread)(fd, to, n, at); \
		if (k > 0 && TRACED) \
			WRITES_TO(to, k); \
		return k; \
	} \
	EXPORT ssize_t pwrite(int fd, const void *from, size_t n, off_t at) { \
		if (TRACED) \
			READS(from, n); \
		return REAL(pwrite)(fd, from, n, at); \
	}
PLACED(pread, pwrite)
PLACED(pread64, pwrite64)

EXPORT size_t fread(void *restrict to, size_t size, size_t n, FILE *restrict f) {
	size_t k = REAL(fread)(to, size, n, f);
	by_stream(f, LEARN, RETURN_ADDRESS);
	if (TRACED)
		WRITES_TO(to, k * size);
	return k;
}

EXPORT size_t fwrite(const void *restrict from, size_t size, size_t n, FILE *restrict f) {
	if (TRACED)
		READS(from, n * size);
	by_stream(f, PUBLISH, RETURN_ADDRESS);
	return REAL(fwrite)(from, size, n, f);
}

EXPORT char *fgets(char *restrict to, int n, FILE *restrict f) {
	char *line = REAL(fgets)(to, n, f);
	by_stream(f, LEARN, RETURN_ADDRESS);
	if (line && TRACED)
		WRITES_TO(to, upto(to, n));
	return line;
}

EXPORT int fputs(const char *restrict s, FILE *restrict f) {
	if (TRACED)
		READS(s, upto(s, -1));
	by_stream(f, PUBLISH, RETURN_ADDRESS);
	return REAL(fputs)(s, f);
}

EXPORT int fflush(FILE *f) {
	by_stream(f, PUBLISH, RETURN_ADDRESS);
	return REAL(fflush)(f);
}

EXPORT int fclose(FILE *f) {
	by_stream(f, PUBLISH, RETURN_ADDRESS);
	return REAL(fclose)(f);
}

EXPORT int puts(const char *s) {
	if (TRACED)
		READS(s, upto(s, -1));
	return REAL(puts)(s);
}
