/* Each phase reads one file of the kernel's counters several times. Build: cc -O2 -static -o files files.c */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 20

/* Begins a phase; Faultline reads the kernel's counters before the call returns. */
static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	if (read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) != 1)
		exit(1);
}

static void fetch(const char *path)
{
	static char bytes[1 << 16];
	int file = open(path, O_RDONLY);

	if (file < 0)
		exit(1);
	while (read(file, bytes, sizeof(bytes)) > 0)
		;
	close(file);
}

int main(void)
{
	static const struct {
		const char *name, *path;
	} files[] = {
		{ "meminfo", "/proc/meminfo" },
		{ "vmstat", "/proc/vmstat" },
		{ "zoneinfo", "/proc/zoneinfo" },
		{ "buddyinfo", "/proc/buddyinfo" },
		{ "stat", "/proc/stat" },
		{ "slabinfo", "/proc/slabinfo" },
		{ "smaps", "/proc/self/smaps" },
		{ "status", "/proc/self/status" },
		{ "node-meminfo", "/sys/devices/system/node/node0/meminfo" },
		{ "node-vmstat", "/sys/devices/system/node/node0/vmstat" },
		{ "node-numastat", "/sys/devices/system/node/node0/numastat" },
	};

	for (size_t file = 0; file < sizeof(files) / sizeof(files[0]); file++) {
		phase(files[file].name);
		for (int round = 0; round < ROUNDS; round++)
			fetch(files[file].path);
	}
	phase("");
	return 0;
}
