//! A build by make and the C compiler in a memory cgroup. The tree is generated, always the same, and small: the
//! kernel's own tree would take hours under emulation. What exceeds the limit of the cgroup is swapped.
//!
//! | phase | what happens |
//! | --- | --- |
//! | `create` | the tree is written to the disk |
//! | `build-4` | `make -j4` of the tree, with all caches cold |

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cgroup::Memcg;
use super::program::{Output, Program, ProgramError};
use super::random::Random;
use super::reporter::Reporter;
use super::{Given, Result, While, Workload, files, list_within, share_of};

/// The makefile: compiles each C file and links all of them.
const MAKEFILE: &str = "all: $(patsubst %.c,%.o,$(wildcard *.c))\n\
    \tgcc -r -o $@ $^\n\
    %.o: %.c common.h\n\
    \tgcc -O2 -c -o $@ $<\n";
/// The header that each file includes.
const HEADER: &str = "struct node { struct node *next; unsigned long key, flags; int count[8]; };\n\
    static inline unsigned long mix(unsigned long x) { x ^= x >> 33; x *= 0xff51afd7ed558ccdUL; return x ^ (x >> 29); }\n";

pub struct Options {
    directory: PathBuf,
    jobs: Vec<usize>,
    /// The number of C files, and of functions in each.
    files: u32,
    functions: u32,
    /// The limit of the cgroup, in percent of the machine's memory.
    limit: f64,
    memory: u64,
}

impl Workload for Options {
    fn parse(given: &mut Given) -> Result<Self> {
        let (cpus, jobs) = (given.value("cpus")?, given.optional("jobs")?);
        Ok(Self {
            directory: given.text("directory")?.into(),
            jobs: jobs.map_or_else(|| Ok(vec![cpus]), |it| list_within("jobs", &it, 1, 1000))?,
            files: given.within("files", 1, 100_000)?,
            functions: given.within("functions", 1, 100_000)?,
            limit: given.percent("limit", 80.0, "the machine needs the rest")?,
            memory: given.value("memory")?,
        })
    }

    fn run(&self, reporter: &mut Reporter) -> Result<()> {
        let tree = self.directory.join("kernbuild");
        for &jobs in &self.jobs {
            reporter.phase("create")?;
            self.create(&tree).while_(tree.display().to_string())?;
            files::drop_caches()?;
            let memcg = Memcg::limited("kernbuild", share_of(self.memory, self.limit))?;
            memcg.join()?;
            reporter.phase(&format!("build-{jobs}"))?;
            let make = Program::new("make").directory(&tree).args([format!("-j{jobs}")]);
            let built = make.run();
            reporter.phase("")?;
            memcg.leave()?;
            let killed = memcg.event("oom_kill")?;
            self.report(built, killed, jobs, reporter)?;
            fs::remove_dir_all(&tree).while_(tree.display().to_string())?;
        }
        Ok(())
    }
}

impl Options {
    /// Writes the tree, a directory of C files.
    fn create(&self, tree: &Path) -> io::Result<()> {
        fs::create_dir_all(tree)?;
        fs::write(tree.join("Makefile"), MAKEFILE)?;
        fs::write(tree.join("common.h"), HEADER)?;
        for file in 0..self.files {
            fs::write(tree.join(format!("file{file}.c")), source(file, self.functions))?;
        }
        Ok(())
    }

    /// Reports the times of a build, unless one of its processes was killed.
    fn report(
        &self,
        built: Result<Output, ProgramError>,
        killed: u64,
        jobs: usize,
        reporter: &mut Reporter,
    ) -> Result<()> {
        let label = jobs.to_string();
        reporter.labelled("OOM", &label, killed as f64)?;
        match built {
            Err(ProgramError::Failed { .. }) if killed > 0 => {
                let limit = self.limit;
                reporter
                    .note(&format!("build-{jobs}: killed for memory, with a limit of {limit} %"))
            }
            built => {
                let Output { elapsed, spent, .. } = built?;
                reporter.labelled("Elapsed", &label, elapsed.as_secs_f64())?;
                reporter.labelled("User", &label, spent.user)?;
                reporter.labelled("System", &label, spent.system)
            }
        }
    }
}

/// The text of a C file.
fn source(file: u32, functions: u32) -> String {
    let mut random = Random(file.into());
    let mut text = "#include \"common.h\"\n".to_owned();
    for function in 0..functions {
        let [a, b, c] = [0; 3].map(|_| random.below(1000));
        let _ = write!(
            text,
            "unsigned long f{file}_{function}(struct node *node, unsigned long x)\n{{\n\
             \tunsigned long sum = {a};\n\
             \tfor (; node; node = node->next) {{\n\
             \t\tfor (int i = 0; i < 8; i++)\n\t\t\tsum += node->count[i] * (x + {b}) ^ mix(sum + i);\n\
             \t\tswitch (mix(node->key + {c}) % 5) {{\n\
             \t\tcase 0: node->flags |= sum; break;\n\
             \t\tcase 1: sum -= node->flags >> 3; break;\n\
             \t\tcase 2: if (sum > {b}) return mix(sum); break;\n\
             \t\tcase 3: node->count[sum % 8]++; break;\n\
             \t\tdefault: sum = mix(sum ^ node->key);\n\t\t}}\n\t}}\n\treturn sum;\n}}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::tests::options;

    #[test]
    fn the_manifest_gives_options() {
        let options = options::<Options>("kernbuild", &[("jobs", "1,8")]).unwrap();
        assert_eq!(options.jobs, [1, 8]);
        assert!(options.files > 0 && options.limit > 0.0);
    }

    #[test]
    fn the_tree_is_built() {
        let directory = tempfile::tempdir().unwrap();
        let changes = [("files", "2"), ("functions", "3")];
        let options = options::<Options>("kernbuild", &changes).unwrap();
        options.create(directory.path()).unwrap();
        let made = Command::new("make").current_dir(directory.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        assert!(directory.path().join("file1.o").exists() && directory.path().join("all").exists());
        assert_ne!(source(0, 1), source(1, 1));
        assert_eq!(source(1, 9), source(1, 9));
    }
}
