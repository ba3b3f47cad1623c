#!/usr/bin/python3
import mmap
import os
import sys
import time

lines = int(os.environ["FAULTLINE_FD"])
acknowledged = int(os.environ["FAULTLINE_ACK_FD"])


def phase(name):
    """Begins a phase; Faultline reads the kernel's counters before this returns."""
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
