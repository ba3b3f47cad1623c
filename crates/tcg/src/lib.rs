//! A QEMU plugin that counts how often each kernel instruction is executed, how many instructions each
//! process executes in user mode, accesses to the memory of each node, and optionally the kernel's call
//! paths. The guest cannot detect it. The agent executes [`flight::profile::MARK`] to cut the counts, which
//! are then written to a file. The host interprets them.
//!
//! ```text
//! FAULTLINE_PROFILE=PATH qemu-system-x86_64 -accel tcg,thread=single ... \
//!     -plugin libtcg.so[,node=0:0x0-0xc0000000]...[,switch=ADDRESS:TGID:COMM][,stacks=on]
//! ```

mod accesses;
mod arguments;
#[cfg(not(test))]
mod callbacks;
mod calls;
mod counters;
#[cfg(not(test))]
mod cpu;
#[cfg(not(test))]
mod emulator;
mod follower;
mod functions;
#[cfg(not(test))]
mod install;
mod instruction;
mod interrupts;
mod paths;
mod processes;
#[cfg(not(test))]
mod profiler;
mod recent;
mod running;
