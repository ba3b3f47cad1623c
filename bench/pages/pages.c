/* The same bytes with pages of each size: memory is touched, forked, protected and unmapped; files are written, read and
 * mapped. Sizes are in bytes, so kernels with other pages do the same. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (64UL << 20)
#define SMALLEST_PAGE 4096
#define FORKS 10

static char piece[64 << 10];

static void check(int works, const char *what)
{
	if (!works) {
		perror(what);
		exit(1);
	}
}

static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	check(read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) == 1, "phase");
}

static void memory(void)
{
	char *start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(start != MAP_FAILED, "mmap");
	check(!madvise(start, BYTES, MADV_NOHUGEPAGE), "madvise");
	phase("fault");
	for (unsigned long at = 0; at < BYTES; at += SMALLEST_PAGE)
		((volatile char *)start)[at] = 1;
	phase("fork");
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		check(child >= 0, "fork");
		if (!child)
			_exit(0);
		check(waitpid(child, NULL, 0) == child, "waitpid");
	}
	phase("mprotect");
	check(!mprotect(start, BYTES, PROT_READ), "mprotect");
	check(!mprotect(start, BYTES, PROT_READ | PROT_WRITE), "mprotect");
	phase("munmap");
	check(!munmap(start, BYTES), "munmap");
	phase("");
}

/* Writes a file, and returns it. */
static int written(const char *type)
{
	int file;

	check(!mkdir(type, 0700) && !mount("none", type, type, 0, NULL), type);
	check(!chdir(type), type);
	file = open("file", O_RDWR | O_CREAT, 0600);
	check(file >= 0, "open");
	if (type[0] == 't')
		phase("tmpfs-write");
	for (unsigned long at = 0; at < BYTES; at += sizeof(piece))
		check(write(file, piece, sizeof(piece)) == sizeof(piece), "write");
	return file;
}

static void read_all(int file)
{
	for (unsigned long at = 0; at < BYTES; at += sizeof(piece))
		check(pread(file, piece, sizeof(piece), at) == sizeof(piece), "pread");
}

static void removed(const char *type, int file)
{
	phase("");
	check(!close(file) && !unlink("file") && !chdir("/") && !umount(type), type);
}

int main(void)
{
	int file;
	char *start;

	check(!chdir("/"), "chdir");
	memory();

	file = written("tmpfs");
	phase("tmpfs-read");
	read_all(file);
	removed("tmpfs", file);

	/* ramfs reads from the page cache as file systems on disks do. */
	file = written("ramfs");
	phase("file-read");
	read_all(file);
	phase("file-map");
	start = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, file, 0);
	check(start != MAP_FAILED, "mmap");
	for (unsigned long at = 0; at < BYTES; at += SMALLEST_PAGE)
		(void)((volatile char *)start)[at];
	check(!munmap(start, BYTES), "munmap");
	removed("ramfs", file);
	return 0;
}
