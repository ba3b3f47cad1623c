//! Reads QMP events of QEMU while it runs. They say why it ends, and whether the guest is stopped
//! (`docs/interop/qmp-spec.rst` and `qapi/run-state.json` of QEMU).

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

/// The time limit for the last messages to arrive after QEMU has ended. On a busy host the thread that reads them can
/// be late, and without them a regular end looks like a failure.
const LAST_WORDS: Duration = Duration::from_secs(60);
/// The longest line that is read, in bytes.
const LONGEST: u64 = 1 << 20;
/// The events that are evaluated.
const KNOWN: [&str; 3] = ["SHUTDOWN", "STOP", "RESUME"];

/// A connection to QEMU by QMP.
pub struct Monitor {
    messages: Receiver<Message>,
    /// This stays open, because QEMU treats the end of its input as the end of the connection.
    _input: ChildStdin,
}

/// The information received from QEMU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The cause of its end, a `ShutdownCause` such as `guest-shutdown` or `host-signal`.
    pub cause: Option<String>,
    /// Whether the guest's CPUs were stopped at the end.
    pub stopped: bool,
}

/// An event message; other messages are ignored.
#[derive(Deserialize)]
struct Message {
    event: String,
    #[serde(default)]
    data: Data,
}

#[derive(Default, Deserialize)]
struct Data {
    reason: Option<String>,
}

impl Monitor {
    /// Starts to read the QMP of a process that was just started, and lets its guest start. So no event is missed, and
    /// QEMU's main loop does not handle these commands while the guest runs.
    pub fn attach(mut input: ChildStdin, output: ChildStdout) -> Self {
        let (sender, messages) = mpsc::channel();
        // An error means that QEMU has already ended, which the caller notices.
        let _ = input.write_all(b"{\"execute\": \"qmp_capabilities\"}\n{\"execute\": \"cont\"}\n");
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            let mut next = |line: &mut Vec<u8>| {
                line.clear();
                (&mut output).take(LONGEST).read_until(b'\n', line).is_ok_and(|read| read > 0)
            };
            // A line that is too long arrives in parts, which cannot be parsed as messages.
            while next(&mut line) {
                if let Ok(message) = serde_json::from_slice::<Message>(&line)
                    && KNOWN.contains(&&*message.event)
                    && sender.send(message).is_err()
                {
                    break;
                }
            }
        });
        Self { messages, _input: input }
    }

    /// All information received, after QEMU has ended.
    pub fn last_words(self) -> Heard {
        let end = Instant::now() + LAST_WORDS;
        let left = || end.saturating_duration_since(Instant::now());
        let mut heard = Heard::default();
        while let Ok(message) = self.messages.recv_timeout(left()) {
            heard.record(message);
        }
        heard
    }
}

impl Heard {
    fn record(&mut self, message: Message) {
        match message.event.as_str() {
            "SHUTDOWN" => self.cause = message.data.reason,
            "STOP" => self.stopped = true,
            "RESUME" => self.stopped = false,
            _ => {}
        }
    }
}
