//! `faultline workload`, and workloads that the command line names. Boots nothing.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

struct Bench {
    directory: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Exit code and all output of a command in the bench's directory.
    fn faultline(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let place = |name: &str| self.directory.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_faultline"));
        command.env("FAULTLINE_STORE", place("store.db")).env("XDG_CONFIG_HOME", place("config"));
        command.env("XDG_CACHE_HOME", place("cache")).current_dir(self.directory.path());
        let output = command.args(arguments).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    fn good(&self, arguments: &[&str]) -> String {
        let (code, text) = self.faultline(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        text
    }

    fn refused(&self, arguments: &[&str]) -> String {
        let (code, text) = self.faultline(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {text}");
        text
    }
}

#[test]
fn workloads_are_listed_and_shown() {
    let bench = Bench::new();
    let manifest = "name = \"reader\"\ndescription = \"Reads\"\ncommand = [\"x\"]\nmetrics = []\n";
    bench.write("config/faultline/workloads/reader.toml", manifest);
    bench.write("workloads/broken.toml", "name = 1");
    let listed = bench.good(&["workload", "list"]);
    let row = |name: &str| listed.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(
        row("truncate").contains("a disk with a file system")
            && row("truncate").ends_with("built in")
    );
    assert!(row("reader").ends_with("config/faultline/workloads/reader.toml"));
    assert!(listed.contains("broken.toml: 4 mistakes"), "{listed}");

    let words: Vec<&str> = listed.split_whitespace().collect();
    assert!(words.join(" ").contains("protect 1.27 %, restore 0.63 %."), "{listed}");

    let shown = bench.good(&["workload", "show", "pagealloc"]);
    for line in [
        "needs: module pagealloc",
        "phases that only prepare: time outside phases, warm-up",
        "    The CPU on which the test runs. Values: one of the machine's CPUs.",
        "total   ns    lower   yes",
        "odr0-64  0.23 %                    0.10 %",
    ] {
        assert!(shown.lines().any(|it| it == line), "{line}: {shown}");
    }
    assert!(bench.refused(&["workload", "show", "readr"]).contains("did you mean `reader`?"));
}

#[test]
fn a_new_workload_is_found_by_its_name_and_file() {
    let bench = Bench::new();
    for (name, language) in [("mine", "c"), ("script", "shell"), ("snake", "python")] {
        bench.good(&["workload", "new", name, "--language", language]);
        let run = ["run", "--kernels", "6.1,6.12", "--dry-run", "--workload"];
        if language == "c" {
            let refused = bench.refused(&[&run[..], &[name]].concat());
            assert!(refused.contains("the program workloads/mine: No such file"), "{refused}");
            let place = bench.directory.path().join("workloads");
            let mut compile = Command::new("cc");
            compile.args(["-static", "-o", "mine", "mine.c"]).current_dir(place);
            assert!(compile.status().unwrap().success());
        }
        let planned = bench.good(&[&run[..], &[name]].concat());
        assert!(planned.starts_with(&format!("{name}-6.1-6.12, ")), "{planned}");
        let file = format!("workloads/{name}.toml");
        assert_eq!(bench.good(&[&run[..], &[&file]].concat()), planned);
    }
    let again = bench.refused(&["workload", "new", "mine", "--language", "shell"]);
    assert!(again.contains("workloads/mine.toml exists"), "{again}");
    assert!(!bench.directory.path().join("workloads/mine.sh").exists());
    assert!(bench.refused(&["workload", "new", "nas"]).contains("is a built-in workload"));
    for name in ["../mine", "", "--", "-x"] {
        let refused = bench.refused(&["workload", "new", "--", name]);
        assert!(refused.contains("the first a letter or digit"), "{refused}");
    }
}

#[test]
fn programs_and_disks_that_cannot_be_used_are_refused() {
    let bench = Bench::new();
    let run = ["run", "--kernels", "6.1", "--dry-run"];
    let refused = |options: &[&str]| bench.refused(&[&run[..], options].concat());
    assert!(refused(&["--workload", "./mytest.sh"]).contains("faultline workload new"));
    assert!(refused(&["--workload", "truncate"]).contains("--disk 4G,xfs"));
    assert!(refused(&["--disk", "4G,zfs"]).contains("use one of"));
    assert!(refused(&["--disk", "3K"]).contains("use a multiple of 2M"));
    let planned = bench.good(&[&run[..], &["--workload", "truncate", "--disk", "4G,xfs"]].concat());
    assert!(planned.contains("1 disk"), "{planned}");
    assert!(bench.refused(&["boot", "6.1", "--disk", "4G"]).contains("`boot` runs none"));
}

#[test]
fn new_programs_run_without_faultline_and_print_their_metrics() {
    for (language, program) in [("c", "mine"), ("shell", "mine.sh"), ("python", "mine.py")] {
        let bench = Bench::new();
        bench.good(&["workload", "new", "mine", "--language", language]);
        let directory = bench.directory.path().join("workloads");
        if language == "c" {
            let mut compiler = Command::new("cc");
            let compiler = compiler.args(["-O2", "-Wall", "-Werror", "-o", "mine", "mine.c"]);
            assert!(compiler.current_dir(&directory).status().unwrap().success());
        }
        let mut alone = Command::new(directory.join(program));
        alone.env_remove("FAULTLINE_FD").env_remove("FAULTLINE_ACK_FD").arg("4");
        let output = alone.output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        let value = out.strip_prefix("sample Elapsed ").and_then(|it| it.strip_suffix('\n'));
        assert!(value.is_some_and(|it| it.parse::<f64>().is_ok()), "{language}: {out}{err}");
        assert!(output.status.success() && err.is_empty(), "{language}: {err}");
    }
}
