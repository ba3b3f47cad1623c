//! The lines that CPUs have: those that were accessed of late by virtual address, and all of them by physical address.

use std::sync::{Mutex, PoisonError};

use super::directory::{Bytes, Directory, Taken};
use super::filter::Filter;

/// The lines of all CPUs.
pub struct Lines {
    recent: Vec<Filter>,
    directory: Mutex<Directory>,
}

impl Lines {
    /// No lines, of CPUs on these nodes.
    pub fn new(nodes: &[u16]) -> Self {
        let recent = nodes.iter().map(|_| Filter::new()).collect();
        Self { recent, directory: Mutex::new(Directory::new(nodes)) }
    }

    /// Whether an access by virtual address takes nothing from others, as far as that is known without the physical
    /// address. Then it is done.
    #[inline]
    pub fn has(&self, cpu: usize, address: u64, bytes: Bytes, stores: bool) -> bool {
        self.recent[cpu].has(address, bytes, stores)
    }

    /// A CPU accesses bytes of a line at a virtual and physical address. Returns what it takes from others.
    pub fn access(
        &self,
        cpu: usize,
        (address, physical): (u64, u64),
        bytes: Bytes,
        stores: bool,
    ) -> Option<Taken> {
        let directory = &mut *self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        let copies = directory.copies(physical);
        for (other, recent) in self.recent.iter().enumerate() {
            // A load changes nothing for others if the CPU has a copy.
            let has = copies >> cpu & 1 != 0;
            if other != cpu && copies >> other & 1 != 0 && (stores || !has) {
                let written = recent.shares(physical, stores);
                written.for_each(|(line, bytes)| directory.wrote(line, bytes));
            }
        }
        let taken = directory.access(cpu, physical, bytes, stores);
        if let Some((forgotten, written)) = self.recent[cpu].got(address, physical, stores) {
            directory.wrote(forgotten, written);
        }
        taken
    }

    /// The virtual addresses of a CPU may have other physical ones from now on.
    pub fn flush(&self, cpu: usize) {
        let directory = &mut *self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        self.recent[cpu].flush().for_each(|(line, written)| directory.wrote(line, written));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::transfers::PAGE;
    use crate::transfers::directory::LINE;

    const NODES: [u16; 3] = [0, 0, 1];

    /// A CPU's access to a byte of a line on a page, or a change of all virtual addresses.
    #[derive(Clone, Debug)]
    enum Event {
        Access { cpu: usize, page: u64, line: u64, byte: u32, stores: bool },
        Remap(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        let access = (0..NODES.len(), 0..20_u64, 0..3_u64, 0..4_u32, any::<bool>());
        prop_oneof![
            30 => access.prop_map(|(cpu, page, line, byte, stores)| {
                Event::Access { cpu, page, line, byte, stores }
            }),
            1 => (0..9_u64).prop_map(Event::Remap),
        ]
    }

    proptest! {
        // Several virtual pages have one physical page, and pages share an entry of the filter.
        #[test]
        fn recent_lines_change_no_transfer(events in prop::collection::vec(event(), 0..400)) {
            let (lines, mut directory, mut map) = (Lines::new(&NODES), Directory::new(&NODES), 0);
            for event in events {
                match event {
                    Event::Remap(other) => {
                        map = other;
                        (0..NODES.len()).for_each(|cpu| lines.flush(cpu));
                    }
                    Event::Access { cpu, page, line, byte, stores } => {
                        let (address, bytes) = (page * PAGE + line * LINE, 1 << byte);
                        let physical = (page + map) % 7 * PAGE + line * LINE;
                        let expected = directory.access(cpu, physical, bytes, stores);
                        let found = match lines.has(cpu, address, bytes, stores) {
                            true => None,
                            false => lines.access(cpu, (address, physical), bytes, stores),
                        };
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }
}
