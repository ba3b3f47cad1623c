//! Sample boots, and the modules of the store's tests.

mod conformance;
mod edit;
mod faults;
mod fixture;
mod frozen;
mod migration;
mod processes;
mod rot;
mod versions;

use std::num::NonZeroU32;
use std::path::PathBuf;

use model::{
    ALL_CPUS, Accel, Boot, BootFacts, BootId, Bytes, Cell, Chunk, Column, Cost, CostTable, ENTRIES,
    Execution, Experiment, HostLoad, INSTRUCTIONS, Kept, LOADS, Machine, Manifest, Metric, Millis,
    Outcome, Place, Privilege, Problem, ProblemKind, Profile, Provenance, Reading, STORES, Sample,
    Setting, Target, Topology, Usage, Variant, VariantReading, WorkloadReading, WorkloadUse,
};
use rusqlite::{Connection, OptionalExtension, ToSql, params};
use tempfile::TempDir;

use crate::parts::{Kind, Part, Parts};
use crate::record::digest;
use crate::sqlite::Sqlite;
use crate::{Archive, ExperimentId, experiments};

/// The file of a store, in directories that do not exist yet.
struct StoreFile {
    _directory: TempDir,
    path: PathBuf,
}

impl StoreFile {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data/faultline/faultline.db");
        Self { _directory: directory, path }
    }

    /// Creates a file, and opens the store in it.
    fn opened() -> (Self, Sqlite) {
        let file = Self::new();
        let store = file.open();
        (file, store)
    }

    /// Creates a file, and opens a store with the experiment `numa` in it.
    fn with_numa() -> (Self, Sqlite, ExperimentId) {
        let (file, mut store) = Self::opened();
        let id = store.keep_experiment(&experiment("numa"), &reading()).unwrap();
        (file, store, id)
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.path).unwrap()
    }

    /// A connection like that of another program.
    fn plain(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection.pragma_update(None, "foreign_keys", false).unwrap();
        connection
    }

    /// Changes the store by `sql`, and recomputes all checksums of experiments and boots.
    fn forge(&self, sql: &str) {
        let plain = self.plain();
        plain.execute_batch(sql).unwrap();
        let blob = |sql: &str, key: &dyn ToSql| {
            plain.query_row(sql, [key], |row| row.get::<_, Vec<u8>>(0)).optional().unwrap()
        };
        for (id, mut record) in experiments::records(&plain).unwrap() {
            let definition = blob("SELECT definition FROM definitions WHERE experiment = ?", &id.0);
            record.definition = digest(&definition.unwrap());
            for boot in &mut record.boots {
                let list = blob("SELECT contents FROM boots WHERE id = ?", &boot.id.0).unwrap();
                let mut list: Vec<Part> = postcard::from_bytes(&list).unwrap();
                for (place, part) in list.iter_mut().enumerate() {
                    let sql = format!("SELECT bytes FROM parts WHERE place = {place} AND boot = ?");
                    if let Some(bytes) = blob(&sql, &boot.id.0) {
                        part.digest = digest(&bytes);
                    }
                }
                let list = Parts { list, bytes: Vec::new() }.contents().unwrap();
                boot.contents = digest(&list);
                let sql = "UPDATE boots SET contents = ? WHERE id = ?";
                plain.execute(sql, params![list, boot.id.0]).unwrap();
            }
            record.update(&plain, id).unwrap();
        }
    }
}

mod sqlite {
    use super::StoreFile;
    use super::conformance::suite;

    suite! { StoreFile::new() }
}

impl conformance::Place for StoreFile {
    fn open(&self) -> Box<dyn Archive> {
        crate::open(&self.path).unwrap()
    }
}

/// The index of a part of a boot that [`boot`] makes. `number` counts the parts of this kind.
fn place(kind: Kind, number: usize) -> usize {
    let list = Parts::of(&boot("6.1", 0, Outcome::Complete), &[]).unwrap().list;
    (0..list.len()).filter(|&place| list[place].kind == kind).nth(number).unwrap()
}

/// An experiment with a value in every field.
fn experiment(name: &str) -> Experiment {
    let variant = |kernel: &str| Variant {
        name: kernel.into(),
        kernel: format!("debian:{kernel}").into(),
        cmdline: "quiet".into(),
        settings: vec![
            Setting::Sysctl { name: "kernel.numa_balancing".into(), value: "1".into() },
            Setting::Sysfs {
                path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
                value: "always".into(),
            },
        ],
        modules: vec!["ext4".into()],
        point: None,
    };
    let metric = Metric {
        name: "Elapsed".into(),
        unit: "s".into(),
        better: Some(model::Better::Lower),
        ..Metric::default()
    };
    let manifest = Manifest {
        name: "autonuma".into(),
        description: "threads fight over memory first touched elsewhere".into(),
        command: vec!["autonuma".into(), "{program}".into()],
        parameters: [("program".into(), "numa01".into())].into(),
        preparation: vec!["fill".into()],
        packages: vec!["fio".into()],
        metrics: vec![metric],
        ..Manifest::default()
    };
    Experiment {
        name: name.into(),
        variants: vec![variant("6.1"), variant("7.3")],
        machine: Machine {
            accel: Accel::Tcg,
            ..Machine::new(Topology::even(4, Bytes::mib(1024), 2).unwrap())
        },
        workloads: vec![WorkloadUse {
            manifest,
            program: Some("/usr/local/bin/autonuma".into()),
            binaries: Vec::new(),
            archive: None,
            iterations: 3,
            warmup: 1,
            timeout: Millis(60_000),
        }],
        boots: 2,
        ..Experiment::default()
    }
}

/// How the figures of [`experiment`] are read.
fn reading() -> Reading {
    let variants = ["6.1", "7.3"].map(|kernel| {
        let axes = vec![("kernel".to_owned(), kernel.to_owned())];
        (kernel.to_owned(), VariantReading { axes, step: None })
    });
    let workload = WorkloadReading { primary: vec!["Elapsed".into()], left_out: None };
    Reading { variants: variants.into(), workloads: [("autonuma".to_owned(), workload)].into() }
}

/// A boot with a value in every field, different for every boot index.
fn boot(variant: &str, boot_index: u32, outcome: Outcome) -> Boot {
    let sample = |iteration: u32, label: &str| Sample {
        workload: "autonuma".into(),
        iteration,
        phase: "steady".into(),
        metric: "Elapsed".into(),
        label: label.into(),
        value: f64::from(boot_index) + 0.1 * f64::from(iteration),
        count: NonZeroU32::MIN.saturating_add(iteration),
        ended: (iteration == 1).then_some(u64::MAX),
    };
    let usage = |iteration| Usage {
        workload: "autonuma".into(),
        iteration,
        user: 1.5,
        system: 0.25,
        elapsed: f64::from(boot_index),
    };
    let chunks = (0..3).flat_map(|iteration| {
        ["vmstat", "zoneinfo", "workload"].map(|source| chunk(source, iteration, boot_index))
    });
    Boot {
        variant: variant.into(),
        boot_index,
        block: boot_index / 2,
        started: 1_790_000_000 + u64::from(boot_index),
        outcome,
        facts: facts(variant),
        host: HostLoad { load_before: 0.5, load_after: 1.25, steal: 0.125, wall: 61.5 },
        problems: vec![
            Problem {
                kind: ProblemKind::Warning,
                text: "WARNING: CPU: 0 PID: 1 at mm/vmscan.c:1".into(),
            },
            Problem { kind: ProblemKind::SeriesDropped, text: format!("from second {boot_index}") },
        ],
        notes: vec!["created 40000 files".into(), "\0 \u{1f9ea} 'quoted'".into()],
        samples: vec![sample(0, ""), sample(0, "p99"), sample(1, ""), sample(0, "")],
        usage: vec![usage(0), usage(1)],
        chunks: chunks.collect(),
        profiles: vec![profile(""), profile("steady")],
        console: format!("[    0.000000] Linux version {variant}\nboot {boot_index}\n").repeat(50),
    }
}

/// The expected result of reading a boot that was kept and is not superseded.
fn as_kept(id: BootId, boot: &Boot) -> Kept {
    Kept { id, superseded: false, boot: boot.clone() }
}

fn facts(variant: &str) -> BootFacts {
    BootFacts {
        release: format!("{variant}-cloud-amd64"),
        version: "#1 SMP PREEMPT_DYNAMIC".into(),
        banner: format!("Linux version {variant} (gcc-14)"),
        cmdline: "quiet panic=-1".into(),
        preemption: "none voluntary (full)".into(),
        cpus: 4,
        nodes: 2,
        memory: u64::MAX,
        page_size: 4096,
        provenance: Provenance {
            execution: Some(Execution::Tcg),
            emulator: "QEMU 10.0.2".into(),
            ..Provenance::default()
        },
        kernel_origin: format!("linux-image-{variant}-cloud-amd64"),
        patched: None,
        kernel_digest: "0123456789abcdef".repeat(4),
        initramfs_digest: "89abcdef".repeat(8),
        recording_digest: "01234567".repeat(8),
        userspace_digest: "76543210".repeat(8),
        userspace: vec!["dash=0.5.12-2".into(), "fio=3.33-3".into()],
        config: format!("# Linux {variant}\nCONFIG_NUMA=y\n"),
    }
}

fn profile(phase: &str) -> Profile {
    let names = [INSTRUCTIONS, ENTRIES, LOADS, STORES];
    let mut costs = CostTable::new(names.map(Cost::new));
    let name = || model::Name::from("do_anonymous_page");
    let function =
        |name: &str, module: &str| Place::Function { name: name.into(), module: module.into() };
    costs.push(
        Place::Memory(Privilege::User, Target::Node(1)),
        [Cell::new(2, 1, 5), Cell::new(3, 1, 3)],
    );
    costs.push(Place::Path(vec![name(), name()]), [Cell::new(0, ALL_CPUS, 9)]);
    for function in [function(&name(), ""), function("ext4_da_map", "ext4")] {
        costs.push(function, [Cell::new(0, 0, u64::MAX), Cell::new(1, 0, 1)]);
    }
    let all = [(Privilege::Kernel, 2), (Privilege::User, 1), (Privilege::Firmware, 3)];
    for (privilege, instructions) in all {
        costs.push(
            Place::All(privilege),
            [Cell::new(0, 0, instructions), Cell::new(0, 1, instructions)],
        );
    }
    Profile {
        workload: "autonuma".into(),
        iteration: 1,
        phase: phase.into(),
        costs,
        ..Profile::default()
    }
}

fn chunk(source: &str, iteration: u32, boot_index: u32) -> Chunk {
    let value = |counter: i64, time: i64| {
        (counter + time) % 7 * (1 + i64::from(boot_index)) - 3 * i64::from(iteration)
    };
    let columns = (0..20).map(|counter| Column {
        name: format!("node0 counter_{counter}"),
        values: (0..50).map(|time| (counter != time % 20).then(|| value(counter, time))).collect(),
    });
    Chunk {
        workload: "autonuma".into(),
        iteration,
        phase: "steady".into(),
        source: source.into(),
        times: (0..50).map(|time| time * 1_000_000_007).collect(),
        columns: columns.collect(),
    }
}
