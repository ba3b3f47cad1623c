//! A plugin for QEMU that counts, while a machine runs, how often each kernel instruction is
//! executed, how many instructions each process executes in user mode, and which node's memory is
//! accessed; if wanted, also the path of calls by which the kernel came to each. The guest can't
//! tell that it is counted. Counts are cut where the agent executes [`flight::profile::MARK`], and
//! written to a file at once. What they mean is left to the host.
//!
//! ```text
//! qemu-system-x86_64 -accel tcg,thread=single ... \
//!     -plugin libtcg.so,out=PROFILE[,node=0:0x0-0xc0000000]...[,switch=ADDRESS:TGID:COMM][,stacks=on]
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
