//! Functions with another name on each side.

use super::*;

#[test]
fn names_change_only_at_equal_entries_and_cost() {
    let maybe = |entries, instructions| {
        let base = [executed(&[("add_page", "", 1000, 100_000)])];
        let new = [executed(&[("page_add", "", entries, instructions)])];
        calls(&all(&base, &new), "add_page").maybe.is_some()
    };
    assert!(maybe(1010, 1010 * 165));
    assert!(maybe(991, 991 * 61));
    assert!(!maybe(1011, 1011 * 100));
    assert!(!maybe(1000, 1000 * 167));
    assert!(!maybe(1000, 1000 * 59));
}

#[test]
fn only_a_function_with_a_similar_name_is_suggested() {
    let base = [executed(&[("lru_cache_add", "", 10, 100), ("mmput", "", 10, 101)])];
    let new = [executed(&[
        ("do_it", "", 10, 100),
        ("folio_add_lru", "", 10, 115),
        ("charge_memcg", "", 10, 101),
    ])];
    let all = all(&base, &new);
    assert_eq!(calls(&all, "lru_cache_add").maybe, Some(function("folio_add_lru")));
    assert_eq!(calls(&all, "mmput").maybe, None);
    assert_eq!(calls(&all, "do_it").maybe, None);
    // Functions with unlike names are no pair, even if no other function is as near.
    let of = |old: &'static str, new: &'static str| {
        let [base, new] = [old, new].map(|name| [executed(&[(name, "", 10, 100)])]);
        calls(&self::all(&base, &new), old).maybe.is_some()
    };
    assert!(!of("rb_erase_linked", "syscall_exit_to_user_mode"));
    assert!(!of("timekeeping_advance", "__dequeue_task"));
    assert!(!of("update_se", "update_rq"));
    assert!(!of("lock_page", "folio_lock"));
    assert!(of("__pte_offset_map_lock", "pte_offset_map_lock"));
    assert!(of("clear_page_orig", "orig_clear_page"));
}

/// The allocator is entered less often, as one caller allocates in bulk now.
#[test]
fn an_allocator_whose_callers_can_be_profiled_is_the_same() {
    let base = [executed(&[("kmem_cache_alloc", "", 1580, 156_000)])];
    let new = [executed(&[
        ("kmem_cache_alloc_bulk", "", 1580, 150_000),
        ("kmem_cache_alloc_noprof", "", 1289, 104_000),
    ])];
    let all = all(&base, &new);
    let noprof = function("kmem_cache_alloc_noprof");
    assert_eq!(calls(&all, "kmem_cache_alloc").maybe, Some(noprof));
    assert_eq!(calls(&all, "kmem_cache_alloc_bulk").maybe, None);
}

#[test]
fn a_function_that_moved_to_a_module_is_the_nearest() {
    let base = [executed(&[("f", "", 10, 100)])];
    let new = [executed(&[("alike", "", 10, 100), ("f", "nfs", 10, 110)])];
    let moved = Subject::Function { name: "f".into(), module: "nfs".into() };
    assert_eq!(calls(&all(&base, &new), "f").maybe, Some(moved));
}

#[test]
fn a_function_known_elsewhere_is_not_renamed_in_a_phase() {
    let base = seed(vec![
        executing(0, "one", &[("add_page", "", 10, 100)]),
        executing(0, "two", &[("page_add", "", 10, 100)]),
    ]);
    let new = seed(vec![
        executing(0, "one", &[("page_add", "", 10, 100)]),
        executing(0, "two", &[("add_page", "", 10, 100)]),
    ]);
    let explanation = explained(&[base], &[new]);
    let f = calls(&explanation.phases[0], "add_page");
    assert_eq!((f.only, &f.maybe), (Some(Only::Base), &None));
}
