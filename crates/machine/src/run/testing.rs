//! Shell scripts that behave like QEMU.

use std::fs;
use std::path::Path;

use flight::Event;
use flight::frame::{self, Kind};
use flight::log::Cursor;
use model::Millis;

/// A limit that is long enough on a busy host.
pub const LONG: Millis = Millis(600_000);
/// A limit for scripts that never end.
pub const SHORT: Millis = Millis(300);
/// A script that runs forever. When it is killed, no pipe remains open.
pub const HANG: &str = "exec sleep 1000000";

/// Shell code that writes these events to the recorder whose path is among the arguments.
pub fn recording(directory: &Path, events: &[Event]) -> String {
    let mut cursor = Cursor::new(1 << 20);
    let mut log = Vec::new();
    for event in events {
        let payload = event.encode().unwrap();
        let reserved = cursor.reserve(Kind::Event, payload.len()).unwrap();
        log.extend(frame::header(Kind::Event, reserved.sequence, 7, &payload));
        log.extend(payload);
        log.resize(log.len().next_multiple_of(frame::ALIGNMENT), 0);
    }
    let path = directory.join("frames");
    fs::write(&path, log).unwrap();
    format!(
        "for argument; do case $argument in *mem-path=*) recorder=${{argument##*mem-path=}}; esac; \
         done\ndd if={} of=\"$recorder\" conv=notrunc status=none",
        path.display()
    )
}
