//! System calls without a safe wrapper.

#![expect(unsafe_code, reason = "these calls have no safe wrapper in rustix or std")]

use std::ffi::{CStr, CString, c_int, c_long, c_ulong, c_void};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::ptr;
use std::sync::atomic::AtomicU64;

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuTime {
    /// Time spent in user mode.
    pub user: f64,
    /// Time spent in the kernel.
    pub system: f64,
}

impl CpuTime {
    /// The time spent since `before`.
    pub fn since(self, before: Self) -> Self {
        Self { user: self.user - before.user, system: self.system - before.system }
    }

    /// User and system time together.
    pub fn total(self) -> f64 {
        self.user + self.system
    }

    fn of(usage: &libc::rusage) -> Self {
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        Self { user: seconds(usage.ru_utime), system: seconds(usage.ru_stime) }
    }
}

/// Resources that processes used (getrusage(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// CPU time in user mode and in the kernel.
    pub time: CpuTime,
    /// Page faults without I/O.
    pub minor_faults: i64,
    /// Page faults with I/O.
    pub major_faults: i64,
    /// The largest resident set of one of them, in KiB.
    pub resident: i64,
}

impl Used {
    /// The resources used since `before`. The largest resident set is not limited to that time.
    pub fn since(self, before: Self) -> Self {
        Self {
            time: self.time.since(before.time),
            minor_faults: self.minor_faults - before.minor_faults,
            major_faults: self.major_faults - before.major_faults,
            resident: self.resident,
        }
    }
}

/// The resources used by all children that ended and were waited for, and by their children (getrusage(2),
/// `RUSAGE_CHILDREN`). For PID 1 this includes orphans.
pub fn used_by_children() -> Used {
    let usage = usage_of(libc::RUSAGE_CHILDREN);
    Used {
        time: CpuTime::of(&usage),
        minor_faults: usage.ru_minflt,
        major_faults: usage.ru_majflt,
        resident: usage.ru_maxrss,
    }
}

/// The CPU time of [`used_by_children`].
pub fn children_time() -> CpuTime {
    used_by_children().time
}

/// CPU time of this process with all its threads (getrusage(2), `RUSAGE_SELF`).
pub fn own_time() -> CpuTime {
    CpuTime::of(&usage_of(libc::RUSAGE_SELF))
}

fn usage_of(who: c_int) -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole rusage. Zeros are a valid one, should the call fail,
    // which with these arguments it can't.
    unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    }
}

/// Waits for a child. Returns its exit status, and the CPU time of it and of its own children that it waited for
/// (wait4(2)). Fails when it is not a child, or was already waited for.
pub fn wait_with_time(child: &Child) -> io::Result<(ExitStatus, CpuTime)> {
    let pid = child.id().cast_signed();
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: the pointers are to a whole int and a whole rusage.
        let waited = unsafe { libc::wait4(pid, &mut status, 0, usage.as_mut_ptr()) };
        match check(waited.into()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    }
    // SAFETY: the kernel has written it.
    let usage = unsafe { usage.assume_init() };
    Ok((ExitStatus::from_raw(status), CpuTime::of(&usage)))
}

/// Makes a program start with `root` as its root and working directory (chroot(2)). Fails when the path
/// contains a zero byte.
pub fn chroot(command: &mut Command, root: &Path) -> io::Result<()> {
    let root = CString::new(root.as_os_str().as_bytes())?;
    let enter = move || {
        rustix::process::chroot(&*root)?;
        Ok(rustix::process::chdir(c"/")?)
    };
    // SAFETY: between fork and exec there are two system calls, and nothing is allocated.
    unsafe { command.pre_exec(enter) };
    Ok(())
}

/// The number of nodes in masks, the most that QEMU supports.
const NODES: usize = 128;

/// Binds the memory that this thread is the first to touch to `node`, or resets the default policy if that is `None`
/// (set_mempolicy(2), `MPOL_BIND` and `MPOL_DEFAULT`). Fails when the kernel has no such node or no NUMA.
pub fn bind_memory(node: Option<usize>) -> io::Result<()> {
    const WORD: usize = c_ulong::BITS as usize;
    let mut mask = [0 as c_ulong; NODES / WORD];
    let mode = match node {
        Some(node) if node >= NODES => return Err(io::ErrorKind::InvalidInput.into()),
        Some(node) => {
            mask[node / WORD] |= 1 << (node % WORD);
            libc::MPOL_BIND
        }
        None => libc::MPOL_DEFAULT,
    };
    // The kernel subtracts one from the number of bits (mm/mempolicy.c, get_nodes).
    let (mask, bits) = match node {
        Some(_) => (mask.as_ptr(), NODES as c_ulong + 1),
        None => (ptr::null(), 0),
    };
    // SAFETY: the mask holds as many bits as the kernel is told it does, or there is none.
    check(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) })
}

/// The node of the page of each word: its number, or a negative errno for a page that is not present
/// (move_pages(2) without nodes, which moves nothing and does not change page tables). Fails when the kernel
/// has no such call.
pub fn nodes_of<'a>(words: impl IntoIterator<Item = &'a AtomicU64>) -> io::Result<Vec<c_int>> {
    let pages: Vec<*const c_void> =
        words.into_iter().map(|word| ptr::from_ref(word).cast()).collect();
    let mut status: Vec<c_int> = vec![-libc::ENOENT; pages.len()];
    // SAFETY: both arrays have `pages.len()` elements. The pages are only looked up, by address.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_pages,
            0,
            pages.len() as c_ulong,
            pages.as_ptr(),
            ptr::null::<c_int>(),
            status.as_mut_ptr(),
            0,
        )
    };
    check(result).map(|()| status)
}

/// Gives this thread the highest real-time priority: it runs until it sleeps (sched(7), `SCHED_FIFO`). Fails
/// when this process is not permitted to.
pub fn run_first() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 99 };
    // SAFETY: the pointer is to a whole sched_param; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &parameters) }.into())
}

/// Calls on loop devices (loop(4), `include/uapi/linux/loop.h`).
const LOOP_SET_FD: c_ulong = 0x4c00;
const LOOP_CLR_FD: c_ulong = 0x4c01;
const LOOP_CTL_GET_FREE: c_ulong = 0x4c82;

/// The number of an unused loop device; the kernel creates one if needed. `control` is `/dev/loop-control`. Fails
/// when the kernel has no unused device.
pub fn free_loop_device(control: &File) -> io::Result<c_int> {
    // SAFETY: this call takes no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
    check(number.into()).map(|()| number)
}

/// Attaches a file to a loop device. Fails when the device is in use, or the file cannot back it.
pub fn attach_loop_device(device: &File, file: &File) -> io::Result<()> {
    // SAFETY: the argument is the number of a descriptor, which is open.
    let result = unsafe {
        libc::ioctl(
            device.as_raw_fd(),
            LOOP_SET_FD as _,
            c_ulong::from(file.as_raw_fd().cast_unsigned()),
        )
    };
    check(result.into())
}

/// Detaches the file of a loop device when it is no longer used. Fails when no file is attached.
pub fn detach_loop_device(device: &File) -> io::Result<()> {
    // SAFETY: this call takes no argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD as _) }.into())
}

/// Enables a swap file or device (swapon(2)). Fails when it is not a swap space, or the kernel cannot use it.
pub fn swap_on(path: &CStr) -> io::Result<()> {
    // SAFETY: the pointer is to a string that ends with a zero.
    check(unsafe { libc::swapon(path.as_ptr(), 0) }.into())
}

/// Disables a swap file or device, which pages its contents in (swapoff(2)). Fails when it was not in use, or
/// memory is too small for the contents.
pub fn swap_off(path: &CStr) -> io::Result<()> {
    // SAFETY: the pointer is to a string that ends with a zero.
    check(unsafe { libc::swapoff(path.as_ptr()) }.into())
}

/// Removes System V shared memory when no process has it attached any more (shmctl(2), `IPC_RMID`). Fails when there is
/// none with this number.
pub fn remove_shared_memory(id: c_int) -> io::Result<()> {
    // SAFETY: this command takes no buffer.
    check(unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) }.into())
}

/// Removes a set of System V semaphores (semctl(2), `IPC_RMID`). Fails when there is none with this number.
pub fn remove_semaphores(id: c_int) -> io::Result<()> {
    // SAFETY: this command takes no further argument.
    check(unsafe { libc::semctl(id, 0, libc::IPC_RMID) }.into())
}

/// Removes a System V message queue (msgctl(2), `IPC_RMID`). Fails when there is none with this number.
pub fn remove_messages(id: c_int) -> io::Result<()> {
    // SAFETY: this command takes no buffer.
    check(unsafe { libc::msgctl(id, libc::IPC_RMID, ptr::null_mut()) }.into())
}

fn check(result: c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs this program again with the same arguments and without random addresses (personality(2),
/// `ADDR_NO_RANDOMIZE`), unless it has none already. Programs that it starts have none either. Fails when the kernel
/// rejects it.
pub fn fix_addresses() -> io::Result<()> {
    /// Asks for the personality without a change.
    const ASK: c_ulong = 0xffff_ffff;
    // SAFETY: both calls only read or set flags of this process.
    let now = unsafe { libc::personality(ASK) };
    if now < 0 {
        return Err(io::Error::last_os_error());
    }
    if now & libc::ADDR_NO_RANDOMIZE != 0 {
        return Ok(());
    }
    // SAFETY: as above.
    if unsafe { libc::personality((now | libc::ADDR_NO_RANDOMIZE) as c_ulong) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Err(Command::new("/proc/self/exe").args(std::env::args_os().skip(1)).exec())
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;
    use crate::words::Words;

    #[test]
    fn children_are_counted_when_they_have_ended() {
        let before = children_time();
        let status = Command::new("sh")
            .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
            .status();
        assert!(status.unwrap().success());
        assert!(children_time().since(before).total() > 0.0);
    }

    #[test]
    fn pages_have_nodes_once_they_are_touched() {
        let memory = Words::anonymous(2 * 4096).unwrap();
        memory[0].store(1, Relaxed);
        let Ok(nodes) = nodes_of([&memory[0], &memory[512]]) else {
            return; // A kernel without page migration.
        };
        assert!(nodes[0] >= 0 && nodes[1] < 0, "{nodes:?}");
    }

    #[test]
    fn a_program_runs_again_with_fixed_addresses() {
        const MARK: &str = "FAULTLINE_TEST_ADDRESSES";
        if std::env::var_os(MARK).is_some() {
            fix_addresses().unwrap();
            println!("personality {}", std::fs::read_to_string("/proc/self/personality").unwrap());
            return;
        }
        let own = "sys::tests::a_program_runs_again_with_fixed_addresses";
        let test = std::env::current_exe().unwrap();
        let output =
            Command::new(test).args(["--exact", own, "--nocapture"]).env(MARK, "1").output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap();
        let personality = said.split("personality ").nth(1).and_then(|it| it.get(..8)).unwrap();
        let flags = u32::from_str_radix(personality, 16).unwrap();
        assert_ne!(flags & libc::ADDR_NO_RANDOMIZE as u32, 0, "{said}");
    }
}
