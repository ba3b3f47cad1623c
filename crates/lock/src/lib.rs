//! Locks between processes. [`wait`] is the only function that waits for a lock. It says for what, for whom and since
//! when, and does not wait for ever.
//!
//! The kernel itself tells who holds a lock (`/proc/locks`), so lock files are empty. A file is modified when its
//! lock is taken, so its time stamp tells since when the lock is held.

mod holder;

use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

pub use holder::{Holder, age, holder, waiting};

/// The time after which a wait is mentioned for the first time. Most waits are shorter.
const FIRST: Duration = Duration::from_millis(500);
/// The time after which it is mentioned again, and the time between further mentions.
const SECOND: Duration = Duration::from_secs(60);
const FURTHER: Duration = Duration::from_secs(300);
/// The time limit for the lock on a file. A holder builds or fetches something, which takes an hour at most, and
/// others may be waiting too.
const PATIENCE: Duration = Duration::from_secs(6 * 3600);

/// The largest error when the time stamp of a file is compared with the start of a process.
const SLACK: Duration = Duration::from_secs(1);

/// A lock that another process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The file whose lock is held.
    pub path: PathBuf,
    /// The process that holds the lock, if the system tells.
    pub holder: Option<Holder>,
    /// The time for which it has held the lock, if that is known.
    pub span: Option<Duration>,
}

impl Held {
    /// The lock on this file; `None` if no other process holds it, or the system does not tell.
    pub fn now(path: &Path) -> Option<Self> {
        Some(Self::of(path)).filter(|held| held.holder.is_some())
    }

    /// The lock on this file, which another process held just now.
    fn of(path: &Path) -> Self {
        let time = path.metadata().and_then(|it| it.modified()).ok();
        let span = time.and_then(|time| SystemTime::now().duration_since(time).ok());
        let holder = holder(&[path.to_owned()]);
        // Other programs, such as flock(1), do not modify the file, so the span must not exceed the age of the
        // process.
        let age = holder.as_ref().and_then(|holder| holder::age(holder.process));
        let span = span.filter(|span| age.is_none_or(|age| *span <= age + SLACK));
        Self { path: path.to_owned(), holder, span }
    }

    /// Who holds the lock, in words.
    pub fn by(&self) -> String {
        self.holder.as_ref().map_or("another process".to_owned(), Holder::to_string)
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, by) = (holder::escaped(&self.path.to_string_lossy()), self.by());
        match self.span {
            Some(span) => write!(f, "{path} has been locked for {} by {by}", text(span)),
            None => write!(f, "{path} is locked by {by}"),
        }
    }
}

/// A duration as text: `48 s`, `57 min`, `2 h 5 min`.
pub fn text(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Repeats `attempt` until it has the lock. Says within a second that it waits `what_for` (such as `to build a
/// kernel`) and who holds the lock, again after a minute, and then every five minutes. `attempt` must wait at most
/// about the given time, and return `None` if the lock is still held. The inner error says who holds the lock when
/// `patience` is over. Fails when `attempt` does.
pub fn wait<T, E>(
    (what_for, patience): (&str, Duration),
    held: impl Fn() -> Held,
    say: &dyn Fn(&str),
    mut attempt: impl FnMut(Duration) -> Result<Option<T>, E>,
) -> Result<Result<T, Held>, E> {
    let begun = Instant::now();
    let mut due = FIRST;
    loop {
        let passed = begun.elapsed();
        let pause = due.min(patience).saturating_sub(passed);
        if let Some(got) = attempt(pause)? {
            return Ok(Ok(got));
        }
        let passed = begun.elapsed();
        if passed >= patience {
            return Ok(Err(held()));
        }
        if passed >= due {
            let held = held();
            say(&match due {
                FIRST => format!("Waiting {what_for}: {held}"),
                _ => format!("Still waiting {what_for}, {} so far: {held}", text(passed)),
            });
            due = if due == FIRST { SECOND } else { passed + FURTHER };
        }
    }
}

/// Takes the lock on a file, which is created if it is missing (flock(2)). The inner error says who holds it. Fails
/// when the file cannot be opened or locked.
pub fn try_take(path: &Path) -> io::Result<Result<File, Held>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Ok(stamped(file))),
        Err(TryLockError::WouldBlock) => Ok(Err(Held::of(path))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Takes the lock like [`try_take`], but waits for it as [`wait`] does, for at most six hours.
pub fn take(path: &Path, what_for: &str, say: &dyn Fn(&str)) -> io::Result<Result<File, Held>> {
    take_within(path, (what_for, PATIENCE), say)
}

/// Takes the lock like [`take`], but waits for at most the time `patience`.
pub fn take_within(
    path: &Path,
    (what_for, patience): (&str, Duration),
    say: &dyn Fn(&str),
) -> io::Result<Result<File, Held>> {
    let file = open(path)?;
    match file.try_lock() {
        Ok(()) => return Ok(Ok(stamped(file))),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // A thread waits, because a process that only tries now and then would rarely get a lock that another one takes
    // again and again. If the receiver is gone, the thread closes the file, which releases the lock.
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new().spawn(move || {
        let _ = sender.send(file.lock().map(|()| file));
    })?;
    let attempt = |pause| match receiver.recv_timeout(pause) {
        Ok(locked) => locked.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the waiting thread ended")),
    };
    Ok(wait((what_for, patience), || Held::of(path), say, attempt)?.map(stamped))
}

/// Opens a lock file. It is opened for reading too, because it is the standard input of builds.
fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

/// Sets the file's time stamp to the moment at which the lock was taken. An error is ignored: others then cannot say
/// since when the lock is held.
fn stamped(file: File) -> File {
    let _ = file.set_modified(SystemTime::now());
    file
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A process that holds the lock on a file.
    struct Other(Child);

    impl Other {
        fn holding(path: &Path) -> Self {
            let mut command = Command::new("flock");
            let command = command.arg("--no-fork").arg(path).args(["sleep", "1000000"]);
            let other = Self(command.stdin(Stdio::null()).spawn().unwrap());
            // The process executes `sleep` when it has the lock.
            let place = format!("/proc/{}/cmdline", other.0.id());
            while !std::fs::read(&place).unwrap().starts_with(b"sleep") {
                thread::sleep(Duration::from_millis(5));
            }
            other
        }
    }

    impl Drop for Other {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_wait_says_for_what_for_whom_and_since_when() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        drop(try_take(&path).unwrap().unwrap());
        // flock(1) does not modify the file, whose time stamp is that of an earlier holder.
        let then = SystemTime::now() - Duration::from_secs(57 * 60 + 5);
        open(&path).unwrap().set_modified(then).unwrap();
        let other = RefCell::new(Some(Other::holding(&path)));
        let process = other.borrow().as_ref().unwrap().0.id();
        let shown = path.display();
        let expected = format!("{shown} is locked by process {process} (`sleep 1000000`)");
        let held = try_take(&path).unwrap().unwrap_err();
        assert_eq!(held.to_string(), expected);
        let said = RefCell::new(Vec::new());
        let file = take(&path, "to build a kernel", &|line| {
            said.borrow_mut().push(line.to_owned());
            other.take();
        });
        file.unwrap().unwrap();
        assert_eq!(*said.borrow(), [format!("Waiting to build a kernel: {expected}")]);
        // The next process sees the new time stamp.
        let _file = try_take(&path).unwrap().unwrap();
        let held = try_take(&path).unwrap().unwrap_err();
        assert!(held.span.unwrap() < Duration::from_secs(600), "{held}");
        let span = Some(Duration::from_secs(57 * 60 + 5));
        let said = Held { holder: None, span, ..held }.to_string();
        assert_eq!(said, format!("{shown} has been locked for 57 min by another process"));
    }

    #[test]
    fn those_who_hold_and_wait_are_told_and_a_killed_holder_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let holder = Other::holding(&path);
        let mut command = Command::new("flock");
        let command = command.arg("--no-fork").arg(&path).args(["sleep", "1000001"]);
        let waiter = Other(command.stdin(Stdio::null()).spawn().unwrap());
        let processes = || -> Vec<u32> { waiting(&path).iter().map(|it| it.process).collect() };
        let until = |is_so: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !is_so() {
                assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", processes());
                thread::sleep(Duration::from_millis(5));
            }
        };
        until(&|| processes() == [waiter.0.id()]);
        let holds = |id: u32| Held::now(&path).is_some_and(|it| it.holder.unwrap().process == id);
        assert!(holds(holder.0.id()));
        // SIGKILL ends the holder, and the next one has the lock.
        drop(holder);
        until(&|| holds(waiter.0.id()) && processes().is_empty());
        drop(waiter);
        assert_eq!(Held::now(&path), None);
    }

    #[test]
    fn a_wait_is_bounded_and_said_again() {
        let nobody = || Held { path: "x".into(), holder: None, span: None };
        let said = RefCell::new(Vec::new());
        let say = |line: &str| said.borrow_mut().push(line.to_owned());
        let tries = Cell::new(0);
        let attempt = |pause: Duration| {
            assert!(pause <= FIRST);
            tries.set(tries.get() + 1);
            thread::sleep(pause);
            Ok::<Option<()>, ()>(None)
        };
        let ended = wait(("to write", FIRST + Duration::from_millis(100)), nobody, &say, attempt);
        assert_eq!(ended, Ok(Err(nobody())));
        assert_eq!(*said.borrow(), ["Waiting to write: x is locked by another process"]);
        assert_eq!(tries.get(), 2);
        assert_eq!(wait(("", FIRST), nobody, &say, |_| Err::<Option<()>, _>("gone")), Err("gone"));
    }

    #[test]
    fn spans_are_written_as_text() {
        let written = [0, 59, 60, 3599, 7500].map(|seconds| text(Duration::from_secs(seconds)));
        assert_eq!(written, ["0 s", "59 s", "1 min", "59 min", "2 h 5 min"]);
    }
}
