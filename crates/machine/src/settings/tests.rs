use super::*;

/// A host below a temporary directory, with these files and the identity of its kernel.
struct Host {
    place: tempfile::TempDir,
}

impl Host {
    fn new(files: &[(&str, &str)]) -> Self {
        let host = Self { place: tempfile::tempdir().unwrap() };
        host.write(&format!("/{BOOT_ID}"), "one");
        files.iter().for_each(|(path, text)| host.write(path, text));
        host
    }

    fn root(&self) -> PathBuf {
        self.place.path().join("root")
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(&path[1..])).unwrap().trim().to_owned()
    }

    /// A run on it. A killed one is dropped without putting anything back.
    fn run(&self) -> HostSettings {
        HostSettings::at(self.place.path().join("state"), &self.root())
    }

    fn journal(&self) -> PathBuf {
        self.place.path().join("state").join(JOURNAL)
    }
}

const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

fn sysctl(name: &str, value: &str) -> Setting {
    Setting::Sysctl { name: name.into(), value: value.into() }
}

fn sysfs(path: &str, value: &str) -> Setting {
    Setting::Sysfs { path: path.into(), value: value.into() }
}

/// A program that another test starts holds the lock of a run that ended, until it is executed.
const PATIENCE: Duration = Duration::from_secs(60);

fn begun(host: &Host) -> HostSettings {
    let run = host.run();
    assert_eq!(run.begin(PATIENCE, &|_| ()).unwrap(), PutBack::default());
    run
}

/// What the next start puts back.
fn recovered(host: &Host) -> PutBack {
    host.run().begin(PATIENCE, &|_| ()).unwrap()
}

#[test]
fn a_session_ends_with_the_former_values() {
    let host = Host::new(&[(SWAPPINESS, "60\n"), (THP, "always [madvise] never\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("vm.swappiness", "10"), sysfs(THP, "never")]).unwrap();
    assert_eq!((host.read(SWAPPINESS), host.read(THP)), ("10".into(), "never".into()));
    let back = run.put_back().unwrap();
    let expected =
        [(THP.to_owned(), "madvise".to_owned()), (SWAPPINESS.to_owned(), "60".to_owned())];
    assert_eq!((back.restored, back.left), (expected.into(), vec![]));
    assert_eq!((host.read(SWAPPINESS), host.read(THP)), ("60".into(), "madvise".into()));
    assert_eq!(fs::metadata(host.journal()).unwrap().len(), 0);
}

/// The kernel takes no write of nothing (`kernel.core_pattern`).
#[test]
fn an_empty_former_value_is_written_with_the_end_of_its_line() {
    let pattern = "/proc/sys/kernel/core_pattern";
    let host = Host::new(&[(pattern, "\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("kernel.core_pattern", "core")]).unwrap();
    assert_eq!(run.put_back().unwrap().left, [""; 0]);
    let text = fs::read_to_string(host.root().join(&pattern[1..])).unwrap();
    assert_eq!(text, "\n");
}

/// Anybody may have written the journal, and root puts back.
#[test]
fn a_journal_writes_no_other_files_than_settings() {
    let host = Host::new(&[("/etc/passwd", "root"), (SWAPPINESS, "10")]);
    let boot = || "one".to_owned();
    let mut journal = Vec::new();
    for (path, by) in [
        ("/etc/passwd", None),
        ("/proc/sys/../../etc/passwd", None),
        (SWAPPINESS, Some(("/etc/passwd".to_owned(), "60".to_owned()))),
    ] {
        let (old, new, path) = ("60".to_owned(), host.read(path), path.to_owned());
        let change = Change { boot: boot(), path, old, new, by, ..Change::default() };
        journal.extend(serde_json::to_vec(&Line::Write(change)).unwrap());
        journal.push(b'\n');
    }
    fs::create_dir_all(host.journal().parent().unwrap()).unwrap();
    fs::write(host.journal(), journal).unwrap();
    let left = host.run().recover().unwrap().left;
    assert!(left.len() == 3 && left.iter().all(|it| it.contains("is no setting")), "{left:?}");
    assert_eq!((host.read("/etc/passwd"), host.read(SWAPPINESS)), ("root".into(), "10".into()));
}

#[test]
fn the_next_start_puts_back_what_a_killed_run_left() {
    let host = Host::new(&[(SWAPPINESS, "60\n")]);
    let killed = begun(&host);
    killed.apply(&[sysctl("vm.swappiness", "10")]).unwrap();
    let next = host.run();
    assert_eq!(next.recover().unwrap(), PutBack::default(), "the run still holds the lock");
    drop(killed);
    assert_eq!(recovered(&host).lines(), ["/proc/sys/vm/swappiness is 60 again"]);
    assert_eq!(host.read(SWAPPINESS), "60");
    assert_eq!(next.recover().unwrap(), PutBack::default());
}

#[test]
fn what_somebody_else_changed_is_left_alone() {
    let host = Host::new(&[(SWAPPINESS, "60\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("vm.swappiness", "10")]).unwrap();
    host.write(SWAPPINESS, "33\n");
    let left = "/proc/sys/vm/swappiness was left alone: it is 33, which is not the 10 of this run; before it was 60";
    assert_eq!(run.put_back().unwrap().left, [left]);
    assert_eq!(host.read(SWAPPINESS), "33");
}

#[test]
fn a_new_boot_makes_the_journal_void() {
    let host = Host::new(&[(SWAPPINESS, "60\n")]);
    let killed = begun(&host);
    killed.apply(&[sysctl("vm.swappiness", "10")]).unwrap();
    drop(killed);
    host.write(&format!("/{BOOT_ID}"), "two");
    assert_eq!(recovered(&host), PutBack { void: 1, ..PutBack::default() });
    assert_eq!(host.read(SWAPPINESS), "10");
}

#[test]
fn a_kill_at_any_byte_of_the_journal_leaves_a_state_that_is_put_back() {
    let pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    let host = Host::new(&[(SWAPPINESS, "60\n"), (pages, "0\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("vm.swappiness", "10"), sysfs(pages, "100")]).unwrap();
    drop(run);
    let whole = fs::read(host.journal()).unwrap();
    let writes: Vec<usize> = whole
        .split_inclusive(|byte| *byte == b'\n')
        .scan(0, |end, line| {
            *end += line.len();
            Some((line.starts_with(b"{\"write"), *end))
        })
        .filter_map(|(is_write, end)| is_write.then_some(end))
        .collect();
    for length in 0..=whole.len() {
        // A setting is written after its line is whole. The kernel granted only a part of the pages.
        let done = writes.iter().filter(|end| length >= **end).count();
        for done in [done.saturating_sub(1), done] {
            host.write(SWAPPINESS, if done > 0 { "10\n" } else { "60\n" });
            host.write(pages, if done > 1 { "57\n" } else { "0\n" });
            let mut journal = whole[..length].to_vec();
            if length > *writes.last().unwrap() {
                let text = String::from_utf8(journal).unwrap();
                journal = text.replace("\"read\":\"100\"", "\"read\":\"57\"").into_bytes();
            }
            fs::write(host.journal(), &journal).unwrap();
            let back = recovered(&host);
            assert_eq!(
                (host.read(SWAPPINESS), host.read(pages)),
                ("60".into(), "0".into()),
                "{length} {done} {back:?}"
            );
            assert_eq!(back.left, [""; 0], "{length} {done}");
        }
    }
}

#[test]
fn a_value_is_compared_by_its_meaning() {
    for (text, value) in [
        ("always [madvise] never", "madvise"),
        ("0x0007", "7"),
        ("4096\t87380  6291456", "4096 87380 6291456"),
        ("007", "7"),
        ("-1", "-1"),
        ("performance", "performance"),
    ] {
        assert!(means(text, value), "{text} {value}");
    }
    for (text, value) in [("[always] madvise never", "never"), ("0x10", "10"), ("1 2", "1")] {
        assert!(!means(text, value), "{text} {value}");
    }
}

#[test]
fn a_file_that_cannot_be_zero_comes_back_by_its_counterpart() {
    let [bytes, ratio] = PAIRS[0];
    let host = Host::new(&[(bytes, "0\n"), (ratio, "20\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("vm.dirty_bytes", "1048576")]).unwrap();
    // The kernel does this.
    host.write(ratio, "0\n");
    let (changes, _) = journal::read(&mut File::open(host.journal()).unwrap()).unwrap();
    assert_eq!(changes[0].by, Some((ratio.to_owned(), "20".to_owned())));
    let back = run.put_back().unwrap();
    assert_eq!(host.read(ratio), "20");
    // Here no kernel sets the other file to 0.
    assert_eq!(back.left, [format!("{bytes} is 1048576 after 0 was written to it")]);
}

#[test]
fn actions_have_nothing_to_put_back() {
    let host = Host::new(&[("/proc/sys/vm/drop_caches", "0\n")]);
    let run = begun(&host);
    run.apply(&[sysctl("vm.drop_caches", "3")]).unwrap();
    assert_eq!(run.put_back().unwrap(), PutBack::default());
    assert_eq!(host.read("/proc/sys/vm/drop_caches"), "3");
}

#[test]
fn a_missing_setting_is_named_before_anything_starts() {
    let host = Host::new(&[(SWAPPINESS, "60\n")]);
    assert!(host.run().check(&sysctl("vm.swappiness", "1")).is_ok());
    let error = host.run().check(&sysctl("vm.swapiness", "1")).unwrap_err().to_string();
    assert!(error.contains("this kernel does not have it"), "{error}");
}
