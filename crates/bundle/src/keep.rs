//! A taken program as a workload: its archive in the cache, and its manifest.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use kernels::digest;
use model::{Better, Manifest, Mean, Metric, Parameter};

use crate::{BundleError, ProgramBundle, in_file};

/// Archives that were not used for so long are removed.
const OLD: Duration = Duration::from_secs(30 * 24 * 3600);
/// The longest name of a workload, in bytes.
const LONGEST_NAME: usize = 60;

impl ProgramBundle {
    /// Writes the archive into the cache whose directory is `root`, and removes old ones. Returns its path.
    /// Fails when the cache cannot be written.
    pub fn keep(&self, root: &Path) -> Result<PathBuf, BundleError> {
        let home = root.join("programs");
        fs::create_dir_all(&home).map_err(in_file(&home))?;
        let path = home.join(format!("{}.cpio", &digest(&self.archive)[..16]));
        let mut file = tempfile::NamedTempFile::new_in(&home).map_err(in_file(&home))?;
        file.write_all(&self.archive).map_err(in_file(&path))?;
        file.persist(&path).map_err(|error| in_file(&path)(error.error))?;
        for entry in fs::read_dir(&home).map_err(in_file(&home))?.flatten() {
            let modified = entry.metadata().and_then(|it| it.modified());
            let age = modified.map(|it| SystemTime::now().duration_since(it).unwrap_or_default());
            if age.is_ok_and(|age| age > OLD) {
                // Another run may have removed it.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(path)
    }

    /// The manifest of the program as a workload.
    pub fn manifest(&self) -> Manifest {
        let is_program = |word: &str| {
            let found = fs::metadata(Path::new(&self.directory).join(word));
            found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
        };
        let program = named_for(&self.command, is_program);
        let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
        let plain = |letter: char| match letter {
            letter if letter.is_control() || letter == ',' => '-',
            letter => letter,
        };
        let mut name: String = name.chars().map(plain).collect();
        while name.len() > LONGEST_NAME {
            name.pop();
        }
        let mut manifest = Manifest {
            name,
            description: "A program of the user's, measured by the agent".to_owned(),
            preparation: vec![String::new()],
            plain: true,
            directory: self.directory.clone(),
            source: self.source.clone(),
            compiler: self.compiler.clone(),
            metrics: metrics(),
            ..Manifest::default()
        };
        for (number, word) in self.command.iter().enumerate() {
            // Braces in arguments are not placeholders.
            manifest.command.push(match word.contains('{') {
                true => format!("{{argument-{number}}}"),
                false => word.clone(),
            });
            if word.contains('{') {
                let parameter = Parameter::from(word.as_str());
                manifest.parameters.insert(format!("argument-{number}"), parameter);
            }
        }
        manifest
    }
}

/// Programs that start the one among their arguments, which the workload is named for.
const STARTERS: [&str; 14] = [
    "setarch", "taskset", "numactl", "nice", "ionice", "chrt", "env", "prlimit", "timeout",
    "stdbuf", "sh", "bash", "dash", "python3",
];

/// The word of a command that the workload is named for: the program, or the first argument that is a path of a program
/// if the program only starts another one.
fn named_for(command: &[String], is_program: impl Fn(&str) -> bool) -> &str {
    let Some((program, arguments)) = command.split_first() else { return "" };
    let name = Path::new(program).file_name().and_then(|it| it.to_str()).unwrap_or_default();
    let started = arguments.iter().find(|it| it.contains('/') && is_program(it));
    started.filter(|_| STARTERS.contains(&name)).unwrap_or(program)
}

/// What the agent reports of a plain program.
fn metrics() -> Vec<Metric> {
    let metric = |name: &str, unit: &str, better, mean| Metric {
        name: name.to_owned(),
        unit: unit.to_owned(),
        better,
        mean,
        // The program's own code does not change, and files are in memory.
        primary: better.is_some() && !["user", "major-faults"].contains(&name),
        ..Metric::default()
    };
    let lower = Some(Better::Lower);
    vec![
        metric("wall", "s", lower, Mean::Amean),
        metric("user", "s", lower, Mean::Amean),
        metric("system", "s", lower, Mean::Amean),
        metric("minor-faults", "faults", lower, Mean::Amean),
        metric("major-faults", "faults", lower, Mean::Amean),
        metric("max-resident", "KiB", lower, Mean::Amean),
        // A harmonic mean does not exist if a rate is 0.
        metric("rate", "", Some(Better::Higher), Mean::Amean),
        metric("time", "", lower, Mean::Amean),
        metric("figure", "", None, Mean::Amean),
    ]
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::{Accel, Bytes, Limits, Machine, Topology};

    use super::*;
    use plan::workloads;

    fn bundled(command: &[&str]) -> ProgramBundle {
        ProgramBundle {
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            directory: "/home/me".into(),
            archive: b"070701".to_vec(),
            files: 1,
            source: String::new(),
            compiler: String::new(),
        }
    }

    #[test]
    fn arguments_reach_the_guest_as_they_are() {
        let command = ["/home/me/a,b", "{cpus}", "{", "x{program}y", ""];
        let manifest = bundled(&command).manifest();
        assert_eq!((manifest.name.as_str(), manifest.plain), ("a-b", true));
        let topology = Topology::even(1, Bytes::mib(512), 1).unwrap();
        let machine =
            Machine { accel: Accel::Tcg, limits: Limits::default(), ..Machine::new(topology) };
        assert_eq!(workloads::command(&manifest, &machine, None).unwrap(), command);
        let long = bundled(&[&"\u{e9}".repeat(200)]).manifest();
        assert_eq!(long.name.len(), LONGEST_NAME);
    }

    #[test]
    fn archives_are_kept_until_they_are_old() {
        let root = tempfile::tempdir().unwrap();
        let path = bundled(&["x"]).keep(root.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"070701");
        let age = |path: &Path, age: Duration| {
            let file = fs::File::options().write(true).open(path).unwrap();
            file.set_modified(SystemTime::now() - age).unwrap();
        };
        let others = ["new.cpio", "old.cpio"].map(|name| path.with_file_name(name));
        others.iter().for_each(|other| fs::write(other, "").unwrap());
        age(&others[1], OLD + Duration::from_secs(60));
        age(&path, OLD + Duration::from_secs(60));
        // What is used again is not old.
        assert_eq!(bundled(&["x"]).keep(root.path()).unwrap(), path);
        assert!(path.exists() && others[0].exists() && !others[1].exists());
    }

    #[test]
    fn a_workload_is_named_for_the_program_that_is_started() {
        let programs = ["./cow", "/x/fork"];
        let of = |command: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            named_for(&words, |word| programs.contains(&word)).to_owned()
        };
        assert_eq!(of("/usr/bin/setarch -R ./cow 8"), "./cow");
        assert_eq!(of("/usr/bin/numactl --file=/a -m 0 /x/fork"), "/x/fork");
        assert_eq!(of("/usr/bin/env PATH=/x/bin ./cow"), "./cow");
        assert_eq!(of("/usr/bin/timeout 9 prog /data/file"), "/usr/bin/timeout");
        assert_eq!(of("/bin/sh -c true>/dev/null"), "/bin/sh");
        assert_eq!(of("./cow /x/fork"), "./cow");
    }
}
