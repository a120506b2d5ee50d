// Functions of the C library that fill what their arguments point to, or read it: formats, lines, times, files, numbers, wide strings,
// addresses and signals.
//
// FILLS calls the real function. Its last argument says what the call read and wrote if it succeeded, by R and W, which leave out null
// pointers.

#undef fread_unlocked
#undef fwrite_unlocked

#define R(what, n) ((what) ? READS((const void *)(what), n) : (void)0)
#define W(what, n) ((what) ? WRITES_TO((const void *)(what), n) : (void)0)
#define TO(p) W(p, sizeof *(p))
#define FROM(p) R(p, sizeof *(p))
#define TEXT(s) R(s, upto((const char *)(s), -1))
#define WIDE_TEXT(s) R(s, (REAL(wcslen)(s) + 1) * sizeof *(s))

#define FILLS(result, name, params, args, did, ...) \
	extern result name params; \
	EXPORT result name params { \
		result r = REAL(name) args; \
		if (TRACED && (did)) { \
			__VA_ARGS__; \
		} \
		return r; \
	}
#define FILLS_VOID(name, params, args, ...) \
	extern void name params; \
	EXPORT void name params { \
		REAL(name) args; \
		if (TRACED) { \
			__VA_ARGS__; \
		} \
	}

// A conversion of a format. In a scan, m is a flag, and * says that the conversion has no argument.
struct conversion { char kind, length, allocates; int stars; long width, precision; };

// conversion parses a conversion after its %, and moves *format to the text after it.
static struct conversion conversion(const char **format, int scans) {
	struct conversion c = {.precision = -1};
	const char *f = *format;
	while (*f && REAL(strchr)(scans ? "*0123456789'$IhlLqjztm" : "-+ #0'*123456789.$IhlLqjzt", *f)) {
		switch (*f) {
		case '*': c.stars++; break;
		case '.':
			c.precision = f[1] == '*' ? -2 : 0;
			break;
		case 'm': c.allocates = 1; break;
		case '$': c.kind = '$'; return c; // the argument has a number
		case 'h': c.length = c.length == 'h' ? 'H' : 'h'; break;
		case 'l': c.length = c.length == 'l' ? 'L' : 'l'; break;
		case 'L': case 'q': c.length = 'L'; break;
		case 'j': case 'z': case 't': c.length = 'l'; break;
		default:
			if (*f >= '0' && *f <= '9')
				*(c.precision >= 0 ? &c.precision : &c.width) = *(c.precision >= 0 ? &c.precision : &c.width) * 10 + *f - '0';
		}
		f++;
	}
	if (!(c.kind = *f))
		return c;
	if (*f == '[') {
		f += f[1] == '^' ? 2 : 1;
		for (f += *f == ']'; *f && *f != ']'; f++)
			;
		if (!*f)
			f--;
	}
	*format = f + 1;
	return c;
}

static size_t integer(char length) { return length == 'H' ? 1 : length == 'h' ? 2 : length == 'l' || length == 'L' ? 8 : 4; }

// scanned records what a scan of so many items has written.
static void scanned(const char *format, va_list list, int items, uptr pc) {
	while (items >= 0 && (format = REAL(strchr)(format, '%'))) {
		format++;
		struct conversion c = conversion(&format, 1);
		if (!c.kind || c.kind == '$')
			return;
		if (c.kind == '%' || c.stars)
			continue;
		if (c.kind != 'n' && items-- == 0)
			return;
		void *to = va_arg(list, void *);
		size_t n = integer(c.length);
		int wide = c.length == 'l' || c.kind == 'S' || c.kind == 'C';
		switch (c.kind) {
		case 'a': case 'A': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
			n = c.length == 'L' ? sizeof(long double) : c.length == 'l' ? sizeof(double) : sizeof(float);
			break;
		case 'p': n = sizeof to; break;
		case 's': case 'S': case '[': case 'c': case 'C':
			if (c.allocates)
				n = sizeof to;
			else if (c.kind == 'c' || c.kind == 'C')
				n = (c.width ? c.width : 1) * (wide ? sizeof(wchar_t) : 1);
			else
				n = wide ? (REAL(wcslen)(to) + 1) * sizeof(wchar_t) : length(to, -1) + 1;
		}
		range(to, n, WRITE_RANGE, pc);
	}
}

// printed records the texts that a print has read, and the numbers that it has written.
static void printed(const char *format, va_list list, uptr pc) {
	while ((format = REAL(strchr)(format, '%'))) {
		format++;
		struct conversion c = conversion(&format, 0);
		if (!c.kind || c.kind == '$')
			return;
		long star = -1;
		for (int i = 0; i < c.stars; i++)
			star = va_arg(list, int);
		if (c.precision == -2)
			c.precision = star < 0 ? -1 : star;
		switch (c.kind) {
		case 'a': case 'A': case 'e': case 'E': case 'f': case 'F': case 'g': case 'G':
			if (c.length == 'L')
				(void)va_arg(list, long double);
			else
				(void)va_arg(list, double);
			break;
		case '%': case 'm': break;
		case 's': case 'n': {
			void *p = va_arg(list, void *);
			if (c.kind == 'n')
				range(p, integer(c.length), WRITE_RANGE, pc);
			else if (p && c.length != 'l')
				range(p, upto(p, c.precision), READ_RANGE, pc);
			break;
		}
		case 'S': case 'p': (void)va_arg(list, void *); break;
		default:
			if (!REAL(strchr)("dioxXubBcC", c.kind))
				return; // of a later C library, or the program's own
			if (integer(c.length) == 8)
				(void)va_arg(list, long);
			else
				(void)va_arg(list, int);
		}
	}
}

#define PLAIN(...) __VA_ARGS__
#define PRINTS(name, params, args, before, text) \
	static int into_##name(PLAIN params const char *format, va_list list, int traced, uptr caller) { \
		before; \
		va_list copy; \
		va_copy(copy, list); \
		int n = REAL(v##name)(PLAIN args format, list); \
		if (traced && n >= 0) { \
			printed(format, copy, caller); \
			text; \
		} \
		va_end(copy); \
		return n; \
	} \
	EXPORT int v##name(PLAIN params const char *format, va_list list) { return into_##name(PLAIN args format, list, TRACED, RETURN_ADDRESS); } \
	EXPORT int name(PLAIN params const char *format, ...) { \
		va_list list; \
		va_start(list, format); \
		int n = into_##name(PLAIN args format, list, TRACED, RETURN_ADDRESS); \
		va_end(list); \
		return n; \
	}
#define PRINTED_TO(to, n) range(to, n, WRITE_RANGE, caller)
PRINTS(printf, (), (), , )
PRINTS(fprintf, (FILE *f,), (f,), by_stream(f, PUBLISH, caller), )
PRINTS(dprintf, (int fd,), (fd,), through(fd, PUBLISH, caller), )
PRINTS(sprintf, (char *to,), (to,), , PRINTED_TO(to, n + 1))
PRINTS(snprintf, (char *to, size_t most,), (to, most,), , PRINTED_TO(to, (size_t)n < most ? n + 1 : most))
PRINTS(asprintf, (char **to,), (to,), , PRINTED_TO(to, sizeof *to); PRINTED_TO(*to, n + 1))

// Headers give scanf the names of C99, those of glibc 2.38 the names of C23. Of a text what surely is looked at counts as read.
#define SCANS(prefix, name, params, args, ordered, text) \
	extern int scan_v##prefix##name(PLAIN params const char *, va_list) __asm__(#prefix "v" #name); \
	extern int scan_##prefix##name(PLAIN params const char *, ...) __asm__(#prefix #name); \
	static int from_##prefix##name(PLAIN params const char *format, va_list list, int traced, uptr caller) { \
		static __typeof__(scan_v##prefix##name) *found; \
		__typeof__(found) scan = __atomic_load_n(&found, __ATOMIC_RELAXED); \
		if (!scan) \
			__atomic_store_n(&found, scan = real(#prefix "v" #name), __ATOMIC_RELAXED); \
		va_list copy; \
		va_copy(copy, list); \
		int n = scan(PLAIN args format, list); \
		ordered; \
		if (traced) { \
			text; \
			scanned(format, copy, n, caller); \
		} \
		va_end(copy); \
		return n; \
	} \
	EXPORT int scan_v##prefix##name(PLAIN params const char *format, va_list list) { \
		return from_##prefix##name(PLAIN args format, list, TRACED, RETURN_ADDRESS); \
	} \
	EXPORT int scan_##prefix##name(PLAIN params const char *format, ...) { \
		va_list list; \
		va_start(list, format); \
		int n = from_##prefix##name(PLAIN args format, list, TRACED, RETURN_ADDRESS); \
		va_end(list); \
		return n; \
	}
#define ALL_SCANS(prefix) \
	SCANS(prefix, scanf, (), (), , ) \
	SCANS(prefix, fscanf, (FILE *f,), (f,), by_stream(f, LEARN, caller), ) \
	SCANS(prefix, sscanf, (const char *s,), (s,), , range(s, REAL(strspn)(s, " \t\n\v\f\r") + 1, READ_RANGE, caller))
ALL_SCANS()
ALL_SCANS(__isoc99_)
ALL_SCANS(__isoc23_)

// Lines, and what streams do without their lock.
#define LINE(name, params, args) FILLS(ssize_t, name, params, args, (by_stream(f, LEARN, RETURN_ADDRESS), 1), TO(to), TO(n), r > 0 ? W(*to, r + 1) : (void)0)
LINE(getline, (char **to, size_t *n, FILE *f), (to, n, f))
LINE(getdelim, (char **to, size_t *n, int end, FILE *f), (to, n, end, f))
FILLS(char *, fgets_unlocked, (char *to, int n, FILE *f), (to, n, f), r, W(to, upto(to, n)))
FILLS(size_t, fread_unlocked, (void *to, size_t size, size_t n, FILE *f), (to, size, n, f), 1, W(to, r * size))
FILLS(size_t, fwrite_unlocked, (const void *from, size_t size, size_t n, FILE *f), (from, size, n, f), 1, R(from, n * size))
FILLS(int, fputs_unlocked, (const char *s, FILE *f), (s, f), 1, TEXT(s))
FILLS(int, fgetpos, (FILE *f, fpos_t *to), (f, to), !r, TO(to))
FILLS(FILE *, fopen, (const char *name, const char *mode), (name, mode), 1, TEXT(name), TEXT(mode))

// Times. localtime and similar functions write memory of their own.
FILLS(time_t, time, (time_t *to), (to), 1, TO(to))
FILLS(struct tm *, localtime_r, (const time_t *from, struct tm *to), (from, to), r, FROM(from), TO(to))
FILLS(struct tm *, gmtime_r, (const time_t *from, struct tm *to), (from, to), r, FROM(from), TO(to))
FILLS(struct tm *, localtime, (const time_t *from), (from), r, FROM(from), TO(r))
FILLS(struct tm *, gmtime, (const time_t *from), (from), r, FROM(from), TO(r))
FILLS(char *, asctime_r, (const struct tm *from, char *to), (from, to), r, FROM(from), W(to, upto(to, -1)))
FILLS(char *, ctime_r, (const time_t *from, char *to), (from, to), r, FROM(from), W(to, upto(to, -1)))
FILLS(char *, asctime, (const struct tm *from), (from), r, FROM(from), W(r, upto(r, -1)))
FILLS(char *, ctime, (const time_t *from), (from), r, FROM(from), W(r, upto(r, -1)))
FILLS(time_t, mktime, (struct tm *t), (t), 1, TO(t))
FILLS(time_t, timegm, (struct tm *t), (t), 1, TO(t))
FILLS(size_t, strftime, (char *to, size_t n, const char *format, const struct tm *from), (to, n, format, from), 1, TEXT(format), FROM(from), r ? W(to, r + 1) : (void)0)
FILLS(int, clock_gettime, (clockid_t c, struct timespec *to), (c, to), !r, TO(to))
FILLS(int, clock_getres, (clockid_t c, struct timespec *to), (c, to), !r, TO(to))
FILLS(int, timespec_get, (struct timespec *to, int base), (to, base), r, TO(to))
FILLS(int, gettimeofday, (struct timeval *to, void *zone), (to, zone), !r, TO(to))
FILLS(int, nanosleep, (const struct timespec *from, struct timespec *to), (from, to), 1, FROM(from), r ? TO(to) : (void)0)

// Files, and what the system says of itself.
#if __GLIBC_PREREQ(2, 33)
FILLS(int, stat, (const char *name, struct stat *to), (name, to), !r, TEXT(name), TO(to))
FILLS(int, lstat, (const char *name, struct stat *to), (name, to), !r, TEXT(name), TO(to))
FILLS(int, fstat, (int fd, struct stat *to), (fd, to), !r, TO(to))
FILLS(int, fstatat, (int fd, const char *name, struct stat *to, int flags), (fd, name, to, flags), !r, TEXT(name), TO(to))
FILLS(int, stat64, (const char *name, struct stat64 *to), (name, to), !r, TEXT(name), TO(to))
FILLS(int, lstat64, (const char *name, struct stat64 *to), (name, to), !r, TEXT(name), TO(to))
FILLS(int, fstat64, (int fd, struct stat64 *to), (fd, to), !r, TO(to))
#endif
FILLS(int, statvfs, (const char *name, struct statvfs *to), (name, to), !r, TEXT(name), TO(to))
FILLS(char *, getcwd, (char *to, size_t n), (to, n), r, W(r, upto(r, -1)))
FILLS(char *, realpath, (const char *name, char *to), (name, to), r, TEXT(name), W(r, upto(r, -1)))
FILLS(ssize_t, readlink, (const char *name, char *to, size_t n), (name, to, n), r > 0, TEXT(name), W(to, r))
FILLS(int, gethostname, (char *to, size_t n), (to, n), !r, W(to, upto(to, n)))
FILLS(int, uname, (struct utsname *to), (to), !r, TO(to))
FILLS(int, pipe, (int to[2]), (to), !r, W(to, 2 * sizeof *to))
FILLS(int, pipe2, (int to[2], int flags), (to, flags), !r, W(to, 2 * sizeof *to))
FILLS(ssize_t, getrandom, (void *to, size_t n, unsigned flags), (to, n, flags), r > 0, W(to, r))
FILLS(int, getrusage, (__rusage_who_t who, struct rusage *to), (who, to), !r, TO(to))
FILLS(int, getrlimit, (__rlimit_resource_t what, struct rlimit *to), (what, to), !r, TO(to))
FILLS(clock_t, times, (struct tms *to), (to), 1, TO(to))
FILLS(int, getitimer, (__itimer_which_t which, struct itimerval *to), (which, to), !r, TO(to))
FILLS(int, sched_getaffinity, (pid_t p, size_t n, cpu_set_t *to), (p, n, to), !r, W(to, n))
FILLS(pid_t, waitpid, (pid_t p, int *to, int options), (p, to, options), r > 0, TO(to))
FILLS(pid_t, wait, (int *to), (to), r > 0, TO(to))

// The environment is one object: a list that setenv may move.
extern char **environ;
FILLS(char *, getenv, (const char *name), (name), 1, TEXT(name), FROM(&environ))
FILLS(int, setenv, (const char *name, const char *value, int replace), (name, value, replace), !r, TEXT(name), TEXT(value), TO(&environ))
FILLS(int, unsetenv, (const char *name), (name), !r, TEXT(name), TO(&environ))
FILLS(int, putenv, (char *s), (s), !r, TO(&environ))

// Addresses and sockets.
static size_t least(size_t n, const socklen_t *most) { return most && *most < n ? *most : n; }
FILLS(int, socketpair, (int domain, int type, int protocol, int to[2]), (domain, type, protocol, to), !r, W(to, 2 * sizeof *to))
#define ADDRESS(name) FILLS(int, name, (int fd, struct sockaddr *to, socklen_t *n), (fd, to, n), !r, TO(n), W(to, least(sizeof(struct sockaddr_storage), n)))
ADDRESS(getsockname)
ADDRESS(getpeername)
FILLS(int, getsockopt, (int fd, int level, int option, void *to, socklen_t *n), (fd, level, option, to, n), !r, TO(n), W(to, *n))
FILLS(int, inet_pton, (int family, const char *from, void *to), (family, from, to), r == 1, TEXT(from), W(to, family == AF_INET ? 4 : 16))
FILLS(const char *, inet_ntop, (int family, const void *from, char *to, socklen_t n), (family, from, to, n), r, R(from, family == AF_INET ? 4 : 16), W(to, upto(to, n)))

// Numbers.
FILLS(double, frexp, (double x, int *to), (x, to), 1, TO(to))
FILLS(float, frexpf, (float x, int *to), (x, to), 1, TO(to))
FILLS(double, modf, (double x, double *to), (x, to), 1, TO(to))
FILLS(float, modff, (float x, float *to), (x, to), 1, TO(to))
FILLS(double, remquo, (double x, double y, int *to), (x, y, to), 1, TO(to))
FILLS(double, lgamma_r, (double x, int *to), (x, to), 1, TO(to))
FILLS_VOID(sincos, (double x, double *a, double *b), (x, a, b), TO(a), TO(b))
FILLS_VOID(sincosf, (float x, float *a, float *b), (x, a, b), TO(a), TO(b))
FILLS(int, rand_r, (unsigned *s), (s), 1, TO(s))
FILLS(double, erand48, (unsigned short s[3]), (s), 1, W(s, 6))
FILLS(long, nrand48, (unsigned short s[3]), (s), 1, W(s, 6))
FILLS(long, jrand48, (unsigned short s[3]), (s), 1, W(s, 6))
FILLS(int, drand48_r, (struct drand48_data *s, double *to), (s, to), 1, TO(s), TO(to))
FILLS(int, lrand48_r, (struct drand48_data *s, long *to), (s, to), 1, TO(s), TO(to))
FILLS(int, random_r, (struct random_data *s, int32_t *to), (s, to), 1, TO(s), TO(to))
#define WHOLE(name) \
	FILLS(intmax_t, name, (const char *s, char **end, int base), (s, end, base), 1, R(s, 1), TO(end))
WHOLE(strtoimax)
WHOLE(__isoc23_strtoimax)
FILLS(long long, atoll, (const char *s), (s), 1, R(s, REAL(strspn)(s, " \t\n\v\f\r") + 1))

// More of memory, strings and wide strings.
FILLS(void *, memccpy, (void *restrict to, const void *restrict from, int c, size_t n), (to, from, c, n), 1, R(from, r ? (char *)r - (char *)to : n), W(to, r ? (char *)r - (char *)to : n))
FILLS(void *, memmem, (const void *s, size_t n, const void *what, size_t k), (s, n, what, k), 1, R(what, k), R(s, r ? (char *)r - (char *)s + k : n))
FILLS(void *, memrchr, (const void *s, int c, size_t n), (s, c, n), 1, r ? R(r, (char *)s + n - (char *)r) : R(s, n))
FILLS(void *, rawmemchr, (const void *s, int c), (s, c), 1, R(s, (char *)r - (char *)s + 1))
FILLS(char *, strchrnul, (const char *s, int c), (s, c), 1, R(s, r - s + 1))
FILLS(char *, strcasestr, (const char *s, const char *what), (s, what), 1, TEXT(what), R(s, r ? (size_t)(r - s) + length(what, -1) : upto(s, -1)))
FILLS(char *, stpncpy, (char *restrict to, const char *restrict from, size_t n), (to, from, n), 1, R(from, upto(from, n)), W(to, n))
FILLS(int, strcoll, (const char *a, const char *b), (a, b), 1, R(a, compared(a, b, -1, 0)), R(b, compared(a, b, -1, 0)))
FILLS(size_t, strxfrm, (char *restrict to, const char *restrict from, size_t n), (to, from, n), 1, TEXT(from), r < n ? W(to, r + 1) : (void)0)
FILLS(char *, strsep, (char **s, const char *ends), (s, ends), 1, TEXT(ends), TO(s), r ? R(r, upto(r, -1)) : (void)0, *s ? W(*s - 1, 1) : (void)0)
FILLS_VOID(bcopy, (const void *from, void *to, size_t n), (from, to, n), R(from, n), W(to, n))
FILLS_VOID(swab, (const void *restrict from, void *restrict to, ssize_t n), (from, to, n), R(from, n > 0 ? n & ~1 : 0), W(to, n > 0 ? n & ~1 : 0))
FILLS_VOID(explicit_bzero, (void *to, size_t n), (to, n), W(to, n))
FILLS(char *, strerror_r, (int e, char *to, size_t n), (e, to, n), r == to, W(to, upto(to, n)))
FILLS(int, __xpg_strerror_r, (int e, char *to, size_t n), (e, to, n), !r, W(to, upto(to, n)))
FILLS(wchar_t *, wcsncpy, (wchar_t *restrict to, const wchar_t *restrict from, size_t n), (to, from, n), 1, R(from, (wcsnlen(from, n) < n ? wcsnlen(from, n) + 1 : n) * sizeof *from), W(to, n * sizeof *to))
FILLS(int, wcscmp, (const wchar_t *a, const wchar_t *b), (a, b), 1, R(a, sizeof *a), R(b, sizeof *b))
FILLS(int, wcsncmp, (const wchar_t *a, const wchar_t *b, size_t n), (a, b, n), n, R(a, sizeof *a), R(b, sizeof *b))
FILLS(int, wmemcmp, (const wchar_t *a, const wchar_t *b, size_t n), (a, b, n), 1, R(a, n * sizeof *a), R(b, n * sizeof *b))
FILLS(wchar_t *, wmemchr, (const wchar_t *s, wchar_t c, size_t n), (s, c, n), 1, R(s, (r ? (size_t)(r - s) + 1 : n) * sizeof *s))
FILLS(wchar_t *, wcschr, (const wchar_t *s, wchar_t c), (s, c), 1, r ? R(s, (r - s + 1) * sizeof *s) : WIDE_TEXT(s))
FILLS(size_t, mbstowcs, (wchar_t *restrict to, const char *restrict from, size_t n), (to, from, n), r != (size_t)-1 && to, TEXT(from), W(to, (r < n ? r + 1 : n) * sizeof *to))
FILLS(size_t, wcstombs, (char *restrict to, const wchar_t *restrict from, size_t n), (to, from, n), r != (size_t)-1 && to, R(from, sizeof *from), W(to, r < n ? r + 1 : n))
FILLS(size_t, mbrtowc, (wchar_t *restrict to, const char *restrict from, size_t n, mbstate_t *restrict s), (to, from, n, s), (ssize_t)r >= 0, R(from, r ? r : 1), TO(to))

// Signals and threads.
FILLS(int, sigemptyset, (sigset_t *to), (to), !r, TO(to))
FILLS(int, sigfillset, (sigset_t *to), (to), !r, TO(to))
FILLS(int, sigaddset, (sigset_t *to, int n), (to, n), !r, TO(to))
FILLS(int, sigdelset, (sigset_t *to, int n), (to, n), !r, TO(to))
FILLS(int, sigaction, (int n, const struct sigaction *from, struct sigaction *to), (n, from, to), !r, FROM(from), TO(to))
FILLS(int, sigprocmask, (int how, const sigset_t *from, sigset_t *to), (how, from, to), !r, FROM(from), TO(to))
FILLS(int, pthread_sigmask, (int how, const sigset_t *from, sigset_t *to), (how, from, to), !r, FROM(from), TO(to))
FILLS(int, pthread_getschedparam, (pthread_t t, int *policy, struct sched_param *to), (t, policy, to), !r, TO(policy), TO(to))
FILLS(int, sem_getvalue, (sem_t *s, int *to), (s, to), !r, TO(to))
