//! Tracks the active calls of one task. This is a copy of the information on its kernel stacks, updated while it
//! runs. Architectures differ in how calls and returns are recognized ([`Calls`]).

use std::fmt::Debug;

use crate::paths::{Jump, Path};

/// The largest number of frames of one task. Deeper calls count for the last frame. Linux tasks have well below a
/// hundred.
pub const MAX_FRAMES: usize = 512;

/// The calls of one task.
pub trait Calls: Clone + Debug + Default + Send {
    /// The frames of the active calls.
    fn frames(&self) -> &Frames;

    fn frames_mut(&mut self) -> &mut Frames;

    /// Records a call with the return address `returns_to`, which belongs to `slot` on the stack. `extend` returns the
    /// path that extends the caller's.
    fn call(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path);

    /// Records a return to the address `returns_to`, which belongs to `slot`.
    fn ret(&mut self, slot: u64, returns_to: u64);

    /// Records an exception or interrupt in the kernel, which interrupts the code at `returns_to`.
    fn interrupt(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path);

    /// Records a return from an interrupt, to the address `returns_to` if it is known.
    fn end_interrupt(&mut self, slot: u64, returns_to: Option<u64>);

    /// Records that the stack pointer is now at `place`.
    fn move_to(&mut self, place: u64);

    /// Records an entry from user mode, where there are no active calls.
    fn clear(&mut self);
}

/// The frames of active calls, innermost last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames(Vec<Frame>);

/// The frame of an active call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where the frame is on the stack.
    pub slot: u64,
    /// The return address.
    pub returns_to: u64,
    /// The path of the function that was called.
    called: Path,
    /// The path of the running function, which is the called one, or one that was jumped to since.
    path: Path,
    /// The beginning of the running function; `None` until it is reached.
    function: Option<u64>,
}

impl Frames {
    /// The path of the innermost active call.
    pub fn path(&self) -> Path {
        self.0.last().map_or(Path::START, |frame| frame.path)
    }

    /// Whether the innermost call has not reached its function yet.
    pub fn is_new(&self) -> bool {
        self.0.last().is_some_and(|frame| frame.function.is_none())
    }

    pub fn all(&self) -> &[Frame] {
        &self.0
    }

    /// Adds a call. `extend` returns the path that extends the caller's.
    pub fn push(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path) {
        if self.0.len() < MAX_FRAMES {
            let path = extend(self.path());
            self.0.push(Frame { slot, returns_to, called: path, path, function: None });
        }
    }

    /// Keeps only the outermost frames, this number of them.
    pub fn keep(&mut self, frames: usize) {
        self.0.truncate(frames);
    }

    /// Records that the beginning of `function` is reached. The first beginning after a call is that of the called
    /// function. At a later one the running function has jumped to another function, if the stack is as after the call,
    /// as functions expect. `stack` returns the stack pointer, and `jump` the path of the other function.
    pub fn reach(
        &mut self,
        function: u64,
        stack: impl FnOnce() -> Option<u64>,
        jump: impl FnOnce(Jump) -> Path,
    ) {
        let Some(frame) = self.0.last_mut() else { return };
        match frame.function {
            None => {}
            Some(from) if from != function && stack() == Some(frame.slot) => {
                frame.path = jump(Jump { called: frame.called, path: frame.path, from });
            }
            Some(_) => return,
        }
        frame.function = Some(function);
    }
}
