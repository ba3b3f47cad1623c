//! Lists of explanations.

use compare::{Difference, Reason, Subject};

use super::common::words;
use super::{explained, kernels, text};

#[test]
fn system_calls_have_their_number_and_the_cost_of_each() {
    let (mut explanation, _) = explained(&kernels::old(), &kernels::new());
    let [base, new] = [150_000.0, 170_000.0];
    let reason =
        |name: &str| Reason { name: name.into(), cost: Difference { base, new, floor: Some(1.0) } };
    let rare = Difference { base: 6.25, new: 6.0, floor: Some(1.0) };
    let timer = Reason { name: "interrupt timer".into(), cost: rare };
    explanation.reasons = Some(vec![reason("system call kill"), timer]);
    assert!(!text(&explanation, None).contains("per call"));
    let all = &mut explanation.measured.as_mut().unwrap().contributions;
    let mut functions = all.iter_mut().filter(|it| it.calls.is_some());
    for (name, entries) in [("__x64_sys_kill", [100.0, 125.0]), ("__ia32_sys_kill", [0.0, 1.0])] {
        let it = functions.next().unwrap();
        it.subject = Subject::Function { name: name.into(), module: String::new() };
        let own = &mut it.calls.as_mut().unwrap().entries;
        (own.base, own.new) = (entries[0], entries[1]);
    }
    let said = words(&text(&explanation, None));
    let told = "beyond system call kill (100 calls before, 125 now; 1,500.00 per call before, 1,360.00 now)";
    assert!(said.contains(told), "{said}");
    assert!(said.contains(" 6.25 6.00 -0.25 -4.00% 1.00 within interrupt timer "), "{said}");
}
