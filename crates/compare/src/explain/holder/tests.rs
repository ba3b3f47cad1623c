//! Which functions hold a change of made-up call paths.

use super::super::tests::{all, executed, followed};
use super::*;

/// The functions that hold the change, with the phase's own pairs.
fn by_calls(section: &Section, paths: &Paths) -> Held {
    super::by_calls(section, paths, &super::super::joined::pairs(section, paths))
}

fn part(name: &str, own: [f64; 2]) -> OwnCost {
    OwnCost { name: name.into(), own, ..OwnCost::default() }
}

/// The loop of a function moved into a new function and became more expensive.
#[test]
fn the_caller_of_a_moved_loop_holds_the_change() {
    let base = [executed(&[("sys", "", 50, 50), ("change", "", 50, 1000)])];
    let new = [executed(&[("sys", "", 50, 50), ("change", "", 50, 10), ("pte", "", 500, 2400)])];
    let section = all(&base, &new);
    let calls = followed(&[
        ("kernel irq", 70.0, 71.0),
        ("kernel sys", 50.0, 50.0),
        ("kernel sys change", 1000.0, 10.0),
        ("kernel sys change pte", 0.0, 2400.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    let expected = Holder {
        name: "change".into(),
        inclusive: true,
        within: None,
        instructions: [1000.0, 2410.0],
        without_loops: None,
        entries: Some([50.0, 50.0]),
        share: 1410.0 / 1411.0,
        parts: vec![part("pte", [0.0, 48.0]), part("change", [20.0, 0.2])],
        parts_per_entry: true,
        callee: None,
        moved: None,
        inner: None,
    };
    assert_eq!(holder.per_entry(), Some([20.0, 48.2]));
    assert_eq!(holder, expected);
}

/// What other functions have of the change is luck, so it is not divided between them.
#[test]
fn luck_of_others_leaves_one_function() {
    let boot = [executed(&[("change", "", 21, 1000), ("refill", "", 50, 500)])];
    let mut section = all(&boot, &boot);
    let calls = followed(&[("kernel change", 1000.0, 600.0), ("kernel refill", 500.0, 560.0)]);
    let held = |section: &Section| by_calls(section, &calls);
    assert_eq!(held(&section).divided.unwrap().parts.len(), 2);
    section.totals.kernel.floor = Some(80.0);
    let holder = held(&section).function.unwrap();
    assert_eq!((&*holder.name, holder.share), ("change", 400.0 / 340.0));
    section.totals.kernel.floor = Some(50.0);
    assert_eq!(held(&section).function, None);
}

/// The newer kernel's `move` calls `unmap` without the `wrapper`, which others still call.
#[test]
fn a_bypassed_function_holds_no_change() {
    let boot = |cost: u64| {
        let wrapped = [("move", "", 9, 90), ("wrapper", "", 10, 10), ("unmap", "", 10, cost)];
        [executed(&wrapped)]
    };
    let section = all(&boot(1000), &boot(1450));
    let calls = followed(&[
        ("kernel move", 90.0, 90.0),
        ("kernel move unmap", 0.0, 1350.0),
        ("kernel move wrapper", 9.0, 0.0),
        ("kernel move wrapper unmap", 900.0, 0.0),
        ("kernel other wrapper", 1.0, 1.0),
        ("kernel other wrapper unmap", 100.0, 100.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.within.as_deref()), ("unmap", None));
    assert_eq!(holder.instructions, [1000.0, 1450.0]);
    // A callee that is called newly is no wrapper.
    let calls = followed(&[
        ("kernel move unmap", 900.0, 900.0),
        ("kernel move wrapper", 0.0, 100.0),
        ("kernel move wrapper unmap", 0.0, 900.0),
        ("kernel other wrapper", 100.0, 100.0),
    ]);
    let walked = walked(&calls, &[const { None }; 4]);
    assert!(walked.iter().any(|(frames, _)| frames[..] == ["kernel", "move", "wrapper", "unmap"]));
}

#[test]
fn changes_elsewhere_can_offset_each_other() {
    let boot = [executed(&[("a", "", 1, 10), ("b", "", 1, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel a", 1000.0, 1600.0),
        ("kernel b", 1000.0, 1400.0),
        ("kernel c", 1000.0, 1020.0),
        ("kernel c more", 1000.0, 1080.0),
        ("kernel d", 1000.0, 900.0),
    ]);
    let Divided { parts, complete, elsewhere, offset_elsewhere } =
        by_calls(&section, &calls).divided.unwrap();
    assert_eq!((parts.len(), complete, elsewhere, offset_elsewhere), (2, true, 0.0, 0.1));
}

/// In `unmap`, `zap` has 60 % of the change. It copies by a loop that takes faults. The loop itself is not named, and two
/// calls have no mean.
#[test]
fn a_part_names_the_callee_with_much_of_it() {
    let boot = [executed(&[("unmap", "", 2, 10), ("zap", "", 9, 10), ("other", "", 9, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel unmap other", 100.0, 140.0),
        ("kernel unmap zap", 100.0, 110.0),
        ("kernel unmap zap rep_movs_alternative", 100.0, 110.0),
        ("kernel unmap zap rep_movs_alternative fault", 100.0, 140.0),
        ("kernel map", 100.0, 160.0),
    ]);
    let holder = &by_calls(&section, &calls).divided.unwrap().parts[0];
    assert_eq!(holder.inner, Some(Inner { name: "zap".into(), share: 0.6 }));
    assert!(holder.has_few_entries() && !holder.parts_per_entry);
    let alone =
        followed(&[("kernel copy rep_movs_alternative", 100.0, 140.0), ("kernel copy", 1.0, 1.0)]);
    assert_eq!(by_calls(&section, &alone).function.unwrap().name, "copy");
}

#[test]
fn fewer_entries_can_hold_the_change() {
    let boot = |entries: u64, cost: u64| [executed(&[("f", "", entries, entries * cost)])];
    let section = all(&boot(100, 10), &boot(50, 11));
    let calls = followed(&[("kernel f", 1000.0, 550.0)]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!(holder.per_entry(), Some([10.0, 11.0]));
    assert_eq!((holder.instructions, holder.entries), ([1000.0, 550.0], Some([100.0, 50.0])));
}

#[test]
fn a_function_is_found_in_other_paths() {
    let boot = [executed(&[("tear", "", 62, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[("kernel exec tear", 100.0, 160.0), ("kernel exit", 100.0, 105.0)]);
    let holder = by_calls(&section, &calls).function.unwrap();
    let others = followed(&[
        ("kernel exec tear", 100.0, 120.0),
        ("kernel exit tear new", 0.0, 10.0),
        ("kernel exit", 100.0, 105.0),
    ]);
    assert_eq!(holder.instructions_in(&others), [100.0, 130.0]);
    let within = Holder { within: Some("exit".into()), ..holder.clone() };
    assert_eq!(within.instructions_in(&others), [0.0, 10.0]);
    let own = Holder { inclusive: false, name: "exit".into(), ..holder };
    assert_eq!(own.instructions_in(&others), [100.0, 105.0]);
}

/// Two threads were entered before the phase; one of them calls `walk` less often now. One of the kernels enters
/// threads by a function that the other does not have.
#[test]
fn the_function_of_a_kernel_thread_has_a_total() {
    let boot = |scan: u64, walks: u64| {
        let threads = [("kthread", "", 0, 0), ("scan", "", 0, scan), ("reclaim", "", 0, 300)];
        [executed(&[threads.as_slice(), &[("walk", "", walks, 10 * walks)]].concat())]
    };
    let section = all(&boot(5000, 400), &boot(2000, 10));
    let calls = followed(&[
        ("kernel ret_from_fork kthread reclaim", 300.0, 0.0),
        ("kernel ret_from_fork kthread scan", 5000.0, 0.0),
        ("kernel ret_from_fork kthread scan walk", 4000.0, 0.0),
        ("kernel start ret_from_fork kthread reclaim", 0.0, 300.0),
        ("kernel start ret_from_fork kthread scan", 0.0, 2000.0),
        ("kernel start ret_from_fork kthread scan walk", 0.0, 100.0),
    ]);
    let held = by_calls(&section, &calls);
    let threads: Vec<_> = held.threads.iter().map(|it| (&*it.function, it.instructions)).collect();
    assert_eq!(threads, [("scan", [9000.0, 2100.0]), ("reclaim", [300.0, 300.0])]);
    let holder = held.function.unwrap();
    let callee = Callee { name: "walk".into(), entries: [400.0, 10.0], per_entry: [10.0, 10.0] };
    assert!(callee.is_by_number());
    assert!(!Callee { per_entry: [10.0, 900.0], ..callee.clone() }.is_by_number());
    let expected = Holder {
        name: "scan".into(),
        inclusive: true,
        within: None,
        instructions: [9000.0, 2100.0],
        without_loops: None,
        entries: None,
        share: 1.0,
        parts: vec![part("walk", [4000.0, 100.0]), part("scan", [5000.0, 2000.0])],
        parts_per_entry: false,
        callee: Some(callee),
        moved: None,
        inner: None,
    };
    assert_eq!(holder, expected);
    assert_eq!(holder.per_entry(), None);
}

/// The task switches in `read` now, in `exit` before. A switch costs more.
#[test]
fn a_callee_that_moved_is_named_with_all_its_calls() {
    let moved = |before: f64| {
        let read = [("kernel read", 100.0, 300.0), ("kernel read switch", 0.0, 900.0)];
        let calls = followed(&[read[0], read[1], ("kernel exit switch", before, 10.0)]);
        let walked = walked(&calls, &[None, None, None]);
        let kernel = Call { depth: 0, paths: &walked };
        let read = walked.iter().filter(|(frames, _)| frames.contains(&"read"));
        moved::moved("read", read, kernel, |_| None)
    };
    let found = moved(400.0).unwrap();
    assert_eq!((&*found.name, found.inside), ("switch", [0.0, 900.0]));
    assert_eq!(found.instructions, [400.0, 910.0]);
    assert_eq!(moved(1.0), None, "the other side hardly calls it elsewhere");
}

/// `list` costs more wherever it is called. It did not move.
#[test]
fn a_callee_that_costs_more_everywhere_did_not_move() {
    let calls = followed(&[
        ("kernel lock", 100.0, 100.0),
        ("kernel lock list", 70.0, 1000.0),
        ("kernel free list", 60.0, 70.0),
    ]);
    let walked = walked(&calls, &[None, None, None]);
    let kernel = Call { depth: 0, paths: &walked };
    let lock = walked.iter().filter(|(frames, _)| frames.contains(&"lock"));
    assert_eq!(moved::moved("lock", lock, kernel, |_| None), None);
}

/// `walk` has a part of the change of `scan`, and `random`, which only one side enters, a larger one.
#[test]
fn a_callee_of_both_sides_is_not_named_beside_a_larger_one_of_one_side() {
    let boot = |cost: u64, random: u64| {
        let own = [("scan", "", 0, 300), ("walk", "", 10, cost), ("random", "", random, random)];
        [executed(&own)]
    };
    let section = all(&boot(400, 0), &boot(600, 900));
    let callee = |random: f64| {
        let calls = followed(&[
            ("kernel ret_from_fork kthread scan", 300.0, 300.0),
            ("kernel ret_from_fork kthread scan walk", 400.0, 600.0),
            ("kernel ret_from_fork kthread scan random", 0.0, random),
        ]);
        by_calls(&section, &calls).function.unwrap().callee.map(|it| it.name)
    };
    assert_eq!(callee(900.0), None);
    assert_eq!(callee(100.0).as_deref(), Some("walk"));
}

/// Some of the change is in one thread, and the rest in another.
#[test]
fn threads_divide_a_change() {
    let boot = |cost: u64| [executed(&[("scan", "", 0, 6 * cost), ("reclaim", "", 0, 4 * cost)])];
    let section = all(&boot(10), &boot(20));
    let calls = followed(&[
        ("kernel ret_from_fork kthread reclaim", 40.0, 80.0),
        ("kernel ret_from_fork_asm ret_from_fork kthread scan", 60.0, 120.0),
    ]);
    assert_eq!(
        shares(&by_calls(&section, &calls)),
        (None, vec!["scan 0.60".into(), "reclaim 0.40".into()], true)
    );
}

/// A function between two others has another name in each kernel.
#[test]
fn functions_of_one_side_are_looked_through() {
    let boot = |name: &'static str, cost: u64| {
        [executed(&[("sys", "", 2, 10), (name, "", 2, 10), ("f", "", 4, cost)])]
    };
    let section = all(&boot("old", 100), &boot("new", 900));
    let calls = followed(&[
        ("kernel sys", 10.0, 10.0),
        ("kernel sys new", 0.0, 10.0),
        ("kernel sys new f", 0.0, 900.0),
        ("kernel sys old", 10.0, 0.0),
        ("kernel sys old f", 100.0, 0.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.entries), ("f", Some([4.0, 4.0])));
    assert_eq!(holder.share, 1.0);
}

/// The holder, and the parts with their shares.
fn shares(held: &Held) -> (Option<&str>, Vec<String>, bool) {
    let function = held.function.as_ref().map(|it| &*it.name);
    let Some(Divided { parts, complete, .. }) = &held.divided else {
        return (function, vec![], true);
    };
    let parts = parts.iter().map(|it| format!("{} {:.2}", it.name, it.share));
    (function, parts.collect(), *complete)
}

#[test]
fn a_change_in_two_callees_divides() {
    let boot =
        |cost: u64| [executed(&[("sys", "", 2, 10), ("a", "", 2, cost), ("b", "", 2, cost)])];
    let section = all(&boot(100), &boot(200));
    let calls = |of: [f64; 3]| {
        let [a, b, c] = of.map(|change| 100.0 + change);
        followed(&[
            ("kernel sys", 10.0, 10.0),
            ("kernel sys a", 100.0, a),
            ("kernel sys b inner", 100.0, b),
            ("kernel sys c", 100.0, c),
        ])
    };
    let held = by_calls(&section, &calls([60.0, 40.0, 0.0]));
    assert_eq!(shares(&held), (Some("sys"), vec!["a 0.60".into(), "inner 0.40".into()], true));
    // What others offset is named as the largest part.
    let held = by_calls(&section, &calls([80.0, 40.0, -20.0]));
    assert_eq!(shares(&held), (Some("sys"), vec!["a 0.80".into(), "inner 0.40".into()], false));
    // The caller has a part of its own.
    let own = followed(&[
        ("kernel sys", 10.0, 30.0),
        ("kernel sys a", 10.0, 50.0),
        ("kernel sys b", 10.0, 50.0),
    ]);
    assert_eq!(
        shares(&by_calls(&section, &own)),
        (Some("sys"), vec!["a 0.40".into(), "b 0.40".into()], false)
    );
    // Where calls were not followed, a function that holds half is named.
    let holder = self::own(&section).unwrap();
    assert_eq!((holder.per_entry(), holder.share), (Some([50.0, 100.0]), 0.5));
}

/// Every system call passes the same functions, which are no answer.
#[test]
fn system_calls_divide_a_change() {
    let boot = [executed(&[("copy_process", "", 2, 10)])];
    let section = all(&boot, &boot);
    let of = |fork: f64, exit: f64, fault: f64, own: f64| {
        let base = 1000.0;
        by_calls(
            &section,
            &followed(&[
                ("kernel asm_exc_page_fault exc_page_fault", base, base + fault),
                ("kernel entry_SYSCALL_64_after_hwframe do_syscall_64", base, base + own),
                (
                    "kernel entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_clone copy_process",
                    base,
                    base + fork,
                ),
                (
                    "kernel entry_SYSCALL_64_after_hwframe do_syscall_64 x64_sys_call __x64_sys_exit_group",
                    0.0,
                    base + exit,
                ),
                (
                    "kernel entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_exit_group",
                    base,
                    0.0,
                ),
            ]),
        )
    };
    let held = of(47.0, 45.0, 6.0, 2.0);
    assert_eq!(
        shares(&held),
        (None, vec!["copy_process 0.47".into(), "__x64_sys_exit_group 0.45".into()], true)
    );
    let parts = held.divided.unwrap().parts;
    assert_eq!((parts[0].entries, parts[0].inclusive), (Some([2.0, 2.0]), true));
    // A part can have the other sign.
    let held = of(130.0, -32.0, 1.0, 1.0);
    assert_eq!(
        shares(&held),
        (None, vec!["copy_process 1.30".into(), "__x64_sys_exit_group -0.32".into()], true)
    );
    // The common way itself became dearer.
    let held = of(2.0, 1.0, 0.0, 97.0);
    assert_eq!(shares(&held), (Some("do_syscall_64"), vec![], true));
    assert!(!held.function.unwrap().inclusive);
    // Changes that offset each other are large: each is named.
    let held = of(60.0, 50.0, 40.0, -50.0);
    let found = shares(&held);
    assert_eq!((found.0, found.1.len(), found.2), (None, 4, true));
    let largest = ["copy_process 0.60", "do_syscall_64 -0.50", "__x64_sys_exit_group 0.50"];
    assert!(largest.iter().all(|it| found.1.contains(&(*it).to_owned())), "{found:?}");
}

#[test]
fn a_function_that_absorbed_another_holds_no_change() {
    let base = [executed(&[("load", "", 10, 170), ("descend", "", 10, 160)])];
    let section = all(&base, &[executed(&[("load", "", 10, 335)])]);
    assert_eq!(own(&section), None);
    // And neither does a small part of a change.
    let boot =
        |work: u64, cost: u64| [executed(&[("f", "", 2, 2 * cost), ("g", "", work, 100 * work)])];
    assert_eq!(own(&all(&boot(10, 5), &boot(20, 6))), None);
}

#[test]
fn nothing_changed() {
    let boot = [executed(&[("sys", "", 2, 10)])];
    for calls in [followed(&[("kernel sys", 10.0, 10.0)]), Paths::default()] {
        assert_eq!(by_calls(&all(&boot, &boot), &calls), Held::default());
    }
}

/// `tear` is called elsewhere too, and now by `setup` instead of `begin`.
#[test]
fn work_that_moved_between_callees_belongs_to_their_caller() {
    let boot = [executed(&[("exec", "", 1, 10), ("tear", "", 62, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel exec begin tear", 900.0, 10.0),
        ("kernel exec setup tear", 10.0, 1000.0),
    ]);
    let held = by_calls(&section, &calls);
    assert_eq!(shares(&held), (Some("exec"), vec![], true));
    assert_eq!(held.function.unwrap().entries, Some([1.0; 2]));
    let calls = followed(&[("kernel exec tear", 500.0, 500.0), ("kernel exit tear", 500.0, 900.0)]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.within), ("tear", None));
    assert_eq!((holder.instructions, holder.entries), ([1000.0, 1400.0], Some([62.0; 2])));
    // Calls elsewhere changed too, in the other direction.
    let calls = followed(&[
        ("kernel exec tear", 500.0, 350.0),
        ("kernel exec other", 500.0, 650.0),
        ("kernel exit tear", 5000.0, 5100.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.within.as_deref()), ("tear", Some("exit")));
    assert_eq!((holder.instructions, holder.entries), ([5000.0, 5100.0], None));
    assert_eq!(holder.share, 1.0);
}

/// Two callers reach one function, and its figures are those of all calls, once.
#[test]
fn a_function_is_one_part() {
    let boot = [executed(&[("tear", "", 62, 10), ("b", "", 1, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel exec tear", 100.0, 160.0),
        ("kernel exit tear", 100.0, 102.0),
        ("kernel b", 100.0, 138.0),
    ]);
    let held = by_calls(&section, &calls);
    assert_eq!(shares(&held), (None, vec!["tear 0.62".into(), "b 0.38".into()], true));
    assert_eq!(held.divided.unwrap().elsewhere, 0.0);
}

/// Two callers of one function changed in one direction: that is one part. The third caller is a loop's.
#[test]
fn parts_of_one_function_in_one_direction_are_one() {
    let boot = [executed(&[("put", "", 62, 10), ("b", "", 1, 10)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel exec put", 400.0, 740.0),
        ("kernel exec put memset_orig", 100.0, 140.0),
        ("kernel exit put", 300.0, 560.0),
        ("kernel b", 100.0, 460.0),
    ]);
    let held = by_calls(&section, &calls);
    assert_eq!(shares(&held), (None, vec!["put 0.64".into(), "b 0.36".into()], true));
    let put = &held.divided.unwrap().parts[0];
    assert_eq!((put.within.as_deref(), put.without_loops), (None, None));
}

/// Writes copy by a loop before, and by one instruction now.
#[test]
fn a_holder_has_its_figures_without_loops() {
    let boot = [executed(&[("write", "", 10, 100), ("memcpy_orig", "", 10, 100)])];
    let section = all(&boot, &boot);
    let calls =
        followed(&[("kernel write", 600.0, 700.0), ("kernel write memcpy_orig", 300.0, 3.0)]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.without_loops), ("write", Some([600.0, 700.0])));
}

/// `bulk` executes in the softirq now, and did so elsewhere before: its entries are not those of the softirq.
#[test]
fn entries_elsewhere_are_not_named_for_a_holder() {
    let named = |here: f64| {
        let boot = |entries| [executed(&[("bulk", "", entries, 100 * entries), ("b", "", 1, 10)])];
        let section = all(&boot(40), &boot(4));
        let calls = followed(&[
            ("kernel asm_sysvec_x handle_softirqs rcu_core free", 2000.0, 400.0),
            ("kernel asm_sysvec_x handle_softirqs rcu_core bulk", 4000.0 - here, 400.0),
            ("kernel b bulk", here, 0.0),
            ("kernel b", 10.0, 10.0),
        ]);
        let held = by_calls(&section, &calls);
        let holder = held.function.unwrap_or_else(|| held.divided.unwrap().parts.remove(0));
        holder.callee.map(|it| it.name)
    };
    assert_eq!(named(0.0).as_deref(), Some("bulk"));
    assert_eq!(named(500.0), None);
}

/// A few calls come from elsewhere, on one side by a function that the other does not have.
#[test]
fn the_figures_of_a_function_are_those_of_all_its_calls() {
    let boot = |cost: u64| [executed(&[("fault", "", 10, cost), ("put", "", 1, 1)])];
    let section = all(&boot(1000), &boot(1500));
    let calls = followed(&[
        ("kernel fault", 960.0, 1450.0),
        ("kernel put fault", 40.0, 0.0),
        ("kernel slow put fault", 0.0, 50.0),
        ("kernel other", 300.0, 290.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.within), ("fault", None));
    assert_eq!((holder.instructions, holder.entries), ([1000.0, 1500.0], Some([10.0; 2])));
    assert_eq!(holder.share, 500.0 / 490.0);
}

/// Parts that others offset are the largest system calls and other reasons, each with the figures of its calls.
#[test]
fn a_change_that_does_not_divide_has_the_largest_calls() {
    let boot = |cost: u64| [executed(&[("free", "", 10, cost), ("fork", "", 10, 2 * cost)])];
    let section = all(&boot(1000), &boot(500));
    let calls = followed(&[
        ("kernel kthread thread free", 1000.0, 300.0),
        ("kernel exit free", 30.0, 230.0),
        ("kernel fork", 100.0, 400.0),
        ("kernel wait", 100.0, 150.0),
    ]);
    let held = by_calls(&section, &calls);
    let expected =
        ["free 4.67", "fork -2.00", "free -1.33", "wait -0.33"].map(str::to_owned).to_vec();
    assert_eq!(shares(&held), (None, expected, true));
    let parts = held.divided.unwrap().parts;
    let within: Vec<_> = parts.iter().map(|it| it.within.as_deref()).collect();
    assert_eq!(within, [Some("thread"), None, Some("exit"), None]);
}

/// RCU frees in an interrupt what its thread freed before. An interrupt is no part of the call that it interrupts.
#[test]
fn a_softirq_is_one_part_wherever_it_runs() {
    let boot = [executed(&[("free", "", 10, 1000), ("fault", "", 10, 900)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel kthread run_ksoftirqd handle_softirqs rcu_core free", 2000.0, 500.0),
        ("kernel fault", 1000.0, 990.0),
        ("kernel fault asm_sysvec_x handle_softirqs rcu_core free", 100.0, 600.0),
        ("kernel fault asm_sysvec_x handle_softirqs run_timer_softirq", 1000.0, 1000.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.instructions), ("free", [2100.0, 1100.0]));
    let fault = Holder { name: "fault".into(), ..holder };
    assert_eq!(fault.instructions_in(&calls), [1000.0, 990.0]);
}

/// `write` submits on one side what `submit` does on the other, beside other savings.
#[test]
fn a_callee_whose_work_a_sibling_does_holds_no_change() {
    let boot = [executed(&[("sync", "", 3, 30), ("write", "", 10, 900)])];
    let section = all(&boot, &boot);
    let of = |put: f64, submit: f64| {
        let calls = followed(&[
            ("kernel sync", 100.0, 100.0),
            ("kernel sync put", 400.0, put),
            ("kernel sync submit bio", 150.0, submit),
            ("kernel sync write", 500.0, 250.0),
            ("kernel sync write bio", 200.0, 0.0),
        ]);
        by_calls(&section, &calls).function.unwrap().name
    };
    assert_eq!(of(150.0, 395.0), "sync");
    // Little of it moved there.
    assert_eq!(of(380.0, 195.0), "write");
}

/// Task work did what the system call does itself now.
#[test]
fn work_that_moved_between_two_parts_is_one_part() {
    let boot = |cost: u64| [executed(&[("put", "", 3, cost), ("fault", "", 10, 900)])];
    let section = all(&boot(1000), &boot(1500));
    let calls = followed(&[
        ("kernel close", 10.0, 20.0),
        ("kernel close put", 100.0, 1500.0),
        ("kernel fault", 1000.0, 1400.0),
        ("kernel fork", 1000.0, 1300.0),
        ("kernel task_work_run", 1.0, 1.0),
        ("kernel task_work_run put", 900.0, 0.0),
        ("kernel wait", 1000.0, 800.0),
    ]);
    let held = by_calls(&section, &calls);
    let expected =
        ["put 0.50", "fault 0.40", "fork 0.30", "wait -0.20"].map(str::to_owned).to_vec();
    assert_eq!(shares(&held), (None, expected, true));
    let parts = held.divided.unwrap().parts;
    assert_eq!((parts[0].instructions, parts[0].entries), ([1000.0, 1500.0], Some([3.0; 2])));
}

/// A fault costs more for small pages and less for huge ones, and the exception as a whole is the same.
#[test]
fn callees_that_offset_each_other_are_told_apart() {
    let boot = [executed(&[("small", "", 10, 1000), ("huge", "", 10, 900)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel asm_exc_page_fault exc_page_fault", 20.0, 20.0),
        ("kernel asm_exc_page_fault exc_page_fault huge", 1000.0, 650.0),
        ("kernel asm_exc_page_fault exc_page_fault small", 1000.0, 1380.0),
        ("kernel madvise", 1000.0, 1400.0),
        ("kernel munmap", 1000.0, 1200.0),
    ]);
    let expected =
        ["madvise 0.63", "small 0.60", "huge -0.56", "munmap 0.32"].map(str::to_owned).to_vec();
    assert_eq!(shares(&by_calls(&section, &calls)), (None, expected, true));
}

/// `read` called `submit` before, and the handler of faults calls it now. That the others offset each other by as much as
/// the whole change tells nothing of `read`.
#[test]
fn callees_are_not_told_apart_if_work_moved_between_them() {
    let boot = [executed(&[("read", "", 10, 10), ("add", "", 10, 900), ("load", "", 10, 900)])];
    let section = all(&boot, &boot);
    let calls = followed(&[
        ("kernel asm_exc_page_fault exc_page_fault add", 500.0, 650.0),
        ("kernel asm_exc_page_fault exc_page_fault load", 500.0, 400.0),
        ("kernel asm_exc_page_fault exc_page_fault read", 600.0, 590.0),
        ("kernel asm_exc_page_fault exc_page_fault read submit", 4800.0, 0.0),
        ("kernel asm_exc_page_fault exc_page_fault submit", 0.0, 4790.0),
        ("kernel munmap", 1000.0, 1000.0),
    ]);
    let held = by_calls(&section, &calls);
    assert_eq!(shares(&held), (Some("exc_page_fault"), vec![], true));
}

/// The caller no longer calls `walk`, which is no cause.
#[test]
fn a_callee_that_is_called_less_often_is_no_cause() {
    let boot = |walks: u64, cost: u64| {
        let walked = walks * cost;
        [executed(&[("sys", "", 7, 700), ("find", "", 7, 700), ("walk", "", walks, walked)])]
    };
    let named = |base: [u64; 2], new: [u64; 2]| {
        let section = all(&boot(base[0], base[1]), &boot(new[0], new[1]));
        let [before, now] = [base, new].map(|[walks, cost]| (walks * cost) as f64);
        let calls = followed(&[
            ("kernel sys", 700.0, 700.0),
            ("kernel sys find", 700.0, 700.0),
            ("kernel sys find walk", before, now),
        ]);
        by_calls(&section, &calls).function.unwrap().name
    };
    assert_eq!(named([100, 10], [10, 10]), "find");
    assert_eq!(named([100, 10], [100, 4]), "walk");
    assert_eq!(named([100, 10], [99, 4]), "walk");
}

/// One part calls another now and then. What is in none of them is elsewhere.
#[test]
fn what_is_elsewhere_is_in_no_part() {
    let boot = |cost: u64| [executed(&[("fault", "", 10, cost), ("exit", "", 10, cost)])];
    let section = all(&boot(1000), &boot(1500));
    let calls = followed(&[
        ("kernel fault", 1000.0, 1060.0),
        ("kernel sys", 10.0, 14.0),
        ("kernel sys exit", 1000.0, 1032.0),
        ("kernel sys exit fault", 10.0, 14.0),
    ]);
    let held = by_calls(&section, &calls);
    assert_eq!(shares(&held), (None, vec!["fault 0.64".into(), "exit 0.36".into()], true));
    assert_eq!(held.divided.unwrap().elsewhere, 0.04);
}

/// The same functions call it in another context too, which one side enters by a function of its own.
#[test]
fn the_same_calls_in_other_contexts_count() {
    let boot = |cost: u64| [executed(&[("fault", "", 10, cost), ("handle", "", 10, cost)])];
    let section = all(&boot(1000), &boot(1500));
    let calls = followed(&[
        ("kernel fault handle", 800.0, 1500.0),
        ("kernel put fault handle", 200.0, 0.0),
        ("kernel other", 10.0, 10.0),
    ]);
    let holder = by_calls(&section, &calls).function.unwrap();
    assert_eq!((&*holder.name, holder.within), ("handle", None));
    assert_eq!(holder.instructions, [1000.0, 1500.0]);
}
