//! Mounts, told apart by their numbers (proc_pid_mountinfo(5)).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{UnmountFlags, unmount};

/// File systems whose files are in memory.
const IN_MEMORY: [&str; 3] = ["tmpfs", "ramfs", DEVICES];
/// The file system of devices, whose directories and devices the kernel makes.
const DEVICES: &str = "devtmpfs";

/// All mounts, in the order of `/proc/self/mountinfo`.
#[derive(Debug)]
pub struct Mounts(Vec<Mount>);

#[derive(Debug)]
struct Mount {
    number: u64,
    place: PathBuf,
    kind: String,
}

impl Mounts {
    /// Reads the mounts that the agent sees.
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default())
    }

    pub fn parse(text: &str) -> Self {
        let mount = |line: &str| {
            let (own, of_system) = line.split_once(" - ")?;
            let mut own = own.split(' ');
            Some(Mount {
                number: own.next()?.parse().ok()?,
                place: plain(own.nth(3)?).into(),
                kind: of_system.split(' ').next()?.to_owned(),
            })
        };
        Self(text.lines().filter_map(mount).collect())
    }

    /// Where file systems in memory are mounted.
    pub fn in_memory(&self) -> Vec<PathBuf> {
        let mounts = self.0.iter().filter(|mount| IN_MEMORY.contains(&&*mount.kind));
        mounts.map(|mount| mount.place.clone()).collect()
    }

    /// Whether the file system of devices is mounted at `place`.
    pub fn is_of_devices(&self, place: &Path) -> bool {
        self.0.iter().any(|mount| mount.place == place && mount.kind == DEVICES)
    }

    /// Unmounts what was mounted since. Returns what cannot be unmounted; from then on it counts as part of the
    /// state.
    pub fn restore(&mut self) -> Vec<String> {
        for mount in Self::read().since(self).rev() {
            // This also removes the mounts below.
            let _ = unmount(&mount.place, UnmountFlags::DETACH);
        }
        let now = Self::read();
        let place = |mount: &Mount| mount.place.display().to_string();
        let more = now.since(self).map(|mount| format!("a mount on {}", place(mount)));
        let fewer = self.since(&now).map(|mount| format!("nothing mounted on {}", place(mount)));
        let left = more.chain(fewer).collect();
        *self = now;
        left
    }

    /// The mounts that `before` lacks.
    fn since<'a>(&'a self, before: &Self) -> impl DoubleEndedIterator<Item = &'a Mount> + use<'a> {
        let known: BTreeSet<u64> = before.0.iter().map(|mount| mount.number).collect();
        self.0.iter().filter(move |mount| !known.contains(&mount.number))
    }
}

/// Decodes the escapes `\ooo` that stand for blanks and line ends in a path.
fn plain(escaped: &str) -> String {
    let mut parts = escaped.split('\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => {
                path.push(code.into());
                path += &part[3..];
            }
            None => path = path + "\\" + part,
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_by_their_numbers() {
        let before = Mounts::parse(
            "21 1 0:18 / / rw,relatime shared:1 - tmpfs tmpfs rw,mode=755\n\
             22 21 0:5 / /dev rw - devtmpfs devtmpfs rw\n23 21 0:6 / /proc rw - proc proc rw\n",
        );
        assert_eq!(before.in_memory(), [Path::new("/"), Path::new("/dev")]);
        assert!(before.is_of_devices(Path::new("/dev")) && !before.is_of_devices(Path::new("/")));
        let now = Mounts::parse(
            "21 1 0:18 / / rw - tmpfs tmpfs rw\n22 21 0:5 / /dev rw - devtmpfs devtmpfs rw\n\
             40 21 0:30 / /tmp/a\\040b\\134 rw - tmpfs x\\040y rw\nnot a mount\n",
        );
        let places = |mounts: &Mounts, before: &Mounts| {
            mounts.since(before).map(|it| it.place.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(places(&now, &before), ["/tmp/a b\\"]);
        assert_eq!(places(&before, &now), ["/proc"]);
    }
}
