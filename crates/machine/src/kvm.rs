//! Determines whether guests run under KVM on this host. It is not enough that `/dev/kvm` can be opened:
//! under some outer hypervisors a guest never gets past its first instructions. Therefore a guest is booted
//! within a time limit, and the result is stored.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use model::{Accel, Bytes, CpuSet, Limits, Millis, Node, Topology};
use serde::{Deserialize, Serialize};

use crate::words::quote_file;
use crate::{EMULATOR_FILE, Emulator, Engine, Error, How, Limit, Vm, run};

/// The time limit for the start of a guest under KVM, also on a busy host.
pub const KVM_LIMIT: Millis = Millis(20_000);
/// The path of KVM's device.
pub const DEVICE: &str = "/dev/kvm";
/// The version of the format of the file with the result.
const SCHEMA: u32 = 2;

/// The inputs for testing KVM.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The QEMU to boot with.
    pub emulator: &'a Emulator,
    /// The kernel to boot.
    pub image: &'a Path,
    /// The initramfs. The boot ends when the agent has started.
    pub initramfs: &'a Path,
    /// A directory for the boot's files, which is created and removed.
    pub directory: &'a Path,
    /// The file with the result for this host kernel, QEMU and CPU.
    pub answers: &'a Path,
    /// The time limit for the start of the guest, such as [`KVM_LIMIT`].
    pub limit: Millis,
}

/// The stored result.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    schema: u32,
    /// The host that the result holds for: see [`host`].
    host: String,
    /// The failure, if KVM does not work.
    fault: Option<String>,
}

impl Probe<'_> {
    /// The engine for `accel`. [`Accel::Auto`] is KVM if a guest starts under it, else emulation. In that
    /// case `say` gets a line with the reason. Fails when KVM was requested by name and does not work, or the
    /// probe's own files cannot be used.
    pub fn choose(
        &self,
        accel: Accel,
        say: &mut dyn FnMut(&str),
    ) -> Result<Engine<'static>, Error> {
        self.choose_on(Path::new(DEVICE), accel, say)
    }

    fn choose_on(
        &self,
        device: &Path,
        accel: Accel,
        say: &mut dyn FnMut(&str),
    ) -> Result<Engine<'static>, Error> {
        let why_not = match accel {
            Accel::Tcg => return Ok(Engine::Tcg),
            Accel::Auto | Accel::Kvm => match self.try_kvm(device, say) {
                Ok(()) => return Ok(Engine::Kvm),
                Err(error) if accel == Accel::Kvm => return Err(error),
                Err(error) => error,
            },
        };
        let why_not = match why_not {
            Error::NoKvm(error) => format!("no KVM on this host ({error})"),
            Error::KvmBroken { why, answers } => {
                format!("KVM exists, but {why} (remove {} to try again)", answers.display())
            }
            Error::KvmFails(how) => format!("KVM exists, but failed ({how})"),
            other => return Err(other),
        };
        say(&format!("{why_not}: using emulation (TCG)"));
        Ok(Engine::Tcg)
    }

    /// Tests whether KVM works. If it does not, the error is one of the three about KVM.
    fn try_kvm(&self, device: &Path, say: &mut dyn FnMut(&str)) -> Result<(), Error> {
        File::options().read(true).write(true).open(device).map_err(Error::NoKvm)?;
        let host = host(self.emulator);
        let fault = match self.recall(&host) {
            Some(fault) => fault,
            None => {
                let answer = Answer { schema: SCHEMA, host, fault: self.boot(say)? };
                if let Err(error) = self.remember(&answer) {
                    say(&format!("{}: {error}: KVM will be tried again", self.answers.display()));
                }
                answer.fault
            }
        };
        match fault {
            None => Ok(()),
            Some(why) => Err(Error::KvmBroken { why, answers: self.answers.to_owned() }),
        }
    }

    /// Boots under KVM. Returns the failure if the guest's kernel did not run.
    fn boot(&self, say: &mut dyn FnMut(&str)) -> Result<Option<String>, Error> {
        fs::create_dir_all(self.directory).map_err(Error::file(self.directory))?;
        let node =
            Node { cpus: CpuSet(vec![0, 1]), memory: Bytes::mib(1024), distances: Vec::new() };
        let vm = Vm {
            emulator: self.emulator,
            engine: Engine::Kvm,
            topology: &Topology { nodes: vec![node] },
            disks: &[],
            userspace: None,
            image: self.image,
            initramfs: self.initramfs,
            cmdline: "",
            directory: self.directory,
            recorder: Bytes::mib(64),
            limits: &Limits { boot: self.limit, run: Millis(0), shutdown: Millis(0) },
        };
        let ending = match run(&vm, &mut |_| {}) {
            Err(Error::NoMemory(words)) => return Err(Error::KvmFails(words)),
            ending => ending?,
        };
        let words = quote_file(&self.directory.join(EMULATOR_FILE)).unwrap_or_default();
        fs::remove_dir_all(self.directory).map_err(Error::file(self.directory))?;
        ending.remarks.iter().for_each(|remark| say(remark));
        match ending.how {
            How::TimedOut(Limit::Boot(_)) => {
                let said = if words.is_empty() { words } else { format!("; QEMU said: {words}") };
                Ok(Some(format!("the guest did not start under it within {}{said}", self.limit)))
            }
            // The messages after the first repeat it.
            How::Crashed(how) => Ok(how.split("; ").next().map(str::to_owned)),
            How::Died(how) => Err(Error::KvmFails(how)),
            // The agent started, or the kernel ran far enough to panic.
            How::TimedOut(_) | How::PoweredOff | How::Reset => Ok(None),
            How::Stalled(how) => Ok(Some(how)),
            How::Halted => unreachable!("this machine is not exact"),
        }
    }

    fn recall(&self, host: &str) -> Option<Option<String>> {
        let answer: Answer = serde_json::from_slice(&fs::read(self.answers).ok()?).ok()?;
        (answer.schema == SCHEMA && answer.host == host).then_some(answer.fault)
    }

    fn remember(&self, answer: &Answer) -> io::Result<()> {
        if let Some(directory) = self.answers.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(self.answers, serde_json::to_vec_pretty(answer)?)
    }
}

/// The host's kernel, QEMU and CPU as text. The result depends on them.
fn host(emulator: &Emulator) -> String {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find(|line| line.starts_with("model name"));
    let model = model.and_then(|line| line.split_once(':')).unwrap_or_default().1;
    format!("{}; {}; {}", release.trim(), emulator.version(), model.trim())
}

#[cfg(test)]
mod tests {
    use flight::Event;
    use flight::event::Hello;

    use super::*;
    use crate::process::testing::script;
    use crate::run::testing::{HANG, LONG, SHORT, recording};

    /// Calls [`Probe::choose`] with this script as QEMU and a short time limit.
    fn choose(
        directory: &Path,
        body: &str,
        accel: Accel,
    ) -> (Result<Engine<'static>, Error>, Vec<String>) {
        choose_within(SHORT, directory, body, accel)
    }

    /// Calls [`Probe::choose`] with this script as QEMU, on a device that can be opened.
    fn choose_within(
        limit: Millis,
        directory: &Path,
        body: &str,
        accel: Accel,
    ) -> (Result<Engine<'static>, Error>, Vec<String>) {
        let device = directory.join("kvm");
        File::create(&device).unwrap();
        let probe = Probe {
            emulator: &Emulator::unchecked(&script(directory, body), 10),
            image: Path::new("vmlinux"),
            initramfs: Path::new("initramfs"),
            directory: &directory.join("probe"),
            answers: &directory.join("cache/kvm.json"),
            limit,
        };
        let mut said = Vec::new();
        let engine = probe.choose_on(&device, accel, &mut |line| said.push(line.to_owned()));
        (engine, said)
    }

    #[test]
    fn a_hanging_guest_means_emulation_and_is_stored() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let (engine, said) = choose(directory, HANG, Accel::Auto);
        assert_eq!(engine.unwrap(), Engine::Tcg);
        assert!(said[0].contains("did not start under it within 300ms"), "{said:?}");
        assert_eq!(said.len(), 1);
        assert!(!directory.join("probe").exists());
        // The result is stored. Otherwise this script would fail.
        let (engine, again) = choose(directory, "exit 1", Accel::Auto);
        assert_eq!((engine.unwrap(), again), (Engine::Tcg, said));
        let (engine, _) = choose(directory, "exit 1", Accel::Kvm);
        assert!(matches!(engine, Err(Error::KvmBroken { .. })));
    }

    #[test]
    fn the_emulators_words_are_quoted_and_bounded() {
        let directory = tempfile::tempdir().unwrap();
        let body = format!("echo 'warning: host lacks x2apic' >&2; {HANG}");
        let (engine, said) = choose(directory.path(), &body, Accel::Auto);
        assert_eq!(engine.unwrap(), Engine::Tcg);
        let told = "within 300ms; QEMU said: warning: host lacks x2apic (remove ";
        assert!(said[0].contains(told), "{said:?}");
        let directory = tempfile::tempdir().unwrap();
        let body = "echo first >&2; exec yes >&2";
        let (engine, _) = choose_within(LONG, directory.path(), body, Accel::Kvm);
        let error = engine.unwrap_err().to_string();
        let told =
            "the guest did not start under KVM: QEMU wrote more than 16M of messages: first; y;";
        assert!(error.starts_with(told) && error.len() < 2000, "{error}");
    }

    #[test]
    fn a_crash_means_emulation_and_is_stored() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let body = "echo 'failed to set MSR 0x10a' >&2; echo 'Assertion failed' >&2; kill -ABRT $$";
        let (engine, said) = choose(directory, body, Accel::Auto);
        assert_eq!(engine.unwrap(), Engine::Tcg);
        assert!(said[0].contains("SIGABRT"), "{said:?}");
        assert!(said[0].contains("failed to set MSR 0x10a (remove "), "{said:?}");
        let (engine, again) = choose(directory, "exit 1", Accel::Auto);
        assert_eq!((engine.unwrap(), again), (Engine::Tcg, said));
    }

    #[test]
    fn a_guest_that_starts_means_kvm() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let frames = recording(directory, &[Event::Hello(Hello::default())]);
        let body = format!("{frames}\n{HANG}");
        let (engine, said) = choose_within(LONG, directory, &body, Accel::Auto);
        assert_eq!((engine.unwrap(), said), (Engine::Kvm, Vec::new()));
        let (engine, said) = choose(directory, "exit 1", Accel::Kvm);
        assert_eq!((engine.unwrap(), said), (Engine::Kvm, Vec::new()));
    }

    #[test]
    fn a_failing_emulator_is_not_stored() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let body = "echo 'failed to initialize kvm' >&2; exit 1";
        let (engine, said) = choose(directory, body, Accel::Auto);
        assert_eq!(engine.unwrap(), Engine::Tcg);
        assert!(said[0].contains("failed to initialize kvm"), "{said:?}");
        assert!(!directory.join("cache/kvm.json").exists());
        let (engine, _) = choose(directory, body, Accel::Kvm);
        assert!(matches!(engine, Err(Error::KvmFails(_))));
    }

    #[test]
    fn without_the_device_there_is_no_kvm() {
        let emulator = Emulator::unchecked(Path::new("/nonexistent"), 10);
        let nowhere = Path::new("/nonexistent");
        let probe = Probe {
            emulator: &emulator,
            image: nowhere,
            initramfs: nowhere,
            directory: nowhere,
            answers: nowhere,
            limit: KVM_LIMIT,
        };
        let mut said = Vec::new();
        let mut say = |line: &str| said.push(line.to_owned());
        assert_eq!(probe.choose_on(nowhere, Accel::Auto, &mut say).unwrap(), Engine::Tcg);
        assert_eq!(probe.choose_on(nowhere, Accel::Tcg, &mut say).unwrap(), Engine::Tcg);
        let error = probe.choose_on(nowhere, Accel::Kvm, &mut say).unwrap_err();
        assert!(matches!(error, Error::NoKvm(_)));
        assert_eq!(said.len(), 1);
    }
}
