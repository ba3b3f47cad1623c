//! Tests of valid and invalid experiment files.

mod manifest;

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
fn several_architectures_make_an_experiment_for_each() {
    let with = |arch: &str| GOOD.replace("cpus = 4", &format!("arch = {arch}\ncpus = 4"));
    let asked = |arch: &str| {
        let read = || Input::file(Path::new("x.toml"), with(arch)).unwrap();
        let all = read().1.architectures().into_iter().map(|arch| {
            let (input, form) = read();
            input.request(form.for_architecture(arch)).unwrap().experiment
        });
        all.collect::<Vec<_>>()
    };
    let one = |arch: &str| parse(Path::new("x.toml"), &with(arch), None).unwrap().experiment;
    let both = [one("\"x86_64\""), one("\"arm64\"")];
    assert_eq!(asked("[\"arm64\", \"x86_64\"]"), both);
    assert_eq!(asked("[\"arm64\"]"), both[1..]);
    assert_eq!(asked("\"arm64\""), both[1..]);
    let error = |arch: &str| parse(Path::new("x.toml"), &with(arch), None).unwrap_err();
    for several in ["[\"x86_64\", \"arm64\"]", "[]"] {
        let told = error(several).to_string();
        assert!(told.contains("an experiment is for one architecture"), "{told}");
    }
    assert!(error("\"riscv64\"").to_string().contains("arch"));
}

#[test]
fn machine_and_kernels_have_one_architecture() {
    let arm64 = GOOD.replace("cpus = 4", "arch = \"arm64\"\ncpus = 4");
    let read = |text: &str| parse(Path::new("x.toml"), text, None).unwrap().experiment;
    let experiment = read(&arm64);
    assert_eq!(experiment.machine.arch, model::Architecture::Arm64);
    let [variant, _] = &experiment.variants[..] else { panic!("{experiment:?}") };
    assert_eq!((&*variant.name, &*variant.kernel.name), ("6.1", "debian:6.1@arm64"));
    for name in ["mine", "dir:/x"] {
        let own = read(&arm64.replacen("debian:6.1", name, 1));
        assert_eq!(own.variants[0].kernel.name, name);
    }
    let source = arm64.replacen("debian:6.1", "debian-source:6.1", 1);
    let read_all = parse(Path::new("x.toml"), &source, None).unwrap();
    let built = &read_all.experiment.variants[0];
    assert_eq!(
        (&*built.name, &*built.kernel.name),
        ("debian-source:6.1", "debian-source:6.1@arm64")
    );
    assert_eq!(read_all.build(built).unwrap().arch, model::Architecture::Arm64);
    // The names say the same.
    assert_eq!(read(&GOOD.replace("debian:6.1", "debian:6.1@arm64")), experiment);
    let usual = read(&GOOD.replace("cpus = 4", "arch = \"x86_64\"\ncpus = 4"));
    assert_eq!(usual, read(GOOD));
    assert!(!serde_json::to_string(&usual).unwrap().contains("arch"));
    let mixed = GOOD.replacen("debian:6.1", "6.12@arm64", 1);
    let nodes =
        "[[machine.node]]\ncpus = \"0\"\nmemory = \"1G\"\n[[machine.node]]\nmemory = \"1G\"\n";
    let disk = "[[machine.disk]]\nsize = \"1G\"\n[[variant]]\nname = \"x\"";
    for (text, told) in [
        (mixed, "`debian:6.1` is a kernel for x86_64, but the machine is arm64"),
        (
            arm64.replacen("debian:6.1", "host", 1),
            "`host` is a kernel for x86_64, but the machine is arm64",
        ),
        (arm64.replace("[machine]", "[machine]\naccel = \"kvm\""), "KVM does not run arm64"),
        (arm64.replacen("[[variant]]", disk, 1), "machines for arm64 have no disks yet"),
        (
            arm64.replace("cpus = 4\nmemory = \"2G\"\nnodes = 2\n", nodes),
            "a node of an arm64 machine has no CPUs",
        ),
        (arm64.replace("autonuma", "keyvalue"), "workload `keyvalue` needs packages"),
        (arm64.replace("\"arm64\"", "\"sparc\""), "sparc"),
    ] {
        let error = complaint(&text);
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn turns_are_read() {
    let exact = GOOD.replace("boots = 3", "mode = \"exact\"");
    let turn = |text: &str| parse(Path::new("x.toml"), text, None).unwrap().experiment.machine.turn;
    let with = |turn: &str| exact.replace("[machine]", &format!("[machine]\nturn = {turn}"));
    assert_eq!((turn(GOOD), turn(&exact)), (None, Some(1000)));
    assert_eq!((turn(&with("100")), turn(&with("\"qemu\""))), (Some(100), None));
    for (text, told) in [
        (GOOD.replace("[machine]", "[machine]\nturn = 1000"), "turn is only for exact mode"),
        (with("99"), "a turn of 99 instructions"),
        (with("\"bochs\""), "a number of instructions from 100 to 1000000, or \"qemu\""),
    ] {
        let error = complaint(&text);
        assert!(error.contains(told), "{error}");
    }
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
fn a_name_is_not_the_number_of_an_experiment_or_a_boot() {
    for (name, is_allowed) in
        [("b", true), ("b3x", true), ("b3", false), ("3", false), ("-3", false)]
    {
        assert_eq!(check_name(name).is_ok(), is_allowed, "{name}");
    }
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
