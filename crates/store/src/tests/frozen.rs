//! Stores that cannot be written. Root may write everything, so the reader runs as another user. On a full
//! disk it is a user who may write no more (`ulimit -f`).

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use model::Outcome;

use super::{Place, boot, experiment};
use crate::{Detail, Store};

const READ: &str = "FAULTLINE_TEST_READ";
const NOBODY: u32 = 65534;

/// Reads a store and reports what it has, in a process that a test below started; does nothing elsewhere.
#[test]
fn reader() {
    let Ok(path) = env::var(READ) else { return };
    let read = || -> Result<String, crate::Error> {
        let mut store = Store::open_to_read(Path::new(&path))?;
        let id = store.find_experiment("numa")?;
        let boots = store.boots(id, Detail::Whole)?.len();
        let (frozen, note) = (store.is_frozen(), store.note_experiment(id, "x"));
        drop(store);
        let writer = Store::open(Path::new(&path)).map(|_| ());
        let mut refused = [note, writer].map(|it| it.unwrap_err().to_string()).to_vec();
        refused.dedup();
        Ok(format!("{boots} boots, frozen {frozen}; {}", refused.join("; ")))
    };
    println!("\ntold: {}", read().unwrap_or_else(|error| error.to_string()));
}

fn told(place: &Place) -> String {
    let mut command = Command::new(env::current_exe().unwrap());
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(NOBODY);
    }
    told_by(place, command)
}

fn told_on_full_disk(place: &Place) -> String {
    let mut command = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    command.args(["-c", script]).arg(env::current_exe().unwrap());
    told_by(place, command)
}

fn told_by(place: &Place, mut command: Command) -> String {
    command.args(["--exact", "tests::frozen::reader", "--nocapture"]).env(READ, &place.path);
    let output = command.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let told = out.lines().find_map(|line| line.strip_prefix("told: "));
    let error = || panic!("{out}{}", String::from_utf8_lossy(&output.stderr));
    told.unwrap_or_else(error).replace(place.path.to_str().unwrap(), "STORE")
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Removes everybody's write permission on the store and its directory.
fn close(place: &Place) {
    let directory = place.path.parent().unwrap();
    let root = directory.parent().and_then(Path::parent).unwrap();
    for directory in [root, directory.parent().unwrap(), directory] {
        mode(directory, 0o555);
    }
    for entry in fs::read_dir(directory).unwrap() {
        mode(&entry.unwrap().path(), 0o444);
    }
}

fn reopen(place: &Place) {
    mode(place.path.parent().unwrap(), 0o755);
}

fn kept() -> (Place, Store) {
    let place = Place::new();
    let mut store = place.open();
    let id = store.keep_experiment(&experiment("numa")).unwrap();
    store.keep_boot(id, &boot("6.1", 0, Outcome::Complete)).unwrap();
    (place, store)
}

const UNWRITTEN: &str = "STORE: it cannot be written: let its file and its directory be written, or copy it \
                         to where you may, and name the copy (--store)";

#[test]
fn a_store_that_cannot_be_written_is_read() {
    let (place, store) = kept();
    drop(store);
    let before = fs::read(&place.path).unwrap();
    close(&place);
    assert_eq!(told(&place), format!("1 boots, frozen true; {UNWRITTEN}"));
    // A directory that can be written gets no files that its owner could not write.
    mode(place.path.parent().unwrap(), 0o777);
    assert_eq!(told(&place), format!("1 boots, frozen true; {UNWRITTEN}"));
    assert_eq!(fs::read_dir(place.path.parent().unwrap()).unwrap().count(), 1);
    assert_eq!(fs::read(&place.path).unwrap(), before);
}

#[test]
fn a_store_that_its_owner_has_open_is_read_with_all_that_was_kept() {
    let (place, mut store) = kept();
    close(&place);
    let id = store.find_experiment("numa").unwrap();
    store.keep_boot(id, &boot("6.1", 1, Outcome::Complete)).unwrap();
    assert_eq!(told(&place), format!("2 boots, frozen false; {UNWRITTEN}"));
    reopen(&place);
}

/// A store as a killed process left it, copied without `-shm`.
fn killed() -> Place {
    let (place, store) = kept();
    let log = place.path.with_file_name("faultline.db-wal");
    let [main, last] = [&place.path, &log].map(|path| fs::read(path).unwrap());
    assert!(!last.is_empty());
    drop(store);
    fs::write(&place.path, main).unwrap();
    fs::write(log, last).unwrap();
    place
}

#[test]
fn what_was_kept_last_is_never_passed_over() {
    let place = killed();
    close(&place);
    let told = told(&place);
    assert!(
        told.starts_with("STORE: it cannot be written, and STORE-wal beside it holds"),
        "{told}"
    );
    reopen(&place);
}

#[test]
fn a_store_on_a_full_disk_is_read_with_all_that_was_kept() {
    let (whole, store) = kept();
    drop(store);
    for place in [whole, killed()] {
        let told = told_on_full_disk(&place);
        assert!(told.starts_with("1 boots, frozen false; STORE: "), "{told}");
        assert!(told.contains("; STORE: no room is left on the disk"), "{told}");
        let store = place.open();
        assert_eq!(store.boots(crate::ExperimentId(1), Detail::Whole).unwrap().len(), 1);
    }
}

#[test]
fn an_older_version_is_not_read_without_being_brought_up_to_date() {
    let (place, store) = kept();
    drop(store);
    place.as_of_old("");
    close(&place);
    let told = told(&place);
    assert!(told.contains("its schema is version 7, which has to become version 9"), "{told}");
    reopen(&place);
}

#[test]
fn a_path_with_letters_of_uris_is_read() {
    let (place, store) = kept();
    drop(store);
    let odd = place.path.with_file_name("a b?mode=memory#%41.db");
    fs::rename(&place.path, &odd).unwrap();
    let place = Place { path: odd, ..place };
    close(&place);
    assert_eq!(told(&place), format!("1 boots, frozen true; {UNWRITTEN}"));
    reopen(&place);
}
