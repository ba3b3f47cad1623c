//! The parts of QEMU's machine and of the kernel's command line that depend on the guest's architecture.

mod arm64;
mod x86_64;

use std::ops::Range;

use model::Architecture;

/// The addition to the CPU, and values of QEMU's option `-global`.
pub type Timers = (&'static str, Vec<String>);

/// What an architecture must give.
#[derive(Debug)]
pub struct Platform {
    /// The name of the architecture in messages.
    pub name: &'static str,
    /// The name of QEMU for guests of this architecture.
    pub program: &'static str,
    /// The package of QEMU in Debian and Ubuntu, and in Fedora.
    pub packages: [&'static str; 2],
    /// What else installs QEMU; may be empty.
    pub install: &'static str,
    /// The value of QEMU's option `-machine`.
    pub machine: &'static str,
    /// The addition to it for exact machines; may be empty.
    pub exact_machine: &'static str,
    /// The serial port that is the console, as the kernel calls it.
    pub console: &'static str,
    /// Words for the kernel's command line under emulation; may be empty.
    pub emulated_words: &'static str,
    /// Words for the kernel's command line in exact mode, on a machine with this number of CPUs, for a variant with
    /// this command line; may be empty.
    pub exact_words: fn(u32, &str) -> String,
    /// The emulated CPU of QEMU of this major version.
    pub cpu: fn(u32) -> &'static str,
    /// The options by which exact machines have their timers, if they need any: of a machine with this number of
    /// CPUs, for a variant with this command line.
    pub timers: fn(u32, &str) -> Option<Timers>,
    /// Whether QEMU places CPUs in nodes by their sockets and cores, and not by their numbers.
    pub places_cpus: bool,
    /// The physical addresses of a memory of this size, in order.
    pub memory: fn(u64) -> Vec<Range<u64>>,
}

/// The platform of an architecture.
pub const fn platform(arch: Architecture) -> &'static Platform {
    match arch {
        Architecture::X86_64 => &x86_64::PLATFORM,
        Architecture::Arm64 => &arm64::PLATFORM,
    }
}

/// The parameter that names functions of the start which the kernel leaves out.
const LEFT_OUT: &str = "initcall_blacklist";
/// Functions of the start that no workload needs. They register random numbers by jitter, signatures and key agreement by
/// elliptic curves, and write the values of enums into the formats of trace events. Kernels ignore names that they lack.
const NEEDLESS: &str = "jent_mod_init,trace_eval_init,trace_eval_sync,ecdsa_init,ecdh_init";

/// The word by which a kernel in exact mode leaves out functions of its start. `None` if the `own` command line of the
/// variant has such a word.
fn left_out(own: &str) -> Option<String> {
    (!has_parameter(own, LEFT_OUT)).then(|| format!("{LEFT_OUT}={NEEDLESS}"))
}

/// Whether a kernel's command line has a parameter, with or without a value. As in `next_arg` (`lib/cmdline.c`) and
/// `parse_args` (`kernel/params.c`), quotes keep words together, `-` and `_` are the same, and what follows `--` is for
/// the first program.
fn has_parameter(cmdline: &str, name: &str) -> bool {
    let mut quoted = false;
    let words = cmdline.split(|letter: char| {
        quoted ^= letter == '"';
        letter.is_whitespace() && !quoted
    });
    let mut own = words.take_while(|word| *word != "--");
    own.any(|word| {
        let word = word.strip_prefix('"').unwrap_or(word);
        let word = word.split_once('=').map_or(word, |(name, _)| name);
        word.trim_end_matches('"').replace('-', "_") == name
    })
}
