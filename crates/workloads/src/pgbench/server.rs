//! A PostgreSQL server with its own database. It runs as the user that it requires.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::program::{Program, ProgramError, end_of};
use super::super::{Result, While, WorkloadError};

/// The directory of the programs of this version in Debian.
const PROGRAMS: &str = "/usr/lib/postgresql/15/bin";
/// The user, from the user space's `/etc/passwd`.
const USER: &str = "postgres";
const ACCOUNTS: &str = "/etc/passwd";
/// The directory of the server's sockets.
const SOCKETS: &str = "/tmp";
/// The database, which every server has from the start.
const DATABASE: &str = "postgres";
/// Returns when no other client is connected. The server counts all transactions of a connection only when its
/// process ends, which may be after the client has ended (`pgstat_report_stat`).
const CLIENTS_LEFT: &str = "DO $$ BEGIN \
    WHILE EXISTS (SELECT FROM pg_stat_activity \
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) \
    LOOP PERFORM pg_sleep(0.01); PERFORM pg_stat_clear_snapshot(); END LOOP; END $$";
/// The longest time for the server's recovery, in seconds.
const PATIENCE: &str = "600";
/// The longest time until the server's processes end after their clients.
const FAREWELL: Duration = Duration::from_secs(300);

/// A server that runs, and its database.
pub struct Server {
    place: PathBuf,
    user: (u32, u32),
}

impl Server {
    /// Makes the directory `place` with a database, and starts a server for `clients` clients. Its shared buffers are
    /// a fifth of the memory, as usual.
    pub fn start(place: &Path, memory: u64, clients: u32) -> Result<Self> {
        let accounts = fs::read_to_string(ACCOUNTS).while_(ACCOUNTS)?;
        let no_user = || io::Error::new(io::ErrorKind::NotFound, format!("no user {USER}"));
        let user = account(&accounts, USER).ok_or_else(no_user).while_(ACCOUNTS)?;
        fs::create_dir(place).while_(place.display().to_string())?;
        chown(place, Some(user.0), Some(user.1)).while_(place.display().to_string())?;
        let server = Self { place: place.to_owned(), user };
        let data = server.data();
        let how = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"];
        server.program("initdb").args(how).args([&data]).run()?;
        let log = place.join("server.log");
        let settings = settings(memory, clients);
        let start = ["start", "-w", "-t", PATIENCE, "-o", &settings];
        let started = server
            .program("pg_ctl")
            .args(start)
            .args(["-D".into(), data, "-l".into(), log.clone()])
            .run();
        match started {
            Ok(_) => Ok(server),
            Err(error) => {
                let said = end_of(&log);
                Err(WorkloadError::Child(format!("{error}; the server's log: {said}")))
            }
        }
    }

    /// The server's directory, which pgbench may write to.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// A program that runs pgbench with these arguments.
    pub fn pgbench(&self, arguments: impl IntoIterator<Item = impl AsRef<str>>) -> Program {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        let program = self.program("pgbench").args(["-h", SOCKETS, "-U", USER]);
        program.args(arguments).args([DATABASE])
    }

    /// How many transactions the server has counted in the database since it was made (`pg_stat_database`). This
    /// includes all clients that have ended.
    pub fn commits(&self) -> Result<i64, ProgramError> {
        let query =
            format!("SELECT xact_commit FROM pg_stat_database WHERE datname = '{DATABASE}'");
        let output = self.psql(&[CLIENTS_LEFT, &query]).limit(FAREWELL).run()?;
        let text = output.text.trim();
        text.parse().map_err(|_| ProgramError::Garbage {
            program: "psql".into(),
            problem: format!("`{}` is not a count", text.chars().take(80).collect::<String>()),
        })
    }

    /// Writes the server's changes to the disk, which it would otherwise do later.
    pub fn checkpoint(&self) -> Result<(), ProgramError> {
        self.psql(&["CHECKPOINT"]).run().map(drop)
    }

    /// A program that runs these commands in psql, one after the other.
    fn psql(&self, commands: &[&str]) -> Program {
        let how = ["-h", SOCKETS, "-U", USER, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"];
        let commands = commands.iter().flat_map(|command| ["-c", *command]);
        self.program("psql").args(how).args(commands).args([DATABASE])
    }

    /// Stops the server, and removes the database.
    pub fn stop(self) -> Result<()> {
        let how = ["stop", "-w", "-t", PATIENCE, "-m", "fast", "-D"];
        self.program("pg_ctl").args(how).args([self.data()]).run()?;
        fs::remove_dir_all(&self.place).while_(self.place.display().to_string())
    }

    fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    fn program(&self, name: &str) -> Program {
        let program = Program::new(Path::new(PROGRAMS).join(name));
        program.user(self.user.0, self.user.1).directory(&self.place)
    }
}

/// The server's settings as options of its command line. They assume that three quarters of the memory cache its
/// files, as usual.
fn settings(memory: u64, clients: u32) -> String {
    let mib = memory >> 20;
    let settings = [
        "listen_addresses=".to_owned(),
        format!("unix_socket_directories={SOCKETS}"),
        format!("shared_buffers={}MB", (mib / 5).max(1)),
        format!("effective_cache_size={}MB", (mib * 3 / 4).max(1)),
        format!("max_connections={}", clients + 10),
        // The code of compiled queries depends on the distribution, not on the kernel.
        "jit=off".to_owned(),
    ];
    settings.map(|setting| format!("-c {setting}")).join(" ")
}

/// The user and group IDs of a name in the text of passwd(5).
fn account(text: &str, name: &str) -> Option<(u32, u32)> {
    let mut accounts = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let account = accounts.find(|fields| fields.first() == Some(&name))?;
    Some((account.get(2)?.parse().ok()?, account.get(3)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_found_by_name() {
        let text = "root:x:0:0::/root:/bin/sh\ndamaged\npostgres:x:999:998::/tmp:/bin/sh\n";
        assert_eq!(account(text, "postgres"), Some((999, 998)));
        assert_eq!(account(text, "nobody"), None);
        assert_eq!(account("postgres:x:many\n", "postgres"), None);
    }

    #[test]
    fn settings_are_relative_to_the_memory() {
        let settings = settings(2 << 30, 32);
        for expected in
            ["shared_buffers=409MB", "effective_cache_size=1536MB", "max_connections=42"]
        {
            assert!(settings.contains(&format!("-c {expected}")), "{settings}");
        }
    }
}
