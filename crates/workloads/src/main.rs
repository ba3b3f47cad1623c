//! The built-in workloads, each in a file or directory. `WORKLOAD [OPTION...]` runs one, which reports by the metric
//! protocol as a user's own program does.

mod cgroup;
mod files;
mod program;
mod random;
mod reporter;
mod setting;
mod tasks;
mod topology;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::io;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::process::ExitCode;
use std::str::FromStr;

use guest::reason;
use guest::sys::fix_addresses;

use self::reporter::Reporter;

/// Why a workload failed. The agent records the printed message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkloadError {
    /// An option has an invalid value.
    #[error(transparent)]
    Option(#[from] Refused),
    /// Another error of the command line.
    #[error("{0}")]
    Arguments(String),
    /// The machine has too few NUMA nodes.
    #[error("this machine has {nodes} NUMA node, but {program} needs 2 or more")]
    Nodes { nodes: usize, program: &'static str },
    /// The kernel lacks what the workload needs.
    #[error("{0}")]
    Unsupported(&'static str),
    /// An operation of the system failed.
    #[error("{what}: {}", reason(.error))]
    Io {
        /// The failed operation or its object.
        what: String,
        error: io::Error,
    },
    /// A process that does part of the work failed.
    #[error("{0}")]
    Child(String),
    /// A result is wrong.
    #[error("the result of {name} cannot be used: {why}")]
    Verification { name: String, why: String },
    /// A program of the distribution failed.
    #[error(transparent)]
    Program(#[from] program::ProgramError),
}

/// The result of a part of a workload.
type Result<T, E = WorkloadError> = std::result::Result<T, E>;

/// An option of a workload has an invalid value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{option} {value}: {why}")]
pub(crate) struct Refused {
    /// The name of the option.
    pub option: String,
    /// The value, or the invalid one of several.
    pub value: String,
    /// Which values are allowed.
    pub why: String,
}

impl From<lexopt::Error> for WorkloadError {
    fn from(error: lexopt::Error) -> Self {
        Self::Arguments(error.to_string())
    }
}

/// Adds the failed operation to an error.
trait While<T> {
    fn while_(self, what: impl Into<String>) -> Result<T>;
}

impl<T> While<T> for io::Result<T> {
    fn while_(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|error| WorkloadError::Io { what: what.into(), error })
    }
}

/// What a command line contains: options, each with a value, and other words.
#[derive(Default)]
struct Given {
    options: BTreeMap<String, String>,
    words: VecDeque<String>,
}

impl Given {
    fn read(mut arguments: lexopt::Parser) -> Result<Self> {
        let mut given = Self::default();
        while let Some(argument) = arguments.next()? {
            match argument {
                lexopt::Arg::Long(name) => {
                    let name = name.to_owned();
                    let value = arguments.value()?.to_string_lossy().into_owned();
                    given.options.insert(name, value);
                }
                lexopt::Arg::Value(word) => {
                    given.words.push_back(word.to_string_lossy().into_owned());
                }
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(given)
    }

    /// Takes the next word. Fails if there is none.
    fn word(&mut self) -> Result<String> {
        self.words.pop_front().ok_or_else(|| WorkloadError::Arguments("a word is missing".into()))
    }

    /// The value of an option.
    fn text(&mut self, name: &str) -> Result<String> {
        let value = self.options.remove(name);
        value.ok_or_else(|| WorkloadError::Arguments(format!("--{name} is missing")))
    }

    /// The value of an option unless it is empty.
    fn optional(&mut self, name: &str) -> Result<Option<String>> {
        Ok(Some(self.text(name)?).filter(|value| !value.is_empty()))
    }

    fn value<T: FromStr<Err: Display + 'static>>(&mut self, name: &str) -> Result<T> {
        value_of(name, &self.text(name)?)
    }

    fn within<T>(&mut self, name: &str, least: T, most: T) -> Result<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        within(name, &self.text(name)?, least, most)
    }

    /// What each name in an option's list stands for, in the order of the list.
    fn chosen<T: Copy>(
        &mut self,
        option: &str,
        known: &[(&'static str, T)],
    ) -> Result<Vec<(&'static str, T)>> {
        let find = |wanted: &str| {
            let found = known.iter().find(|(name, _)| *name == wanted).copied();
            found.ok_or_else(|| {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                refused(option, wanted, format!("not one of {}", names.join(", ")))
            })
        };
        self.text(option)?.split(',').map(|wanted| find(wanted.trim())).collect()
    }

    /// The value of an option in percent of the machine's memory, or another amount above zero.
    fn above_zero(&mut self, name: &str) -> Result<f64> {
        above_zero(name, &self.text(name)?)
    }

    /// The value of an option in percent, above zero. Values above `most` are refused with this reason.
    fn percent(&mut self, name: &str, most: f64, why: &str) -> Result<f64> {
        percent(name, &self.text(name)?, most, why)
    }

    /// Fails if options or words are left that the workload does not have.
    fn end(self) -> Result<()> {
        let options = self.options.into_keys().map(|name| format!("--{name}"));
        match options.chain(self.words).next() {
            None => Ok(()),
            Some(other) => Err(WorkloadError::Arguments(format!("{other} is not an option"))),
        }
    }
}

/// The value of an option.
fn value_of<T: FromStr<Err: Display + 'static>>(name: &str, value: &str) -> Result<T> {
    value.parse().map_err(|why: T::Err| {
        // The standard library's messages speak of digits and literals.
        let error: &dyn Any = &why;
        let why = match () {
            () if error.is::<ParseFloatError>() => "not a number".to_owned(),
            () => match error.downcast_ref().map(ParseIntError::kind) {
                None => why.to_string(),
                Some(IntErrorKind::PosOverflow) => "too large".to_owned(),
                Some(IntErrorKind::Zero) => "1 or more".to_owned(),
                Some(_) => "not a whole number, 0 or more".to_owned(),
            },
        };
        refused(name, value, why)
    })
}

/// The value of an option that must be in this range.
fn within<T: FromStr + PartialOrd + Display>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<T> {
    let number = value.parse().ok().filter(|number| (&least..=&most).contains(&number));
    number.ok_or_else(|| refused(name, value, format!("a number from {least} to {most}")))
}

/// The values of an option with a list of values. Each value must be in this range.
fn list_within<T: FromStr + PartialOrd + Display + Copy>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<Vec<T>> {
    value.split(',').map(|value| within(name, value.trim(), least, most)).collect()
}

fn refused(option: &str, value: impl Display, why: impl Into<String>) -> WorkloadError {
    Refused { option: option.to_owned(), value: value.to_string(), why: why.into() }.into()
}

/// The value of an option in percent of the machine's memory, or another amount above zero.
fn above_zero(name: &str, value: &str) -> Result<f64> {
    match value_of(name, value)? {
        number if number > 0.0 && number <= MOST => Ok(number),
        _ => Err(refused(name, value, format!("above 0, at most {MOST}"))),
    }
}

/// The value of an option in percent, above zero. Values above `most` are refused with this reason.
fn percent(name: &str, value: &str, most: f64, why: &str) -> Result<f64> {
    let number = above_zero(name, value)?;
    let why = match why {
        "" => format!("at most {most}"),
        why => format!("at most {most}: {why}"),
    };
    if number > most { Err(refused(name, number, why)) } else { Ok(number) }
}

/// The number of bytes in a MiB.
const MIB: f64 = (1 << 20) as f64;

/// `percent` of the machine's memory, in bytes.
fn share_of(memory: u64, percent: f64) -> u64 {
    (memory as f64 * percent / 100.0) as u64
}

/// The values of an option with a list of values, separated by commas.
fn list<T: FromStr<Err: Display + 'static>>(name: &str, value: &str) -> Result<Vec<T>> {
    value.split(',').map(|value| value_of(name, value.trim())).collect()
}

/// The largest value of [`above_zero`]. A larger one is a typing error.
const MOST: f64 = 1e5;

/// A built-in workload, made from its command line.
trait Workload: Sized {
    /// The processes that the workload starts: their names on the command line, and their main functions.
    const PARTS: &[(&str, Main)] = &[];

    /// Takes the options and words that the workload has.
    fn parse(given: &mut Given) -> Result<Self>;

    /// Runs one iteration and reports its results.
    fn run(&self, reporter: &mut Reporter) -> Result<()>;
}

/// The main function of a process.
type Main = fn(lexopt::Parser) -> Result<()>;

/// Reads the command line of a workload.
fn read<W: Workload>(arguments: lexopt::Parser) -> Result<W> {
    let mut given = Given::read(arguments)?;
    let workload = W::parse(&mut given)?;
    given.end()?;
    Ok(workload)
}

fn start<W: Workload>(arguments: lexopt::Parser) -> Result<()> {
    read::<W>(arguments)?.run(&mut Reporter::from_environment()?)
}

macro_rules! workloads {
    ($($name:ident)*) => {
        const WORKLOADS: &[(&str, Main)] = &[$((stringify!($name), start::<$name::Options>)),*];
        /// The processes that each workload starts.
        const PARTS: &[&[(&str, Main)]] = &[$($name::Options::PARTS),*];
        /// For each workload, a function that only reads its command line.
        #[cfg(test)]
        const PARSERS: &[(&str, Main)] = &[
            $((stringify!($name), |arguments| read::<$name::Options>(arguments).map(drop))),*
        ];
    };
}
include!(concat!(env!("OUT_DIR"), "/workloads.rs"));

/// Runs the workload that the command line names, or a process of it.
fn main() -> ExitCode {
    let mut arguments = lexopt::Parser::from_env();
    let ran = arguments.value().map_err(WorkloadError::from).and_then(|name| {
        let name = name.to_string_lossy();
        let known = WORKLOADS.iter().chain(PARTS.iter().copied().flatten());
        let Some((_, main)) = known.clone().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = WORKLOADS.iter().map(|(name, _)| *name).collect();
            let problem = format!("{name} is not a workload: {}", known.join(", "));
            return Err(WorkloadError::Arguments(problem));
        };
        fix_addresses().while_("fixing addresses")?;
        main(arguments)
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use flight::job::WORKLOADS_PATH;
    use model::{Kind, Manifest, Parameter};
    use rustix::thread::CpuSet;

    /// A built-in manifest, and the arguments of its command after the workload's name, for a machine with 4 CPUs, 2
    /// nodes, 2 GiB and a disk.
    pub fn manifest(name: &str) -> (Manifest, Vec<String>) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads").join(name);
        let text = fs::read_to_string(path.with_extension("toml")).unwrap();
        let manifest: Manifest = toml::from_str(&text).unwrap();
        let values = manifest.parameters.iter().map(|(name, it)| (name.clone(), it.value.clone()));
        let mut parameters: BTreeMap<String, String> = values.collect();
        let machine = [
            ("cpus", "4"),
            ("nodes", "2"),
            ("memory", "2147483648"),
            ("disk", "/mnt/disk0"),
            ("program", ""),
        ];
        for (name, value) in machine {
            assert_eq!(parameters.insert(name.into(), value.into()), None);
        }
        let replace = |word: &String| {
            let mut word = word.clone();
            for (name, value) in &parameters {
                word = word.replace(&format!("{{{name}}}"), value);
            }
            word
        };
        let command: Vec<String> = manifest.command.iter().map(replace).collect();
        let [program, workload, arguments @ ..] = command.as_slice() else { panic!("{command:?}") };
        assert_eq!((program.as_str(), workload.as_str()), (WORKLOADS_PATH, name));
        let arguments = arguments.to_vec();
        (manifest, arguments)
    }

    /// The options of a workload for the command line of its manifest, in which some options have other values.
    pub fn options<W: super::Workload>(
        name: &str,
        changes: &[(&str, &str)],
    ) -> Result<W, super::WorkloadError> {
        let mut arguments = manifest(name).1;
        for (option, value) in changes {
            let place = arguments.iter().position(|word| *word == format!("--{option}")).unwrap();
            arguments[place + 1] = (*value).to_owned();
        }
        super::read(lexopt::Parser::from_args(arguments))
    }

    /// The names of the chosen items.
    pub fn names<T>(chosen: &[(&'static str, T)]) -> Vec<&'static str> {
        chosen.iter().map(|(name, _)| *name).collect()
    }

    #[test]
    fn invalid_values_are_described_in_plain_words() {
        let told =
            |name: &str, value: &str| super::above_zero(name, value).unwrap_err().to_string();
        assert_eq!(told("size", "abc"), "--size abc: not a number");
        for wrong in ["0", "-1", "nan", "inf", "1e6"] {
            assert_eq!(told("size", wrong), format!("--size {wrong}: above 0, at most 100000"));
        }
        assert_eq!(super::above_zero("size", "0.5").unwrap(), 0.5);
        let error = super::list::<u32>("threads", "1,-2").unwrap_err().to_string();
        assert_eq!(error, "--threads -2: not a whole number, 0 or more");
        let error = super::list::<u32>("threads", "5000000000").unwrap_err().to_string();
        assert_eq!(error, "--threads 5000000000: too large");
        let error = super::list_within("threads", "1, 0,2", 1, 9).unwrap_err().to_string();
        assert_eq!(error, "--threads 0: a number from 1 to 9");
    }

    /// What a workload says about this value of a parameter on its command line.
    fn read(name: &str, parameter: &str, value: &str) -> Result<(), super::WorkloadError> {
        let (manifest, mut arguments) = manifest(name);
        let place = format!("{{{parameter}}}");
        let place = manifest.command.iter().position(|word| *word == place).unwrap() - 2;
        arguments[place] = value.to_owned();
        let (_, parse) = super::PARSERS.iter().find(|(known, _)| *known == name).unwrap();
        parse(lexopt::Parser::from_args(arguments))
    }

    #[test]
    fn workloads_accept_their_defaults_and_only_what_their_manifests_allow() {
        for (name, _) in super::WORKLOADS {
            for (parameter, typed) in manifest(name).0.parameters {
                let place = format!("{name}: {parameter}");
                assert!(!typed.meaning.is_empty() && typed.kind != Kind::Text, "{place}");
                assert!(
                    typed.check(4).is_ok() && read(name, &parameter, &typed.value).is_ok(),
                    "{place}"
                );
                let bounds = [typed.least, typed.above, typed.most];
                let near = bounds.into_iter().flatten().flat_map(|it| [it - 1.0, it, it + 1.0]);
                let others =
                    ["", "x", "-1", "0", "1.5", "3", "1,x", "1,2,3", "nan", "1e300", "64mb"];
                let values =
                    others.map(str::to_owned).into_iter().chain(near.map(|it| it.to_string()));
                let mut refused = 0;
                for value in values.chain([u128::MAX.to_string()]) {
                    let typed = Parameter { value, ..typed.clone() };
                    if typed.check(CpuSet::MAX_CPU as u32).is_err() {
                        assert!(
                            read(name, &parameter, &typed.value).is_err(),
                            "{place} = {}",
                            typed.value
                        );
                        refused += 1;
                    }
                }
                assert!(refused > 3, "{place}");
            }
        }
    }

    #[test]
    fn manifests_name_parameters_after_options() {
        for (name, _) in super::WORKLOADS {
            let (manifest, arguments) = manifest(name);
            assert_eq!(manifest.name, *name);
            assert!(arguments.iter().all(|word| !word.contains('{')), "{arguments:?}");
            for pair in manifest.command.windows(2) {
                if let Some(option) = pair[0].strip_prefix("--") {
                    let placeholder = pair[1].replace('_', "-");
                    let own = placeholder == format!("{{{option}}}");
                    assert!(own || pair[1] == "{disk}", "{pair:?}");
                }
            }
        }
    }

    #[test]
    fn values_that_do_not_go_together_are_refused_with_a_reason() {
        for (name, option, value, why) in [
            ("nas", "class", "E", "not one of S, W, A, B, C, D"),
            ("autonuma", "passes", "1,2", "four numbers above 0"),
            ("stutter", "hog", "95", "the hog and a probe of 128 MiB"),
            ("tiobench", "random", "15", "an operation for each of 16 threads"),
            ("mprotect", "share", "0.00001", "less than a page"),
            ("mprotect", "share", "90.5", "--share 90.5: at most 90: the mapping has to fit"),
            ("filemap", "limit", "81", "--limit 81: at most 80: the machine needs the rest"),
            ("tier", "hot", "101", "--hot 101: at most 100"),
            ("truncate", "share", "0.00001", "not a page for each of 64 files"),
            ("pagefault", "share", "0.0005", "not a page for each of 4 tasks"),
            ("fork", "share", "0.00001", "less than a page"),
            ("filemap", "share", "0.0005", "not a page for each of 4 readers"),
            ("thp", "share", "0.01", "less than a huge page"),
            ("mglru", "limit", "0.00001", "less than a page for a working set"),
            ("memcg", "share", "0.00001", "not a page for each process"),
            ("compaction", "share", "0.01", "less than a huge page"),
            ("tier", "share", "0.00001", "less than a hot page"),
            ("keyvalue", "share", "0.00001", "not a key"),
            ("vmalloc", "share", "0.01", "too little for 500 areas"),
            ("bonnie", "size", "0.00001", "that is no MiB"),
            ("pagealloc", "share", "0.00001", "no batch is small enough"),
        ] {
            let told = read(name, option, value).unwrap_err().to_string();
            assert!(told.starts_with(&format!("--{option} {value}: ")), "{name}: {told}");
            assert!(told.contains(why), "{name}: {told}");
        }
    }
}
