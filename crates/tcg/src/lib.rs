//! A QEMU plugin that counts how often each kernel instruction is executed, how many instructions each
//! process executes in user mode, accesses to the memory of each node, and optionally the kernel's call
//! paths. The guest cannot detect it. The agent executes [`flight::profile::MARK`] to cut the counts, which
//! are then written to a file. The host interprets them.
//!
//! ```text
//! FAULTLINE_PROFILE=PATH qemu-system-x86_64 -accel tcg,thread=single ... \
//!     -plugin libtcg.so[,node=0:0x0-0xc0000000]...[,switch=ADDRESS:TGID:COMM][,stacks=on][,each=on][,turn=1000]
//!     [,caches=SHAPE][,transfers=HOMES[,layout=LAYOUT][,per-cpu=PLACES][,allocators=ADDRESSES][,per-cpu-allocators=ADDRESSES]]
//! ```
//!
//! It is the same for `qemu-system-aarch64`. QEMU tells the architecture of its guests.
//!
//! Only `qemu` calls QEMU and is called by it, and only `arch` depends on the guest's architecture. When QEMU
//! translates a block, `profiler` chooses the instructions at which it must be called, and sets probes there
//! ([`machine`]). At a probe it tells the [`observer`]s what happened. They count: `instructions`, `accesses`,
//! `caches`, `transfers` and `path_counts`. Tests have a made-up machine in place of QEMU.

mod accesses;
mod arch;
mod arguments;
mod caches;
mod calls;
mod follower;
mod functions;
mod instructions;
mod machine;
mod observer;
mod path_counts;
mod paths;
mod processes;
mod profiler;
// Tests are linked without QEMU, whose functions this module needs.
#[cfg(not(test))]
mod qemu;
mod recent;
mod running;
mod segments;
mod transfers;
