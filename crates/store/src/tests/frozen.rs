//! Tests of stores that cannot be written. Root can write everything, so another user reads them. The reader
//! of a store on a full disk is a process that cannot write more (`ulimit -f`).

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use model::Outcome;

use super::{StoreFile, boot};
use crate::sqlite::Sqlite;
use crate::{Archive, Detail};

const READ: &str = "FAULTLINE_TEST_READ";
const NOBODY: u32 = 65534;

/// Reads a store and prints what it has. Runs only in a process that a test below starts.
#[test]
fn reader() {
    let Ok(path) = env::var(READ) else { return };
    let read = || -> Result<String, crate::Error> {
        let mut store = Sqlite::open_to_read(Path::new(&path))?;
        let id = store.find_experiment("numa")?;
        let boots = store.boots(id, Detail::Whole)?.len();
        let (frozen, note) = (store.is_frozen(), store.note_experiment(id, "x"));
        drop(store);
        let writer = Sqlite::open(Path::new(&path)).map(|_| ());
        let mut refused = [note, writer].map(|it| it.unwrap_err().to_string()).to_vec();
        refused.dedup();
        Ok(format!("{boots} boots, frozen {frozen}; {}", refused.join("; ")))
    };
    println!("\ntold: {}", read().unwrap_or_else(|error| error.to_string()));
}

fn told(file: &StoreFile) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY);
    }
    told_by(file, command)
}

fn told_on_full_disk(file: &StoreFile) -> String {
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(env::current_exe().unwrap());
    told_by(file, command)
}

fn told_by(file: &StoreFile, mut command: Command) -> String {
    command.args(["--exact", "tests::frozen::reader", "--nocapture"]).env(READ, &file.path);
    let output = command.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let told = out.lines().find_map(|line| line.strip_prefix("told: "));
    let error = || panic!("{out}{}", String::from_utf8_lossy(&output.stderr));
    told.unwrap_or_else(error).replace(file.path.to_str().unwrap(), "STORE")
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Removes everybody's write permission on the store and its directory.
fn close(file: &StoreFile) {
    let directory = file.path.parent().unwrap();
    let root = directory.parent().and_then(Path::parent).unwrap();
    for directory in [root, directory.parent().unwrap(), directory] {
        mode(directory, 0o555);
    }
    for entry in fs::read_dir(directory).unwrap() {
        mode(&entry.unwrap().path(), 0o444);
    }
}

fn reopen(file: &StoreFile) {
    mode(file.path.parent().unwrap(), 0o755);
}

fn kept() -> (StoreFile, Sqlite) {
    let (file, mut store, id) = StoreFile::with_numa();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    (file, store)
}

const UNWRITTEN: &str = "STORE: it cannot be written: make the file and its directory writable, or copy the \
    file to another directory and name the copy (--store)";

#[test]
fn a_store_that_cannot_be_written_is_read() {
    let (file, store) = kept();
    drop(store);
    let before = fs::read(&file.path).unwrap();
    close(&file);
    assert_eq!(told(&file), format!("1 boots, frozen true; {UNWRITTEN}"));
    // Reading creates no files in a writable directory, because the store's owner could not write them.
    mode(file.path.parent().unwrap(), 0o777);
    assert_eq!(told(&file), format!("1 boots, frozen true; {UNWRITTEN}"));
    assert_eq!(fs::read_dir(file.path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(fs::read(&file.path).unwrap(), before);
}

#[test]
fn a_store_that_its_owner_has_open_is_read_completely() {
    let (file, mut store) = kept();
    close(&file);
    let id = store.find_experiment("numa").unwrap();
    store.keep_boot(id, &boot("6.1", 1, Outcome::Complete)).unwrap();
    assert_eq!(told(&file), format!("2 boots, frozen false; {UNWRITTEN}"));
    reopen(&file);
}

/// A store as a killed process left it, copied without `-shm`.
fn killed() -> StoreFile {
    let (file, store) = kept();
    let log = file.path.with_file_name("faultline.db-wal");
    let [main, last] = [&file.path, &log].map(|path| fs::read(path).unwrap());
    assert!(!last.is_empty());
    drop(store);
    fs::write(&file.path, main).unwrap();
    fs::write(log, last).unwrap();
    file
}

#[test]
fn data_in_the_log_is_never_ignored() {
    let file = killed();
    close(&file);
    let told = told(&file);
    assert!(
        told.starts_with(
            "STORE: it cannot be written, and the latest data is in STORE-wal beside it"
        ),
        "{told}"
    );
    reopen(&file);
}

#[test]
fn a_store_on_a_full_disk_is_read_completely() {
    let (whole, store) = kept();
    drop(store);
    for file in [whole, killed()] {
        let told = told_on_full_disk(&file);
        assert!(told.starts_with("1 boots, frozen false; STORE: "), "{told}");
        assert!(told.contains("; STORE: the disk is full"), "{told}");
        let store = file.open();
        assert_eq!(store.boots(crate::ExperimentId(1), Detail::Whole).unwrap().len(), 1);
    }
}

#[test]
fn a_path_with_letters_of_uris_is_read() {
    let (file, store) = kept();
    drop(store);
    let odd = file.path.with_file_name("a b?mode=memory#%41.db");
    fs::rename(&file.path, &odd).unwrap();
    let file = StoreFile { path: odd, ..file };
    close(&file);
    assert_eq!(told(&file), format!("1 boots, frozen true; {UNWRITTEN}"));
    reopen(&file);
}
