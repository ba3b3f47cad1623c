#!/usr/bin/python3
import mmap
import os
import sys
import time

# Without Faultline the metrics go to standard output, and phases have no effect.
lines = int(os.environ.get("FAULTLINE_FD", 1))
acknowledged = int(os.environ.get("FAULTLINE_ACK_FD", -1))


def phase(name):
    """Begins a phase; Faultline reads the kernel's counters before this returns."""
    if acknowledged >= 0:
        os.write(lines, f"phase {name}\n".encode())
        os.read(acknowledged, 1)


size = int(sys.argv[1] if len(sys.argv) > 1 else 64) << 20
phase("map")
memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
phase("touch")
begun = time.monotonic()
for place in range(0, size, 4096):
    memory[place] = 1
os.write(lines, f"sample Elapsed {time.monotonic() - begun:.9f}\n".encode())
phase("")
