//! Writes a profile, while the machine runs.

use std::io::{self, Write};

use super::record::{CHUNK, Record, VERSION, distance};
use super::{
    CallSite, Class, Cpu, Executed, MAX_BYTES, MissCount, PathCount, Phase, Process, Scope, Tick,
    TransferCount,
};
use crate::frame::{self, Kind};

/// Writes a profile's file of at most [`MAX_BYTES`]; exceeding this is an error. The bytes written before an error
/// are a valid profile, if nothing is written after it.
pub struct Writer<W> {
    out: W,
    sequence: u64,
    /// The number of bytes that may still be written.
    room: usize,
}

impl<W: Write> Writer<W> {
    /// Starts a profile in `out`, which should be unbuffered: buffered data is lost when the machine is
    /// killed. Fails when it cannot be written.
    pub fn new(out: W, scope: Scope) -> io::Result<Self> {
        let mut writer = Self { out, sequence: 0, room: MAX_BYTES };
        writer.record(&Record::Start(VERSION, scope))?;
        Ok(writer)
    }

    /// Writes a tick of the current slice. Fails when it cannot be written.
    pub fn tick(&mut self, tick: Tick) -> io::Result<()> {
        self.record(&Record::Tick(tick))
    }

    /// Writes the first process other than the agent that executed a mark or a tick. Fails when it cannot be written.
    pub fn intruder(&mut self, process: Process) -> io::Result<()> {
        self.record(&Record::Intruder(process))
    }

    /// Writes new nodes, before the first slice that refers to them. Fails when they cannot be written.
    pub fn nodes(&mut self, nodes: &[CallSite]) -> io::Result<()> {
        for chunk in nodes.chunks(CHUNK) {
            let mut before = 0;
            let step = |node: &CallSite| {
                (node.parent.map_or(0, |parent| parent + 1), distance(&mut before, node.address))
            };
            self.record(&Record::Nodes(chunk.iter().map(step).collect()))?;
        }
        Ok(())
    }

    /// Writes classes of instructions that are new, or none where there was one. Fails when they cannot be written.
    pub fn classes(&mut self, classes: &[(u64, Option<Class>)]) -> io::Result<()> {
        for chunk in classes.chunks(CHUNK) {
            let mut before = 0;
            let step = |(address, class): &(u64, _)| (distance(&mut before, *address), *class);
            self.record(&Record::Classes(chunk.iter().map(step).collect()))?;
        }
        Ok(())
    }

    /// Writes new slab caches, before the first slice that refers to them. Fails when they cannot be written.
    pub fn caches(&mut self, names: &[String]) -> io::Result<()> {
        names.chunks(CHUNK).try_for_each(|names| self.record(&Record::Caches(names.to_vec())))
    }

    /// Writes the counts of a slice that has ended. Its ticks were written before. Fails when they cannot be
    /// written.
    pub fn slice(&mut self, slice: &Phase) -> io::Result<()> {
        for (number, cpu) in (0..).zip(&slice.cpus) {
            self.cpu(number, cpu)?;
        }
        let (mut last, mut before) = (0, 0);
        for chunk in slice.stacks.chunks(CHUNK) {
            let step = |&PathCount { node, address, count }: &PathCount| {
                let node = node.map_or(0, |node| node + 1);
                let up = node - std::mem::replace(&mut last, node);
                (up, distance(&mut before, address), count)
            };
            self.record(&Record::Stacks(chunk.iter().map(step).collect()))?;
        }
        self.record(&Record::Cut)
    }

    /// Ends the profile of a machine that ended normally. Fails when it cannot be written.
    pub fn end(mut self) -> io::Result<()> {
        self.record(&Record::End)
    }

    fn cpu(&mut self, number: u16, cpu: &Cpu) -> io::Result<()> {
        let mut before = 0;
        for chunk in cpu.kernel.chunks(CHUNK) {
            let step = |executed: &Executed| {
                let distance = executed.address.wrapping_sub(before);
                before = executed.address;
                (distance, executed.count)
            };
            self.record(&Record::Kernel(number, chunk.iter().map(step).collect()))?;
        }
        self.record(&Record::Totals(number, cpu.totals))?;
        for chunk in cpu.processes.chunks(CHUNK) {
            self.record(&Record::Processes(number, chunk.to_vec()))?;
        }
        if !cpu.accesses.is_empty() {
            self.record(&Record::Accesses(number, cpu.accesses.clone()))?;
        }
        let mut before = 0;
        for chunk in cpu.transfers.chunks(CHUNK / 4) {
            let step =
                |it: &TransferCount| (distance(&mut before, it.address), it.object, it.transfers);
            self.record(&Record::Transfers(number, chunk.iter().map(step).collect()))?;
        }
        let mut before = 0;
        for chunk in cpu.misses.chunks(CHUNK / 4) {
            let step = |it: &MissCount| (distance(&mut before, it.address), it.misses);
            self.record(&Record::Misses(number, chunk.iter().map(step).collect()))?;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> io::Result<()> {
        let payload = postcard::to_stdvec(record).map_err(io::Error::other)?;
        let mut bytes = frame::header(Kind::Profile, self.sequence, 0, &payload).to_vec();
        bytes.extend(payload);
        bytes.resize(frame::size(bytes.len() - frame::HEADER), 0);
        let room = self.room.checked_sub(bytes.len());
        let long =
            || io::Error::new(io::ErrorKind::FileTooLarge, "it is as long as a profile can be");
        self.room = room.ok_or_else(long)?;
        self.sequence += 1;
        self.out.write_all(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Architecture, Totals, read};
    use super::*;

    #[test]
    fn a_profile_ends_before_it_is_too_long() {
        let mut bytes = Vec::new();
        let arch = Architecture::X86_64;
        let scope =
            Scope { arch, cpus: 1, nodes: 0, stacks: false, transfers: false, misses: false };
        let mut writer = Writer::new(&mut bytes, scope).unwrap();
        let written = MAX_BYTES - writer.room;
        writer.room = 1000;
        let cpu = Cpu { totals: Totals { user: 7, ..Totals::default() }, ..Cpu::default() };
        let slice = Phase { cpus: vec![cpu], ..Phase::default() };
        let slices = (0..).take_while(|_| writer.slice(&slice).is_ok()).count();
        assert!(bytes.len() <= written + 1000 && bytes.len() > written + 900);
        let profile = read(&bytes).unwrap();
        assert_eq!(profile.slices, vec![slice; slices]);
        assert!(slices > 5 && !profile.whole);
    }
}
