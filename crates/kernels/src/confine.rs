//! Runs the programs of a kernel's own build without network, and with the home directory and the cache read-only.
//! These programs do what the source's Makefiles say. If the host does not allow the confinement, they run like any
//! program of the user.
//!
//! This protects against mistakes and simple malice. It is not a jail: the programs can read everything that the user
//! can read, and write elsewhere what the user can write.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::tool::{Tool, is_installed};

/// A script. It makes each directory before the first `:` a mount of its own, makes those before the second `:`
/// read-only with everything below that is not such a mount, and runs the other words without the right to undo this.
const MOUNT: &str = "while [ \"$1\" != : ]; do mount --bind \"$1\" \"$1\" || exit; shift; done; shift; \
     while [ \"$1\" != : ]; do mount --rbind \"$1\" \"$1\" && \
     mount -o remount,bind,ro,nosuid,nodev \"$1\" || exit; shift; done; shift; \
     exec setpriv --no-new-privs --bounding-set=-sys_admin,-sys_ptrace,-sys_module -- \"$@\"";
/// A script. It succeeds if the directories before the first `:` can be written to, and those before the second `:`
/// cannot.
const PROBE: &str = "while [ \"$1\" != : ]; do test -w \"$1\" || exit; shift; done; shift; \
     while [ \"$1\" != : ]; do test ! -w \"$1\" || exit; shift; done";
/// The last options of bwrap(1). Without dropping the capability, programs of root could undo the mounts.
const BWRAP: [&str; 5] =
    ["--unshare-net", "--die-with-parent", "--cap-drop", "CAP_SYS_ADMIN", "--"];
/// The directory in which compilers put temporary files.
const TEMPORARY: &str = "/tmp";

/// The way that works on this host. The error is why none does.
static WAY: OnceLock<Result<Way, String>> = OnceLock::new();

/// A program that confines another.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// unshare(1), as root.
    Unshare,
    /// unshare(1) with a user namespace.
    UnshareUser,
    /// bwrap(1).
    Bwrap,
}

/// The words before a command that confine it; empty if confinement does not work here. In the home directory and the
/// cache, the command can write only to the directories `writable`, which must exist. `say` gets the reason once per
/// process if confinement does not work.
pub(crate) fn words(cache: &Path, writable: &[&Path], say: &dyn Fn(&str)) -> Vec<OsString> {
    let places = Places {
        writable: writable.iter().filter_map(|path| path.canonicalize().ok()).collect(),
        read_only: read_only(env::var_os("HOME"), cache),
    };
    let mut is_first = false;
    let way = WAY.get_or_init(|| {
        is_first = true;
        places.find()
    });
    match way {
        Ok(way) => places.words(*way),
        Err(problem) if is_first => {
            say(&format!("Builds can use the network and write to the home directory: {problem}"));
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// A command that runs a program confined by [`words`].
pub(crate) fn command(tool: &Tool, words: &[OsString]) -> Command {
    let plain = tool.command();
    let Some((first, rest)) = words.split_first() else { return plain };
    let mut command = Command::new(first);
    command.args(rest).arg(tool.name).stdin(Stdio::null());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

/// The directories to make read-only. `/`, and directories in which compilers must write, are left out.
fn read_only(home: Option<OsString>, cache: &Path) -> Vec<PathBuf> {
    let places = [home.map(PathBuf::from).unwrap_or_default(), cache.to_owned()].into_iter();
    let places = places.filter_map(|path| path.canonicalize().ok());
    places.filter(|path| !Path::new(TEMPORARY).starts_with(path)).collect()
}

/// The directories that matter, as absolute paths without links.
struct Places {
    writable: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
}

impl Places {
    fn find(&self) -> Result<Way, String> {
        let mut problems = Vec::new();
        for way in [Way::Unshare, Way::UnshareUser, Way::Bwrap] {
            match self.probe(way) {
                Ok(()) => return Ok(way),
                Err(problem) => problems.push(problem),
            }
        }
        problems.dedup();
        Err(problems.join("; "))
    }

    fn words(&self, way: Way) -> Vec<OsString> {
        let unshare = |more: &[&str]| {
            let words = ["unshare", "--mount", "--net"].iter().chain(more);
            let words = words.chain(&["--", "sh", "-c", MOUNT, "sh"]).map(OsString::from);
            words.chain(self.listed()).collect()
        };
        match way {
            Way::Unshare => unshare(&[]),
            Way::UnshareUser => unshare(&["--user", "--map-root-user"]),
            Way::Bwrap => {
                let bind = |word: &'static str, path: &PathBuf| {
                    [word.into(), path.clone().into(), path.clone().into()]
                };
                let mut words: Vec<OsString> =
                    ["bwrap", "--dev-bind", "/", "/"].map(Into::into).into();
                words.extend(self.read_only.iter().flat_map(|path| bind("--ro-bind", path)));
                words.extend(self.writable.iter().flat_map(|path| bind("--bind", path)));
                words.extend(BWRAP.map(Into::into));
                words
            }
        }
    }

    /// The arguments of the scripts.
    fn listed(&self) -> impl Iterator<Item = OsString> {
        let end = || [OsString::from(":")];
        let words =
            |paths: &[PathBuf]| paths.iter().cloned().map(OsString::from).collect::<Vec<_>>();
        [words(&self.writable), end().into(), words(&self.read_only), end().into()]
            .into_iter()
            .flatten()
    }

    /// Tries whether a way works. The error is the program's message.
    fn probe(&self, way: Way) -> Result<(), String> {
        let words = self.words(way);
        let name = words[0].to_string_lossy().into_owned();
        if !is_installed(&name) {
            return Err(format!("{name} is not installed"));
        }
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["sh", "-c", PROBE, "sh"]).args(self.listed());
        let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{name}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(()),
            false => Err(said.lines().next().map_or(format!("{name} has no effect"), Into::into)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Each way that works here is tried, not only the first one.
    #[test]
    fn only_what_is_named_can_be_written_to_and_there_is_no_network() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let [home, cache, work] = ["home", "home/cache", "home/cache/work"].map(|it| root.join(it));
        fs::create_dir_all(&work).unwrap();
        let places = Places {
            writable: vec![work.clone()],
            read_only: read_only(Some(home.clone().into()), &cache),
        };
        assert_eq!(places.read_only, [home.clone(), cache.clone()]);
        let script = "cd \"$1\"; touch file cache/file cache/work/file; umount cache/work; \
                      mount -o remount,bind,rw .; touch late; cat /proc/net/dev";
        let mut tried = 0;
        for way in [Way::Unshare, Way::UnshareUser, Way::Bwrap] {
            if let Err(problem) = places.probe(way) {
                eprintln!("skipped: {way:?}, because {problem}");
                continue;
            }
            tried += 1;
            let words = places.words(way);
            let mut command = Command::new(&words[0]);
            let output = command
                .args(&words[1..])
                .args(["sh", "-c", script, "sh"])
                .arg(&home)
                .output()
                .unwrap();
            assert!(work.join("file").exists(), "{way:?}: {output:?}");
            for place in [home.join("file"), cache.join("file"), home.join("late")] {
                assert!(!place.exists(), "{way:?}: {} was made: {output:?}", place.display());
            }
            let devices = String::from_utf8(output.stdout).unwrap();
            let devices: Vec<&str> =
                devices.lines().skip(2).filter_map(|it| it.trim().split(':').next()).collect();
            assert_eq!(devices, ["lo"], "{way:?}");
            fs::remove_file(work.join("file")).unwrap();
        }
        match WAY.get_or_init(|| places.find()) {
            Ok(_) => assert!(tried > 0),
            Err(problem) => assert!(tried == 0 && !problem.is_empty(), "{problem}"),
        }
    }

    #[test]
    fn directories_above_that_of_temporary_files_stay_writable() {
        let cache = tempfile::tempdir().unwrap();
        let real = cache.path().canonicalize().unwrap();
        for home in [None, Some("/".into()), Some(TEMPORARY.into()), Some("/none".into())] {
            assert_eq!(read_only(home, cache.path()), std::slice::from_ref(&real));
        }
    }
}
