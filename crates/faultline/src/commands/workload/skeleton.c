/* Build: cc -O2 -static -o NAME NAME.c */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Where metrics go: to Faultline, and without it to standard output. */
static int output(void)
{
	const char *number = getenv("FAULTLINE_FD");

	return number ? atoi(number) : STDOUT_FILENO;
}

/* Begins a phase; Faultline reads the kernel's counters before the call returns. Has no effect without Faultline. */
static void phase(const char *name)
{
	const char *number = getenv("FAULTLINE_ACK_FD");
	char byte;

	if (!number)
		return;
	dprintf(output(), "phase %s\n", name);
	if (read(atoi(number), &byte, 1) != 1)
		exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	size_t size = (argc > 1 ? strtoul(argv[1], NULL, 0) : 64) << 20;
	double begun;
	char *memory;

	phase("map");
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;

	phase("touch");
	begun = now();
	for (size_t place = 0; place < size; place += 4096)
		memory[place] = 1;
	dprintf(output(), "sample Elapsed %.9f\n", now() - begun);

	phase("");
	return 0;
}
