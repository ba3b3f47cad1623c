// Processes map one file, read a page of it, and unmap it, as programs do with libraries when they start and end. The
// thread that this answers is in docs/threads/i-mmap.md.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TASKS = 4, ROUNDS = 2000, SIZE = 65536 };

static int child(int fd)
{
	for (int round = 0; round < ROUNDS; round++) {
		volatile char *file = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);

		if (file == MAP_FAILED)
			return 1;
		(void)*file;
		if (munmap((void *)file, SIZE))
			return 1;
	}
	return 0;
}

int main(void)
{
	int fd = memfd_create("library", 0), failed = 0, status;

	if (fd < 0 || ftruncate(fd, SIZE))
		return 1;
	for (int task = 0; task < TASKS; task++)
		if (!fork())
			_exit(child(fd));
	while (wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
