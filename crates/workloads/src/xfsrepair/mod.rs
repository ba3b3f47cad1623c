//! A huge, sparse file system. `fs_mark` fills an image with small files, then `xfs_repair` checks it. The buffer
//! cache of `xfs_repair` is a hash table of a given size in memory. This is the test of Dave Chinner's report of 2015
//! on NUMA balancing.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | the image is made and mounted |
//! | `fsmark` | files are created, each thread in directories of its own |
//! | `xfsrepair` | from cold caches the image is repaired |
//! | `check` | `xfs_repair -n` finds nothing more, and mounted again the image has its inodes |
//!
//! `fs_mark` and `xfs_repair` are those of the distribution.

mod cache;
mod fsmark;
mod image;

use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::MountFlags;

use super::program::{Output, Program, ProgramError};
use super::reporter::Reporter;
use super::{Given, Result, While, Workload, WorkloadError, files, refused, value_of, within};
use cache::Cache;
use image::Mounted;

const GIB: u64 = 1 << 30;
/// The number of buckets in that report: the buffer cache of a machine with 16 GiB.
const BUCKETS: u64 = 101_073;

pub struct Options {
    directory: PathBuf,
    /// The size of the image in bytes.
    size: u64,
    /// The size of its log, in the format of `mkfs.xfs`.
    log: String,
    threads: u64,
    /// The number of files of a thread in a round.
    files: u64,
    /// How many of these are in one subdirectory.
    spread: u64,
    rounds: u64,
    bytes: u64,
    /// The options `-o` of `xfs_repair`.
    suboptions: Vec<String>,
    /// The number of allocation groups to damage.
    damage: u32,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let (memory, cpus) = (given.value::<u64>("memory")?, given.value("cpus")?);
        let threads = given.optional("threads")?;
        let threads = threads.map_or(Ok(cpus), |it| within("threads", &it, 1, 1024))?;
        let rounds = given.within("rounds", 1, 10_000)?;
        let all = memory as f64 / f64::from(1 << 20) * given.above_zero("files")?;
        let log = given.text("log")?;
        size("log", &log)?;
        let mut suboptions = Vec::new();
        if let Some(bhash) = given.optional("bhash")? {
            let buckets = match &*bhash {
                // Below its minimum, the program would use its own default.
                "memory" => {
                    (u128::from(BUCKETS) * u128::from(memory) / u128::from(16 * GIB)).max(64)
                }
                // xfs_repair accepts any text without a message.
                number => value_of::<u64>("bhash", number)?.into(),
            };
            suboptions.push(format!("bhash={buckets}"));
        }
        if let Some(stride) = given.optional("ag-stride")? {
            if stride.parse::<i64>().is_err() {
                return Err(refused("ag-stride", stride, "a whole number, such as -1"));
            }
            suboptions.push(format!("ag_stride={stride}"));
        }
        Ok(Self {
            directory: given.text("directory")?.into(),
            size: size("size", &given.text("size")?)?,
            log,
            threads,
            files: ((all / (threads * rounds) as f64).round() as u64).max(1),
            spread: given.within("spread", 1, u64::MAX)?,
            rounds,
            bytes: given.value("bytes")?,
            suboptions,
            damage: given.value("damage")?,
        })
    }

    /// Fills the image and repairs it.
    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let [image, place] = ["image", "files"].map(|name| self.directory.join(name));
        reporter.phase("create")?;
        image::make(&image, self.size, &self.log)?;
        let mounted = Mounted::new(&image, &place, MountFlags::empty())?;
        let empty = mounted.inodes()?;

        reporter.phase("fsmark")?;
        fill(self, &place, reporter)?;
        reporter.phase("")?;
        let full = mounted.inodes()?;
        if full < empty + self.total() {
            return Err(WorkloadError::Child(format!(
                "fs_mark reported {} files, but {} more inodes are in use",
                self.total(),
                full.saturating_sub(empty)
            )));
        }
        mounted.unmount()?;
        if self.damage > 0 {
            let groups = image::damage(&image, self.damage).while_("damaging the image")?;
            match look(&image).run() {
                Err(ProgramError::Failed { .. }) => {}
                Ok(_) => {
                    return Err(WorkloadError::Child(
                        "xfs_repair -n finds no damage in the damaged image".into(),
                    ));
                }
                Err(error) => return Err(error.into()),
            }
            reporter
                .note(&format!("damaged: the header of inodes in {groups} allocation groups"))?;
        }
        files::drop_caches()?;

        reporter.phase("xfsrepair")?;
        repair(self, &image, reporter)?;
        reporter.phase("check")?;
        verify(&image, &place, full)?;
        reporter.phase("")?;
        reporter.note(&format!(
            "{} files; after the repair xfs_repair -n finds no damage, and all {full} inodes exist",
            self.total()
        ))?;
        fs::remove_file(&image).while_(image.display().to_string())
    }
}

impl Options {
    /// The number of files of all threads in all rounds.
    fn total(&self) -> u64 {
        self.files * self.rounds * self.threads
    }

    fn fs_mark(&self, place: &Path) -> Program {
        let numbers = [
            ("-D", self.files.div_ceil(self.spread)),
            ("-N", self.spread),
            ("-S", 0),
            ("-n", self.files),
            ("-s", self.bytes),
            ("-L", self.rounds),
        ];
        let numbers =
            numbers.into_iter().flat_map(|(name, value)| [name.into(), value.to_string()]);
        let directories = (0..self.threads)
            .flat_map(|thread| ["-d".into(), place.join(thread.to_string()).display().to_string()]);
        // `fs_mark` leaves a log in its working directory.
        Program::new("fs_mark").args(numbers.chain(directories)).directory(&self.directory)
    }
}

/// The bytes of a size in the format of `mkfs.xfs` (its manual): a number, optionally with the suffix s for sectors,
/// b for blocks, or k, m, g, t or p. Sectors and blocks have their default sizes.
fn size(name: &str, text: &str) -> Result<u64> {
    let number = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let shift = match &*text[number.len()..].to_ascii_lowercase() {
        "" => Some(0),
        "s" => Some(9),
        "k" => Some(10),
        "b" => Some(12),
        "m" => Some(20),
        "g" => Some(30),
        "t" => Some(40),
        "p" => Some(50),
        _ => None,
    };
    let is_whole = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    let Some(shift) = shift.filter(|_| is_whole) else {
        return Err(refused(name, text, "a whole number, alone or with s, b, k, m, g, t or p"));
    };
    let bytes = number.parse().ok().and_then(|number: u64| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| refused(name, text, "too large"))
}

/// Creates the files by `fs_mark`, and reports its rounds.
fn fill(options: &Options, place: &Path, reporter: &mut Reporter) -> Result<()> {
    let output = options.fs_mark(place).run()?;
    let rounds = fsmark::rounds(&output.text).map_err(garbage("fs_mark"))?;
    let last = rounds.last().map(|round| round.count);
    if rounds.len() as u64 != options.rounds || last != Some(options.total()) {
        let (count, wanted) = (last.unwrap_or(0), options.total());
        let problem = format!(
            "{} rounds with {count} files, not {} with {wanted}",
            rounds.len(),
            options.rounds
        );
        return Err(garbage("fs_mark")(problem).into());
    }
    report_times(&output, reporter)?;
    for round in rounds {
        reporter.sample("Files/sec", round.rate)?;
    }
    Ok(())
}

fn repair(options: &Options, image: &Path, reporter: &mut Reporter) -> Result<()> {
    let given = options.suboptions.iter().flat_map(|option| ["-o", option.as_str()]);
    // With two `-v`, `xfs_repair` reports on its cache. It prints on standard error.
    let program = Program::new("xfs_repair").args(["-v", "-v"]).args(given);
    let output = program.args([image]).together().run()?;
    let cache = cache::last_report(&output.text).map_err(garbage("xfs_repair"))?;
    report_times(&output, reporter)?;
    report(&cache, reporter)
}

fn report_times(output: &Output, reporter: &mut Reporter) -> Result<()> {
    reporter.sample("Elapsed", output.elapsed.as_secs_f64())?;
    reporter.sample("System", output.spent.system)?;
    reporter.sample("User", output.spent.user)
}

fn report(cache: &Cache, reporter: &mut Reporter) -> Result<()> {
    let figures = [
        ("CacheBuckets", Some(cache.buckets as f64)),
        ("CacheEntries", Some(cache.entries as f64)),
        ("CacheHits", Some(cache.hits as f64)),
        ("CacheMisses", Some(cache.misses as f64)),
        ("CacheHit%", cache.hit_percent()),
        ("CacheChain", Some(cache.longest() as f64)),
    ];
    for (name, value) in figures {
        if let Some(value) = value {
            reporter.sample(name, value)?;
        }
    }
    reporter.note(&cache.to_string())
}

/// A check for damage, which fails if there is any. Prefetching is off, because it would start several threads for
/// each allocation group.
fn look(image: &Path) -> Program {
    Program::new("xfs_repair").args(["-n", "-P"]).args([image]).together()
}

/// Checks that nothing is left to repair, and that nothing was lost.
fn verify(image: &Path, place: &Path, inodes: u64) -> Result<()> {
    look(image).run()?;
    let mounted = Mounted::new(image, place, MountFlags::RDONLY)?;
    let found = mounted.inodes()?;
    mounted.unmount()?;
    if found != inodes {
        return Err(WorkloadError::Child(format!(
            "{inodes} inodes were in use before the repair, but {found} after it"
        )));
    }
    Ok(())
}

fn garbage(program: &str) -> impl Fn(String) -> ProgramError {
    move |problem| ProgramError::Garbage { program: program.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("xfsrepair", &[]).unwrap();
        assert_eq!((options.size, options.threads, options.total()), (500 << 40, 4, 40_960));
        assert_eq!(options.suboptions, ["bhash=12634", "ag_stride=-1"]);
        let program = format!("{:?}", options.fs_mark(Path::new("/mnt/disk0/files")).command());
        let expected = r#""fs_mark" "-D" "256" "-N" "10" "-S" "0" "-n" "2560" "-s" "1" "-L" "4" "-d" "/mnt/disk0/files/0" "-d""#;
        assert!(program.contains(expected), "{program}");
    }

    #[test]
    fn the_report_is_its_own_proportion() {
        let memory = (16 * GIB).to_string();
        let given = [("memory", &*memory), ("threads", "8"), ("files", "1562.5"), ("rounds", "32")];
        let options: Options =
            options("xfsrepair", &[&given[..], &[("ag-stride", "")]].concat()).unwrap();
        assert_eq!((options.files, options.total()), (100_000, 25_600_000));
        assert_eq!(options.suboptions, ["bhash=101073"]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for wrong in ["1x", "99999999p", "t", "99999999999999999999", "", "64mb", "+64m", "64m,v=1"]
        {
            assert!(size("size", wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("size", "500t").unwrap(), 549_755_813_888_000);
        assert_eq!(size("size", "4096").unwrap(), 4096);
    }

    #[test]
    fn a_log_is_as_long_as_mkfs_says() {
        // mkfs.xfs 6.1 makes a log of 16384 blocks of 4096 bytes for each of these.
        for text in ["64M", "64m", "16384b", "16384B", "131072s", "65536k", "67108864"] {
            assert_eq!(options::<Options>("xfsrepair", &[("log", text)]).unwrap().log, text);
            assert_eq!(size("log", text).unwrap(), 64 << 20, "{text}");
        }
    }
}
