//! Tracks the calls of a task by its stacks.
//!
//! A call's frame is the address on the stack of its return address. Once the stack pointer is above it, the
//! call has returned. A task may switch to another stack, as interrupts do. The frames of the previous stack
//! then precede those of the new one.

use crate::calls::{Calls, Frames};
use crate::paths::Path;

/// The stack size of a Linux task (`THREAD_SIZE`). No address on a stack is farther from its top.
const THREAD_SIZE: u64 = 16 << 10;
/// The top of a stack can be this number of bytes above the first address seen.
const SLACK: u64 = 256;
/// The largest number of stacks of a task. If there are more, its calls are reset. Three are common: the stack on
/// which an exception enters the kernel, the task's own, and the stack of interrupts.
const MAX_STACKS: usize = 8;

/// The calls of one task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    frames: Frames,
    stacks: Vec<Stack>,
}

/// One of the stacks, newest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stack {
    /// The highest address seen.
    top: u64,
    /// The number of frames on the older stacks.
    frames: usize,
}

impl Stack {
    fn holds(&self, place: u64) -> bool {
        place.saturating_sub(SLACK) <= self.top && self.top - place.min(self.top) < THREAD_SIZE
    }
}

impl Calls for Stacks {
    fn frames(&self) -> &Frames {
        &self.frames
    }

    fn frames_mut(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// The return address is stored at `slot`.
    fn call(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path) {
        self.move_to(slot.wrapping_add(8));
        self.frames.push(slot, returns_to, extend);
    }

    /// The return address is stored at `slot`. The call may have stored it elsewhere: kernel code that saves all
    /// registers moves its own return address on the stack, or to another stack.
    fn ret(&mut self, slot: u64, returns_to: u64) {
        self.move_to(slot);
        if let Some((last, rest)) = self.frames.all().split_last()
            && (last.slot == slot || last.returns_to == returns_to)
        {
            let left = rest.len();
            self.frames.keep(left);
            for stack in &mut self.stacks {
                stack.frames = stack.frames.min(left);
            }
        }
    }

    fn interrupt(&mut self, slot: u64, returns_to: u64, extend: impl FnOnce(Path) -> Path) {
        self.call(slot, returns_to, extend);
    }

    fn end_interrupt(&mut self, slot: u64, _: Option<u64>) {
        self.move_to(slot.wrapping_add(8));
    }

    fn move_to(&mut self, place: u64) {
        match self.stacks.iter().rposition(|stack| stack.holds(place)) {
            Some(stack) => self.back_to(stack, place),
            None => self.enter(place),
        }
    }

    fn clear(&mut self) {
        self.frames.keep(0);
        self.stacks.clear();
    }
}

impl Stacks {
    /// Drops the stacks after the one with this number, and the frames below `place` on it.
    fn back_to(&mut self, number: usize, place: u64) {
        if let Some(next) = self.stacks.get(number + 1) {
            self.frames.keep(next.frames);
            self.stacks.truncate(number + 1);
        }
        let stack = &mut self.stacks[number];
        stack.top = stack.top.max(place);
        let own = &self.frames.all()[stack.frames..];
        let left = stack.frames + own.partition_point(|frame| frame.slot >= place);
        self.frames.keep(left);
    }

    fn enter(&mut self, place: u64) {
        if self.stacks.len() == MAX_STACKS {
            self.clear();
        }
        self.stacks.push(Stack { top: place, frames: self.frames.all().len() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::MAX_FRAMES;

    const TASK: u64 = 0xffff_c900_0010_4000;
    const INTERRUPTS: u64 = 0xffff_c900_0000_4000;

    /// The number of the last active call; 0 if there is none.
    fn last(calls: &Stacks) -> u32 {
        calls.frames.path().0
    }

    /// A call whose number is its return address.
    fn call(calls: &mut Stacks, slot: u64, number: u32) {
        calls.call(slot, number.into(), |_| Path(number));
    }

    /// Three calls of a task, 64 bytes of stack each.
    fn three() -> Stacks {
        let mut calls = Stacks::default();
        for number in 1..=3 {
            call(&mut calls, TASK - 64 * u64::from(number), number);
        }
        calls
    }

    #[test]
    fn returned_calls_are_dropped() {
        let mut calls = three();
        assert_eq!(last(&calls), 3);
        calls.ret(TASK - 3 * 64, 0);
        assert_eq!(last(&calls), 2);
        call(&mut calls, TASK - 3 * 64, 7);
        assert_eq!(last(&calls), 7);
        calls.ret(TASK - 2 * 64, 0); // two calls at once
        assert_eq!(last(&calls), 1);
        calls.ret(TASK - 64, 0);
        assert_eq!(last(&calls), 0);
    }

    #[test]
    fn a_jump_to_a_pushed_address_is_no_return() {
        let mut calls = three();
        calls.ret(TASK - 3 * 64 - 8, 0);
        assert_eq!(last(&calls), 3);
    }

    #[test]
    fn a_moved_return_address_returns() {
        let mut calls = three();
        calls.ret(TASK - 3 * 64 - 120, 3);
        assert_eq!(last(&calls), 2);
        calls.move_to(INTERRUPTS);
        calls.ret(INTERRUPTS - 64, 2);
        assert_eq!(last(&calls), 1);
        call(&mut calls, INTERRUPTS - 8, 9);
        calls.ret(INTERRUPTS - 8, 9);
        calls.ret(TASK - 64, 1);
        assert_eq!(last(&calls), 0);
    }

    #[test]
    fn abandoned_frames_are_dropped_at_the_next_call() {
        let mut calls = three();
        call(&mut calls, TASK - 2 * 64 + 16, 8);
        assert_eq!(last(&calls), 8);
        calls.ret(TASK - 2 * 64 + 16, 0);
        assert_eq!(last(&calls), 1);
    }

    #[test]
    fn a_stack_continues_after_another_one() {
        for interrupts in [INTERRUPTS, TASK + 0x8000] {
            let mut calls = three();
            calls.move_to(interrupts);
            assert_eq!(last(&calls), 3);
            call(&mut calls, interrupts - 8, 4);
            call(&mut calls, interrupts - 16, 5);
            assert_eq!(last(&calls), 5);
            calls.ret(interrupts - 16, 0);
            assert_eq!(last(&calls), 4);
            calls.move_to(TASK - 3 * 64 - 8);
            assert_eq!(last(&calls), 3);
            calls.ret(TASK - 3 * 64, 0);
            assert_eq!(last(&calls), 2);
        }
    }

    #[test]
    fn deep_stacks_are_followed() {
        let mut calls = Stacks::default();
        call(&mut calls, TASK - 8, 1);
        call(&mut calls, TASK - THREAD_SIZE + 16, 2);
        calls.ret(TASK - THREAD_SIZE + 16, 0);
        assert_eq!(last(&calls), 1);
        calls.ret(TASK - 8, 0);
        assert_eq!(last(&calls), 0);
    }

    #[test]
    fn frames_and_stacks_are_limited() {
        let mut calls = Stacks::default();
        for number in 0..2 * MAX_FRAMES as u64 {
            call(&mut calls, TASK - 8 * number, number as u32 + 1);
        }
        assert_eq!((calls.frames.all().len(), last(&calls)), (MAX_FRAMES, MAX_FRAMES as u32));
        calls.ret(TASK - 8 * (MAX_FRAMES as u64 - 1), 0);
        assert_eq!(last(&calls), MAX_FRAMES as u32 - 1);
        for number in 1..20 {
            calls.move_to(TASK + number * 0x1_0000);
            assert!(calls.stacks.len() <= MAX_STACKS);
        }
        assert_eq!(last(&calls), 0);
    }

    mod random {
        use proptest::prelude::*;

        use super::*;

        #[derive(Clone, Debug)]
        enum Act {
            Call(u64, u32),
            Ret(u64),
            Move(u64),
            Reach(u64, u32),
        }

        fn acts() -> impl Strategy<Value = Vec<Act>> {
            let near = (0..3_u64, 0..0x2000_u64)
                .prop_map(|(stack, depth)| (TASK + stack * 0x1_0000).wrapping_sub(depth * 8));
            let place = prop_oneof![8 => near, 1 => any::<u64>()];
            let act = (place, 0..4, any::<u32>()).prop_map(|(place, act, path)| match act {
                0 => Act::Call(place, path),
                1 => Act::Ret(place),
                2 => Act::Reach(place, path),
                _ => Act::Move(place),
            });
            prop::collection::vec(act, 0..200)
        }

        proptest! {
            #[test]
            fn any_stack_pointer_is_handled(acts in acts()) {
                let mut calls = Stacks::default();
                for act in acts {
                    let place = match act {
                        Act::Reach(place, path) => {
                            let frames = calls.frames.all().len();
                            calls.frames.reach(place, || Some(place), |_| Path(path));
                            prop_assert_eq!(calls.frames.all().len(), frames);
                            continue;
                        }
                        Act::Call(slot, path) => {
                            call(&mut calls, slot, path);
                            prop_assert_eq!(calls.frames.path(), Path(path));
                            slot.wrapping_add(8)
                        }
                        Act::Ret(slot) => {
                            calls.ret(slot, 0);
                            slot.wrapping_add(8)
                        }
                        Act::Move(place) => {
                            calls.move_to(place);
                            place
                        }
                    };
                    let stack = calls.stacks.last().unwrap();
                    prop_assert!(stack.holds(place));
                    prop_assert!(stack.frames <= calls.frames.all().len());
                    let frames = &calls.frames.all()[stack.frames..];
                    prop_assert!(frames.iter().rev().is_sorted_by_key(|frame| frame.slot));
                }
            }
        }
    }
}
