/*
 * Twelve phases of the same work. In each, some boots make one more system call, of random size: which ones, and
 * how large, are drawn from the kernel's random numbers. Build: cc -O2 -static -o rare rare.c
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define PAGE 4096UL
#define LEAST 50UL
#define MOST 500UL
#define ROUNDS 4
#define TOUCHED 32

static char *memory;
static int zero;

/* Begins a phase; Faultline reads the kernel's counters before the call returns. */
static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	if (read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) != 1)
		exit(1);
}

/* Below the limit. */
static unsigned long drawn(unsigned long limit)
{
	unsigned int number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		exit(1);
	return number % limit;
}

static void look(unsigned long pages)
{
	static unsigned char present[MOST];

	mincore(memory, pages * PAGE, present);
}

static void fetch(unsigned long pages)
{
	static char bytes[MOST * 64];

	if (read(zero, bytes, pages * 64) < 0)
		exit(1);
}

static void lock(unsigned long pages)
{
	munlock(memory, pages * PAGE);
}

static void give_back(unsigned long pages)
{
	madvise(memory, pages * PAGE, MADV_DONTNEED);
}

static void work(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		char *own = mmap(NULL, TOUCHED * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (own == MAP_FAILED)
			exit(1);
		for (int page = 0; page < TOUCHED; page++)
			own[page * PAGE] = 1;
		munmap(own, TOUCHED * PAGE);
	}
}

int main(void)
{
	static const struct {
		const char *name;
		void (*call)(unsigned long pages);
	} calls[] = {
		{ "mincore", look }, { "read", fetch }, { "munlock", lock }, { "madvise", give_back },
	};
	static const unsigned int percents[] = { 20, 40, 70 };
	unsigned long pages[4][3];
	char name[32];

	zero = open("/dev/zero", O_RDONLY);
	memory = mmap(NULL, MOST * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (zero < 0 || memory == MAP_FAILED)
		return 1;
	for (int kind = 0; kind < 4; kind++)
		for (int chance = 0; chance < 3; chance++)
			pages[kind][chance] =
				drawn(100) < percents[chance] ? LEAST + drawn(MOST - LEAST) : 0;
	for (int kind = 0; kind < 4; kind++)
		for (int chance = 0; chance < 3; chance++) {
			for (unsigned long page = 0; page < MOST; page++)
				memory[page * PAGE] = 1;
			snprintf(name, sizeof(name), "%s-%u", calls[kind].name, percents[chance]);
			phase(name);
			work();
			if (pages[kind][chance])
				calls[kind].call(pages[kind][chance]);
			phase("");
		}
	return 0;
}
