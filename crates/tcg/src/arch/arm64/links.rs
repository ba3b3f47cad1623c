//! Tracks the calls of a task by return addresses.
//!
//! A call stores its return address in a register and nothing on the stack. So a call is recognized by its return
//! address together with the stack pointer, which a function restores before it returns. A return instruction that fits
//! no call is a jump: entry code and the start of a new task use it so.

use crate::calls::{Calls, Frame, Frames};
use crate::paths::Path;

/// The bit that marks the return address of an exception. Instructions are at multiples of 4.
const EXCEPTION: u64 = 1;

/// The calls of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    frames: Frames,
}

impl Links {
    /// Ends the innermost call that fits, and those in it. Returns false if none fits.
    fn end(&mut self, fits: impl Fn(&Frame) -> bool) -> bool {
        let found = self.frames.all().iter().rposition(fits);
        found.into_iter().for_each(|frame| self.frames.keep(frame));
        found.is_some()
    }
}

impl Calls for Links {
    fn frames(&self) -> &Frames {
        &self.frames
    }

    fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// A function that calls others keeps its return address on the stack. So an earlier call with the same stack pointer
    /// has ended. Its end was not seen if its function ran before at an address of the lower half, because QEMU does
    /// not translate it again for another address.
    fn call(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path) {
        if let Some((last, rest)) = self.frames.all().split_last()
            && (last.slot, last.returns_to & EXCEPTION) == (slot, 0)
        {
            let left = rest.len();
            self.frames.keep(left);
        }
        self.frames.push(slot, returns_to, extend);
    }

    fn interrupt(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path) {
        self.frames.push(slot, returns_to | EXCEPTION, extend);
    }

    fn ret(&mut self, slot: u64, returns_to: u64) {
        self.end(|frame| (frame.slot, frame.returns_to) == (slot, returns_to));
    }

    /// The kernel can continue elsewhere than at the interrupted instruction: after it, or where an access is given up.
    fn end_interrupt(&mut self, slot: u64, returns_to: Option<u64>) {
        let is_there = |frame: &Frame| Some(frame.returns_to & !EXCEPTION) == returns_to;
        if !self.end(|frame| frame.slot == slot && is_there(frame)) {
            self.end(|frame| frame.slot == slot && frame.returns_to & EXCEPTION != 0);
        }
    }

    fn move_to(&mut self, _: u64) {}

    fn clear(&mut self) {
        self.frames.keep(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::MAX_FRAMES;

    const STACK: u64 = 0xffff_8000_8100_4000;
    const CODE: u64 = 0xffff_8000_8001_0000;

    /// The number of the last active call; 0 if there is none.
    fn last(calls: &Links) -> u32 {
        calls.frames().path().0
    }

    /// Three calls of a task, 64 bytes of stack each. Call number N returns to CODE + 4 N.
    fn three() -> Links {
        let mut calls = Links::default();
        for number in 1..=3 {
            let at = u64::from(number);
            calls.call(STACK - 64 * at, CODE + 4 * at, |_| Path(number));
        }
        calls
    }

    #[test]
    fn a_return_fits_its_call() {
        let mut calls = three();
        calls.ret(STACK - 3 * 64, CODE + 8); // another address
        calls.ret(STACK - 2 * 64, CODE + 12); // another stack pointer
        assert_eq!(last(&calls), 3);
        calls.ret(STACK - 3 * 64, CODE + 12);
        assert_eq!(last(&calls), 2);
        calls.ret(STACK - 64, CODE + 4); // two calls at once
        assert_eq!(last(&calls), 0);
        calls.ret(STACK, CODE);
    }

    #[test]
    fn an_exception_returns_where_it_came_from_or_elsewhere() {
        for returns_to in [CODE + 0x100, CODE + 0x104, CODE + 0x800] {
            let mut calls = three();
            calls.interrupt(STACK - 200, CODE + 0x100, |_| Path(4));
            calls.call(STACK - 600, CODE + 0x200, |_| Path(5));
            calls.ret(STACK - 200, CODE + 0x100); // not a return of a function
            assert_eq!(last(&calls), 5);
            calls.end_interrupt(STACK - 200, Some(returns_to));
            assert_eq!(last(&calls), 3);
        }
    }

    #[test]
    fn a_call_whose_end_was_not_seen_ends_at_the_next_one() {
        let mut calls = three();
        for number in 4..600 {
            calls.call(STACK - 3 * 64, CODE + 4 * u64::from(number % 2), |path| {
                assert_eq!(path, Path(2));
                Path(number)
            });
            assert_eq!(last(&calls), number);
        }
        // An exception with the same stack pointer has not ended.
        calls.interrupt(STACK - 3 * 64, CODE + 0x100, |_| Path(700));
        calls.call(STACK - 3 * 64, CODE, |path| Path(path.0 + 1));
        assert_eq!(last(&calls), 701);
    }

    #[test]
    fn a_call_can_return_as_an_exception_does() {
        let mut calls = three();
        calls.end_interrupt(STACK - 3 * 64, Some(CODE + 12));
        assert_eq!(last(&calls), 2);
        // Elsewhere, calls do not end without their address.
        calls.end_interrupt(STACK - 2 * 64, Some(CODE));
        assert_eq!(last(&calls), 2);
    }

    #[test]
    fn an_exception_in_a_function_without_frame_is_apart() {
        let mut calls = three();
        let leaf = STACK - 3 * 64;
        calls.interrupt(leaf, CODE + 0x100, |_| Path(4));
        calls.end_interrupt(leaf, Some(CODE + 0x100));
        assert_eq!(last(&calls), 3);
        calls.ret(leaf, CODE + 12);
        assert_eq!(last(&calls), 2);
    }

    #[test]
    fn frames_are_limited() {
        let mut calls = Links::default();
        for number in 0..2 * MAX_FRAMES as u64 {
            calls.call(STACK - 16 * number, CODE, |_| Path(number as u32 + 1));
        }
        assert_eq!(last(&calls), MAX_FRAMES as u32);
        calls.ret(STACK - 16 * MAX_FRAMES as u64, CODE);
        assert_eq!(last(&calls), MAX_FRAMES as u32);
        calls.ret(STACK - 16, CODE);
        assert_eq!(last(&calls), 1);
        calls.clear();
        assert_eq!(last(&calls), 0);
    }
}
