//! Tests of valid and invalid experiment files.

use miette::{GraphicalReportHandler, GraphicalTheme};
use model::{Sequential, Setting};

use super::*;
use crate::file::lock;
use crate::file::mode::DEFAULT_SEEDS;

const GOOD: &str = r#"
name = "numa"
boots = 3

[machine]
cpus = 4
memory = "2G"
nodes = 2

[[variant]]
kernel = "debian:6.1"

[[variant]]
name = "6.1-off"
kernel = "debian:6.1"
sysctl = { "kernel.numa_balancing" = 0 }
sysfs = { "/sys/kernel/mm/transparent_hugepage/enabled" = "never" }

[[workload]]
name = "autonuma"
iterations = 2
"#;

const ON_DISK: &str = r#"
[[machine.disk]]
size = "4094M"
filesystem = "ext4"

[[workload]]
name = "tiobench"
"#;

fn complaint(text: &str) -> String {
    rendered(&parse(Path::new("x.toml"), text, None).unwrap_err())
}

pub fn rendered(error: &FileError) -> String {
    let mut out = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::none());
    handler.render_report(&mut out, error).unwrap();
    out
}

/// The quoted lines from the error on.
fn marked(error: &FileError) -> &str {
    error.excerpt.as_ref().unwrap().marked()
}

#[test]
fn a_valid_file_is_read() {
    let experiment = parse(Path::new("x.toml"), GOOD, None).unwrap().experiment;
    assert_eq!(experiment.variants[0].name, "6.1");
    let off = &experiment.variants[1].settings;
    let sysctl = Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "0".into() };
    assert_eq!((off.len(), &off[0]), (2, &sysctl));
    assert_eq!((experiment.workloads[0].iterations, experiment.workloads[0].warmup), (2, 0));
    assert_eq!(experiment.machine.topology.cpus(), 4);
    assert_eq!(experiment.sampler, Sampler::default());
    assert_eq!(experiment.machine.limits.run, Millis(2 * DEFAULT_TIMEOUT.0 + MINUTE.0));
}

#[test]
fn warmup_is_read() {
    let text = GOOD.replace("iterations = 2", "iterations = 2\nwarmup = 3");
    let experiment = parse(Path::new("x.toml"), &text, None).unwrap().experiment;
    let used = &experiment.workloads[0];
    assert_eq!((used.iterations, used.warmup, used.repetitions()), (2, 3, 5));
    assert!(!used.counts(2) && used.counts(3));
    assert_eq!(experiment.machine.limits.run, Millis(5 * DEFAULT_TIMEOUT.0 + MINUTE.0));
    // Another warm-up makes another experiment.
    let plain = parse(Path::new("x.toml"), GOOD, None).unwrap().experiment;
    assert!(!serde_json::to_string(&plain).unwrap().contains("warmup"));
}

#[test]
fn primary_rows_are_chosen_by_name() {
    let read = |primary: &str| {
        let text = GOOD.replace("iterations = 2", &format!("iterations = 2\nprimary = {primary}"));
        parse(Path::new("x.toml"), &text, None)
    };
    let Request { experiment, reading, .. } = read(r#"["Elapsed-NUMA02", "Sys*"]"#).unwrap();
    let manifest = &experiment.workloads[0].manifest;
    let is_primary = |name: &str, row: &str| {
        let metric = manifest.metrics.iter().find(|metric| metric.name == name).unwrap();
        reading.workload(&experiment.workloads[0]).is_primary(manifest, metric, row)
    };
    assert!(is_primary("Elapsed", "Elapsed-NUMA02") && is_primary("System", "System-NUMA01"));
    assert!(!is_primary("Elapsed", "Elapsed-NUMA02_SMT") && !is_primary("User", "User-NUMA01"));
    // Names as in mails.
    let theirs =
        r#"["elsp-NUMA02", "Amean syst-NUMA0*", "Time Elapsed-NUMA01_THEADLOCAL", "syst"]"#;
    let own = ["Elapsed-NUMA02", "System-NUMA0*", "Elapsed-NUMA01_THREADLOCAL", "System"];
    assert_eq!(read(theirs).unwrap().reading.workloads["autonuma"].primary, own);
    let metrics =
        "the metrics of autonuma that can be judged are Elapsed, User, System, in mmtests also";
    for (primary, problem) in [
        ("[]", "primary is empty"),
        (r#"["Elapsed", "elapsed"]"#, "`elapsed` does not match a metric that can be judged"),
        (r#"["elps-NUMA02"]"#, "`elps-NUMA02` does not match a metric that can be judged"),
        (r#"["CPU"]"#, "`CPU` does not match a metric that can be judged"),
        (r#"[""]"#, "`` does not match a metric that can be judged"),
    ] {
        let error = read(primary).unwrap_err();
        assert_eq!(error.to_string(), problem);
        assert!(rendered(&error).contains(metrics), "{}", rendered(&error));
    }
    assert!(rendered(&read("\"Elapsed\"").unwrap_err()).contains("primary = \"Elapsed\""));
}

/// These errors are found before anything boots.
#[test]
fn impossible_values_are_errors() {
    let with = |from: &str, to: &str| GOOD.replacen(from, to, 1);
    let cmdline = |text: &str| with("kernel = \"", &format!("cmdline = {text}\nkernel = \""));
    let limits = with("nodes = 2", "nodes = 2\nlimits = { boot = \"0s\" }");
    let disk = "nodes = 2\n[[machine.disk]]\nsize = \"9999999T\"";
    for (text, problem) in [
        (with("boots = 3", "boots = 10001"), "10001 boots are too many"),
        (
            with("boots = 3", "boots = \"auto\"\nat_most = 4000000000"),
            "4000000000 boots are too many",
        ),
        (
            with("boots = 3", "mode = \"exact\"\nseeds = 4294967295"),
            "4294967295 boots are too many",
        ),
        (
            with("\"numa\"", "\"a\\u001bb\""),
            "the name of an experiment is empty, longer than 200 bytes, begins or ends with a blank, or has control characters",
        ),
        (with("\"2G\"", "\"1M\""), "memory: 1M is not a multiple of 128M a node"),
        (with("nodes = 2", disk), "a disk cannot have a size of 9999999T"),
        (cmdline("\"a\\nb\""), "the command line has a control character"),
        (cmdline("\"a\\u0000b\""), "the command line has a control character"),
        (cmdline(&format!("\"{}\"", "a".repeat(1537))), "the command line has 1537 bytes"),
        (with("kernel.numa_balancing", ""), "`` is not a sysctl"),
        (
            with("sysctl = { ", "sysctl = { \"kernel/numa_balancing\" = 1, "),
            "`/proc/sys/kernel/numa_balancing` is set twice",
        ),
        (
            with("/sys/kernel/mm/transparent_hugepage/enabled", "/sys/"),
            "`/sys/` is not a file below /sys",
        ),
        (
            with("mm/transparent_hugepage", "mm//x"),
            "`/sys/kernel/mm//x/enabled` is not a file below /sys",
        ),
        (
            with("sysctl = ", "modules = [\"loop\", \" \"]\nsysctl = "),
            "the name of a module is empty",
        ),
        (with("kernel.numa_balancing", "../../etc/x"), "`../../etc/x` is not a sysctl"),
        (limits, "the time limit is zero"),
        (with("iterations = 2", "timeout = \"0s\""), "the time limit is zero"),
        (
            with("iterations = 2", "iterations = 16384"),
            "16384 iterations of a boot, including warm-up, are too many",
        ),
        (
            with(
                "iterations = 2",
                "iterations = 8191\n[[workload]]\nname = \"autonuma\"\nas = \"large\"\nwarmup = 8192",
            ),
            "16384 iterations of a boot, including warm-up, are too many",
        ),
        (
            with("iterations = 2", "warmup = 4294967295"),
            "4294967295 iterations of a boot, including warm-up, are too many",
        ),
        (
            with("[machine]", "[sampler]\nsources = [\"stat\", \"stat\"]\n[machine]"),
            "`stat` is sampled twice",
        ),
    ] {
        let error = parse(Path::new("x.toml"), &text, None).unwrap_err();
        assert_eq!(error.to_string(), problem);
        let shown = rendered(&error);
        assert!(shown.contains("[x.toml:") && shown.contains("help: "), "{shown}");
    }
    let most = with("iterations = 2", "iterations = 8191\nwarmup = 8192");
    for text in [cmdline(&format!("\"{}\"", "a".repeat(1536))), most] {
        assert!(parse(Path::new("x.toml"), &text, None).is_ok(), "{text}");
    }
}

#[test]
fn a_metric_cannot_be_called_instructions() {
    let directory = tempfile::tempdir().unwrap();
    let manifest = "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\n[[metrics]]\n\
                    name = \"instructions\"\nunit = \"\"\nmean = \"amean\"\n";
    std::fs::write(directory.path().join("x-manifest.toml"), manifest).unwrap();
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"x-manifest.toml\"");
    let error = parse(&directory.path().join("x.toml"), &text, None).unwrap_err();
    let problem = "x-manifest.toml: line 5: `instructions` cannot be the name of a metric";
    assert!(error.to_string().ends_with(problem), "{error}");
}

#[test]
fn a_name_is_not_the_number_of_an_experiment_or_a_boot() {
    for (name, is_allowed) in
        [("b", true), ("b3x", true), ("b3", false), ("3", false), ("-3", false)]
    {
        assert_eq!(check_name(name).is_ok(), is_allowed, "{name}");
    }
}

#[test]
fn the_name_of_a_workload_is_valid_in_tables_and_paths() {
    let directory = tempfile::tempdir().unwrap();
    let read = |workload: &str| {
        let text = GOOD.replace("name = \"autonuma\"", workload);
        parse(&directory.path().join("x.toml"), &text, None)
    };
    let long = "x".repeat(101);
    for name in ["", " ", ".", "..", "a/b", "../a", "a,b", "a\\nb", &long] {
        let manifest =
            format!("name = \"{name}\"\ndescription = \"\"\ncommand = [\"x\"]\nmetrics = []\n");
        std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
        let own = "manifest = \"own.toml\"";
        assert_eq!(
            read(&format!("{own}\nas = \"own\"")).unwrap().experiment.workloads[0].manifest.name,
            "own"
        );
        let called = format!("\"{name}\"");
        let renamed = format!("name = \"autonuma\"\nas = {called}");
        for (workload, place) in [(own, "\"own.toml\""), (&*renamed, &*called)] {
            let error = read(workload).unwrap_err();
            assert_eq!(error.to_string(), format!("`{name}` cannot be the name of a workload"));
            let text = marked(&error);
            assert!(text.starts_with(place), "{text}");
        }
    }
    assert!(read("name = \"autonuma\"\nas = \"large (2 G)\"").is_ok());
}

#[test]
fn a_number_out_of_range_is_told_the_range() {
    let told = |key: &str, line: &str| {
        let text = GOOD.replacen(key, line, 1);
        parse(Path::new("x.toml"), &text, None).unwrap_err().to_string()
    };
    for seeds in ["4294967296", "-1", "99999999999999999999"] {
        let error = told("boots = 3", &format!("mode = \"exact\"\nseeds = {seeds}"));
        assert!(error.starts_with("seeds: invalid "), "{error}");
        assert!(error.ends_with(", expected a whole number from 1 to 10000"), "{error}");
    }
    for boots in ["4294967296", "-1"] {
        let error = told("boots = 3", &format!("boots = {boots}"));
        let range = format!("from 1 to {MOST_BOOTS}, or \"auto\"");
        assert_eq!(error, format!("boots: expected a number of boots {range}"));
    }
    for (key, line, range) in [
        ("boots = 3", "boots = 99999999999999999999", "from 1 to 10000"),
        ("cpus = 4", "cpus = -4", "from 1 to 255"),
        ("nodes = 2", "nodes = 4294967296", "from 1 to 128"),
        ("nodes = 2", "node = [{ distances = [300] }]", "from 10 to 255"),
        ("iterations = 2", "iterations = -1", "from 1 to 16383"),
        ("balancing\" = 0", "balancing\" = 99999999999999999999", "to 9223372036854775807"),
    ] {
        let error = told(key, line);
        assert!(error.contains("expected a whole number") && error.ends_with(range), "{error}");
    }
}

#[test]
fn a_metric_has_a_name_of_the_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"own.toml\"");
    let read = |metric: &str| {
        let manifest = format!(
            "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\n\
             [[metrics]]\nname = \"{metric}\"\nunit = \"\"\nmean = \"amean\"\n"
        );
        std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
        parse(&directory.path().join("x.toml"), &text, None)
    };
    assert!(read("SeqIn block").is_ok() && read(&"x".repeat(64)).is_ok());
    for metric in ["", "q <b>", "a  b", &"x".repeat(65)] {
        let error = read(metric).unwrap_err();
        let problem = format!("own.toml: line 5: `{metric}` cannot be the name of a metric");
        assert!(error.to_string().ends_with(&problem), "{error}");
        assert_eq!(&marked(&error)[..10], "\"own.toml\"");
        let error = crate::workloads::read(&directory.path().join("own.toml")).unwrap_err();
        assert!(error.to_string().ends_with(&problem), "{error}");
        assert!(error.hint().starts_with("use 1 to 64 letters"), "{error}");
    }
}

#[test]
fn an_invalid_package_is_an_error_of_its_manifest() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.toml");
    let manifest = |package: &str| {
        let text = format!(
            "name = \"x\"\ndescription = \"\"\ncommand = [\"x\"]\npackages = [\"fio\", \"{package}\"]\n\
             [[metrics]]\nname = \"a\"\nunit = \"\"\nmean = \"amean\"\n"
        );
        std::fs::write(directory.path().join("own.toml"), text).unwrap();
    };
    let text = GOOD.replace("name = \"autonuma\"", "manifest = \"own.toml\"");
    manifest("Bonnie");
    let error = parse(&path, &text, None).unwrap_err().to_string();
    assert!(error.ends_with("own.toml: line 4: `Bonnie` is not the name of a package"), "{error}");
    manifest("boney");
    assert!(parse(&path, &text, None).is_ok());
    let problem = "there is no package `boney`";
    let error = package_error(&path, &text, "boney", problem).unwrap();
    assert!(error.to_string().ends_with("own.toml: there is no package `boney`"), "{error}");
    assert_eq!(&marked(&error)[..10], "\"own.toml\"");
    assert!(package_error(&path, &text, "postgresql-15", problem).is_none());
}

#[test]
fn a_lock_is_read_and_has_all_packages() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let told = |workload: &str| {
        let text = GOOD.replace("boots = 3", "boots = 3\nuserspace = \"u.lock\"");
        let text = text.replace("name = \"autonuma\"", workload);
        let disk = "[[machine.disk]]\nsize = \"64G\"\nfilesystem = \"xfs\"\n";
        parse(&path("x.toml"), &format!("{text}\n{disk}"), None)
    };
    let error = told("name = \"tiobench\"").unwrap_err();
    assert!(error.to_string().ends_with("u.lock: No such file or directory (os error 2)"));
    let command = format!("`faultline userspace lock tiobench -o {}`", path("u.lock").display());
    assert!(error.hint.as_ref().unwrap().contains(&command), "{error:?}");
    // The command uses the source, whatever the workload is called here.
    let own = "name = \"own\"\ndescription = \"\"\ncommand = [\"x\"]\npackages = [\"fio\"]\n\
               metrics = []\n";
    std::fs::write(path("own.toml"), own).unwrap();
    let twice = "name = \"tiobench\"\nas = \"large\"\n[[workload]]\nname = \"tiobench\"\n\
                 [[workload]]\nmanifest = \"own.toml\"\nas = \"mine\"\n";
    let error = told(twice).unwrap_err();
    let (own, lock) = (path("own.toml"), path("u.lock"));
    let command =
        format!("`faultline userspace lock {} tiobench -o {}`", own.display(), lock.display());
    assert!(error.hint.as_ref().unwrap().contains(&command), "{error:?}");
    let error = told("name = \"tiobench\"").unwrap_err();
    assert_eq!(&marked(&error)[..8], "\"u.lock\"");
    std::fs::write(path("u.lock"), lock::write(&lock::tests::lock())).unwrap();
    assert_eq!(
        told("name = \"tiobench\"").unwrap().experiment.userspace,
        Some(lock::tests::lock())
    );
    let error = told("name = \"bonnie\"").unwrap_err().to_string();
    let expected = "u.lock: the package bonnie++ is missing, which workload `bonnie` needs";
    assert!(error.ends_with(expected), "{error}");
    std::fs::write(path("u.lock"), "architecture = 5").unwrap();
    let error = told("name = \"tiobench\"").unwrap_err().to_string();
    assert!(error.contains("u.lock: TOML parse error at line 1"), "{error}");
}

#[test]
fn programs_of_a_directory_are_found_before_boots() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir(path("bin")).unwrap();
    for name in ["cg.S.x", "ft.S.x"] {
        std::fs::write(path("bin").join(name), name).unwrap();
    }
    let read = |rest: &str| {
        let own = format!("name = \"nas\"\nbinaries = \"bin\"\n{rest}");
        let text = GOOD.replace("name = \"autonuma\"", &own);
        parse(&path("x.toml"), &text, None).map_err(|error| (rendered(&error), text))
    };
    let all = read("").unwrap().experiment;
    let programs = ["cg.S.x", "ft.S.x"]
        .map(|name| crate::workloads::binaries::program(&path("bin").join(name)).unwrap());
    assert_eq!(all.workloads[0].binaries, programs);
    let command = crate::workloads::command_of(&all.workloads[0], &all.machine).unwrap().join(" ");
    let places = "--program /faultline/programs/nas/cg.S.x,/faultline/programs/nas/ft.S.x";
    assert!(command.ends_with(places), "{command}");
    let any = read("parameters = { class = \"\" }").unwrap();
    assert_eq!(any.experiment.workloads[0].binaries, programs);
    let some = read("parameters = { benchmarks = \"ft\" }").unwrap();
    assert_eq!(some.experiment.workloads[0].binaries, programs[1..]);
    let written = write(&some.experiment, &some.reading).text;
    assert_eq!(parse(&path("y.toml"), &written, None).unwrap(), some, "{written}");
    let (error, _) = read("parameters = { benchmarks = \"ft,is\" }").unwrap_err();
    assert!(error.contains("bin has no program is.S.x"), "{error}");
    assert!(error.contains("there are: cg.S.x, ft.S.x"), "{error}");
    let (error, _) = read("program = \"bin/cg.S.x\"").unwrap_err();
    assert!(error.contains("the workload has both program and binaries"), "{error}");
}

#[test]
fn the_name_of_a_program_has_no_comma() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("a,b")).unwrap();
    std::fs::write(directory.path().join("a,b/cg,old.C.x"), "").unwrap();
    let manifest = "name = \"own\"\ndescription = \"\"\ncommand = [\"{program}\"]\nmetrics = []\n\
                    binaries = \"cg,old.C.x\"\n";
    std::fs::write(directory.path().join("own.toml"), manifest).unwrap();
    let read = |workload: &str| {
        let text = GOOD.replace("name = \"autonuma\"", workload);
        parse(&directory.path().join("x.toml"), &text, None)
    };
    for (workload, place) in [
        ("name = \"nas\"\nprogram = \"a,b/cg,old.C.x\"", "\"a,b/cg,old"),
        ("manifest = \"own.toml\"\nbinaries = \"a,b\"", "\"a,b\""),
    ] {
        let error = read(workload).unwrap_err();
        let told = "a,b/cg,old.C.x: the name of a program cannot have a comma";
        assert!(error.to_string().ends_with(told), "{error}");
        let text = marked(&error);
        assert!(text.starts_with(place), "{text}");
    }
    assert!(read("name = \"nas\"\nprogram = \"a,b/cg.C.x\"").is_ok());
}

#[test]
fn exact_mode_has_seeds() {
    let exact = |text| {
        let text = GOOD.replace("boots = 3", text);
        parse(Path::new("x.toml"), &text, None).unwrap().experiment
    };
    let experiment = exact("mode = \"exact\"\nprofile = { accesses = true }");
    assert_eq!((experiment.mode, experiment.boots), (Mode::Exact, DEFAULT_SEEDS));
    assert_eq!(experiment.profile, Profiling { accesses: true, ..Profiling::default() });
    assert_eq!(exact("mode = \"exact\"\nseeds = 2").boots, 2);
    let asked = parse(Path::new("x.toml"), GOOD, Some(Mode::Exact)).unwrap().experiment;
    assert_eq!((asked.mode, asked.boots), (Mode::Exact, DEFAULT_SEEDS));
    assert_eq!(asked.name, "numa-exact");
    let sampled = format!("{GOOD}\n[profile]\nsampled = true\n");
    let profile = |mode| parse(Path::new("x.toml"), &sampled, mode).unwrap().experiment.profile;
    assert_eq!(profile(None).samples(), Some(99));
    assert!(profile(Some(Mode::Exact)).is_default());
    let text = GOOD.replace("boots = 3", "mode = \"exact\"");
    let already = parse(Path::new("x.toml"), &text, Some(Mode::Exact)).unwrap().experiment;
    assert_eq!(already.name, "numa");
    let disk = format!("{GOOD}\n[[machine.disk]]\nkind = \"nvme\"\nsize = \"1G\"\n");
    assert!(parse(Path::new("x.toml"), &disk, None).is_ok());
    assert!(parse(Path::new("x.toml"), &disk, Some(Mode::Exact)).is_err());
    assert_eq!(exact("mode = \"measured\"\nboots = 4").boots, 4);
}

#[test]
fn boots_may_end_at_looks() {
    let auto = |rest: &str, mode| {
        let text = GOOD.replace("boots = 3", &format!("boots = \"auto\"{rest}"));
        parse(Path::new("x.toml"), &text, mode).unwrap().experiment
    };
    let usual = auto("", None);
    assert_eq!(
        (usual.boots, usual.sequential),
        (32, Some(Sequential { margin: 0.01, budget: None }))
    );
    let keys = "\nat_most = 9\nmargin = \"0.5%\"\nbudget = \"2h\"";
    let own = auto(keys, None);
    let sequential = Sequential { margin: 0.005, budget: Some(Millis(7_200_000)) };
    assert_eq!((own.boots, own.sequential), (8, Some(sequential)));
    let exact = auto(keys, Some(Mode::Exact));
    assert_eq!((exact.boots, exact.sequential), (DEFAULT_SEEDS, None));
}

#[test]
fn each_error_has_its_line_and_a_hint() {
    let from = GOOD.find("[[variant]]\nname").unwrap();
    let to = GOOD.find("[[workload]]").unwrap();
    let one_variant = format!("{}{}", &GOOD[..from], &GOOD[to..]);
    let cases = [
        GOOD.replace("kernel = \"debian:6.1\"\nsysctl", "kernl = \"debian:6.1\"\nsysctl"),
        GOOD.replace("autonuma", "autonum"),
        GOOD.replace("boots = 3", "boots = 0"),
        GOOD.replace("memory = \"2G\"", "memory = \"2X\""),
        GOOD.replace("nodes = 2", "nodes = 8"),
        GOOD.replace("nodes = 2", "[[machine.node]]\nmemory = \"1G\""),
        GOOD.replace(
            "cpus = 4\nmemory = \"2G\"\nnodes = 2",
            "[[machine.node]]\ncpus = \"0\"\nmemory = \"100M\"",
        ),
        GOOD.replace("name = \"6.1-off\"\n", ""),
        GOOD.replace("\"/sys/kernel", "\"/proc/sys/kernel"),
        GOOD.replace("iterations = 2", "iterations = 0"),
        GOOD.replace("name = \"autonuma\"\n", ""),
        format!("{GOOD}\n[[workload]]\nname = \"autonuma\"\n"),
        GOOD.replace("iterations = 2", "parameters = { no-such = 1 }"),
        GOOD.replace("[machine]", "[machine"),
        format!("{GOOD}\n[sampler]\ninterval = \"1ms\"\n"),
        format!("{GOOD}\n[sampler]\nsources = [\"vmstats\"]\n"),
        format!("{GOOD}\n[sampler]\nevents = [\"page-fault\"]\n"),
        GOOD.replace("boots = 3\n", ""),
        GOOD.replace("boots = 3", "boots = 3\nmode = \"exact\""),
        GOOD.replace("boots = 3", "seeds = 3"),
        GOOD.replace("boots = 3", "seeds = 0\nmode = \"exact\""),
        GOOD.replace("boots = 3", "mode = \"exakt\""),
        format!("{GOOD}\n[profile]\nstacks = true\n"),
        GOOD.replace("boots = 3", "boots = \"atuo\""),
        GOOD.replace("boots = 3", "boots = \"auto\"\nat_most = 3"),
        GOOD.replace("boots = 3", "boots = \"auto\"\nmargin = \"0%\""),
        GOOD.replace("boots = 3", "boots = \"auto\"\nmargin = \"1\""),
        GOOD.replace("boots = 3", "boots = \"auto\"\nbudget = \"two hours\""),
        GOOD.replace("boots = 3", "boots = \"auto\"\nmode = \"exact\""),
        GOOD.replace("boots = 3", "boots = 3\nbudget = \"2h\""),
        GOOD.replace("boots = 3", "boots = \"auto\"")
            .replace("autonuma", "fault")
            .replace("iterations = 2", ""),
        one_variant.replace("boots = 3", "boots = \"auto\""),
        GOOD.replace("boots = 3", "mode = \"exact\"").replace("cpus", "accel = \"kvm\"\ncpus"),
        GOOD.replace("iterations = 2", "parameters = { scale = 2, share = 60 }"),
        format!("{GOOD}{ON_DISK}parameters = {{ threads = \"1,many\", size = 1 }}\n"),
        format!("{GOOD}{ON_DISK}parameters = {{ threads = [1, 2] }}\n"),
        format!("{GOOD}{ON_DISK}"),
    ];
    let complaints: Vec<_> = cases.iter().map(|text| complaint(text)).collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn a_series_needs_patches() {
    let text = "name = 'x'\nboots = 1\ntree = '.'\nmachine = { cpus = 1, memory = '512M' }\n\
                variant = [{ kernel = 'git:v1', each = true }]\nworkload = [{ name = 'mprotect' }]\n";
    let said = complaint(text);
    assert!(said.contains("`each = true` needs patches"), "{said}");
}
