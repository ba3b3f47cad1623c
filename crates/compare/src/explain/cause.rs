//! Tells causes from consequences. A function whose own code differs can be the cause of a change. A function with
//! the same code became more or less expensive because of others.

use std::collections::HashMap;

use code::{Change, ChangedPlace, CodeDifference, Function};
use serde::Serialize;

use super::{Contribution, Explanation, Section, Subject};

/// How a function's own code differs between the two kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// Both kernels have it, with the same code.
    Same,
    /// Both kernels have it, with different code.
    Differs,
    /// Only the other variant's kernel has it.
    New,
    /// Only the baseline's kernel has it.
    Gone,
}

impl Contribution {
    /// Whether it is a function whose code is known to differ.
    pub fn is_cause(&self) -> bool {
        self.code.is_some_and(|code| code != Code::Same)
    }

    /// Whether its instructions, or its instructions per entry, differ beyond luck. `None` if neither is known.
    pub fn is_beyond_luck(&self) -> Option<bool> {
        let changes = [Some(self.instructions), self.per_entry()].into_iter().flatten();
        changes.filter_map(|it| it.beyond_luck()).reduce(|one, other| one || other)
    }
}

impl Section {
    /// The functions executed whose code differs: first those that changed beyond luck. The largest change is first in each
    /// part.
    pub fn causes(&self) -> Vec<&Contribution> {
        // Contributions are sorted by size.
        let causes = self.contributions.iter().filter(|it| it.is_cause());
        let (sure, others): (Vec<_>, Vec<_>) =
            causes.partition(|it| it.is_beyond_luck() == Some(true));
        sure.into_iter().chain(others).collect()
    }

    /// The only function executed whose code differs; `None` if there are more or none, or if that is not known.
    pub fn only_cause(&self) -> Option<&Contribution> {
        let mut causes = self.contributions.iter().filter(|it| it.is_cause());
        causes.next().filter(|_| causes.next().is_none())
    }
}

impl Explanation {
    /// Marks the kernel's functions by the difference between the code of the two kernels, and ranks those whose code
    /// differs first by instructions per entry. Modules are not marked. If the difference is an error, keeps its text
    /// as [`Explanation::unmarked`].
    pub fn with_code(mut self, difference: Result<CodeDifference, String>) -> Self {
        let difference = match difference {
            Ok(difference) => difference,
            Err(why) => return Self { unmarked: Some(why), ..self },
        };
        let changes = difference.changes();
        let code = |it: &Contribution| match &it.subject {
            Subject::Function { name, module } if module.is_empty() => {
                match changes.get(name.as_str()) {
                    Some(Change::Changed) => Some(Code::Differs),
                    Some(Change::New) => Some(Code::New),
                    Some(Change::Gone) => Some(Code::Gone),
                    None => difference.same.contains(name).then_some(Code::Same),
                }
            }
            _ => None,
        };
        let functions = difference.functions.iter();
        let known: HashMap<&str, &Function> = functions.map(|it| (&*it.name, it)).collect();
        for section in self.all.iter_mut().chain(&mut self.measured).chain(&mut self.phases) {
            for it in &mut section.contributions {
                it.code = code(it);
                if it.code == Some(Code::Differs)
                    && let Subject::Function { name, .. } = &it.subject
                    && let Some(function) = known.get(name.as_str())
                {
                    it.inlined.clone_from(&function.inlined);
                    it.instrumentation.clone_from(&function.instrumentation);
                }
            }
            let Section { per_entry, contributions, .. } = section;
            per_entry.sort_by_key(|&place| !contributions[place].is_cause());
        }
        self
    }

    /// Says where the code of functions differs, by their names. `unlined` is why that is not known for others.
    pub fn with_places(
        mut self,
        places: &HashMap<String, ChangedPlace>,
        unlined: Vec<String>,
    ) -> Self {
        for section in self.all.iter_mut().chain(&mut self.measured).chain(&mut self.phases) {
            for it in section.contributions.iter_mut().filter(|it| it.code == Some(Code::Differs)) {
                if let Subject::Function { name, .. } = &it.subject
                    && let Some(ChangedPlace { inlined, line }) = places.get(name)
                {
                    it.inlined.clone_from(inlined);
                    it.line = Some(line.clone());
                }
            }
        }
        Self { unlined, ..self }
    }
}

#[cfg(test)]
mod tests {
    use code::{Instrumentation, Size};

    use super::super::tests::{dearer, executed, explained};
    use super::*;

    fn difference(changes: &[(&str, Change)], same: &[&str]) -> CodeDifference {
        let function = |&(name, change): &(&str, Change)| Function {
            name: name.into(),
            change,
            base: Size::default(),
            new: Size::default(),
            removed: 0,
            added: 0,
            inlined: (name == "rarely").then(|| "helper".into()),
            instrumentation: Instrumentation::default(),
        };
        let same = same.iter().map(|&name| name.to_owned()).collect();
        CodeDifference { functions: changes.iter().map(function).collect(), same }
    }

    #[test]
    fn a_cause_is_ranked_before_a_larger_consequence() {
        let boot = |cause: u64, consequence: u64| {
            executed(&[
                ("often", "", 1000, consequence),
                ("rarely.isra.0", "", 4, cause),
                ("rarely", "ext4", 5, 5),
                ("other", "", 1, 1),
            ])
        };
        let explanation = explained(&[boot(40, 20_000)], &[boot(80, 25_000)]);
        let all = |explanation: &Explanation| explanation.all.clone().unwrap();
        assert_eq!(dearer(&all(&explanation)), ["often", "rarely"]);
        let explanation =
            explanation.with_code(Ok(difference(&[("rarely", Change::Changed)], &["often"])));
        assert_eq!(dearer(&all(&explanation)), ["rarely", "often"]);
        assert_eq!(dearer(&explanation.phases[0]), ["rarely", "often"]);
        let only =
            |explanation: &Explanation| Some(all(explanation).only_cause()?.subject.to_string());
        assert_eq!(only(&explanation).as_deref(), Some("rarely"));
        let both = difference(&[("rarely", Change::Changed), ("other", Change::New)], &[]);
        assert_eq!(only(&explanation.clone().with_code(Ok(both))), None);
        let marks = all(&explanation).contributions.into_iter();
        let mut marks: Vec<_> =
            marks.map(|it| (it.subject.to_string(), it.code, it.inlined)).collect();
        marks.retain(|(name, ..)| !name.starts_with('['));
        assert_eq!(
            marks,
            [
                ("often".to_owned(), Some(Code::Same), None),
                ("rarely".to_owned(), Some(Code::Differs), Some("helper".to_owned())),
                ("other".to_owned(), None, None),
                ("rarely [ext4]".to_owned(), None, None),
            ]
        );
    }

    #[test]
    fn new_code_and_code_that_is_gone_are_causes() {
        let [base, new] = [[("early", "", 1, 10)], [("late", "", 1, 10)]];
        let difference = difference(&[("late", Change::New), ("early", Change::Gone)], &["f"]);
        let explanation =
            explained(&[executed(&base)], &[executed(&new)]).with_code(Ok(difference));
        let all = explanation.all.unwrap();
        let code = |name: &str| {
            let it = all.contributions.iter().find(|it| it.subject.to_string() == name).unwrap();
            (it.code, it.is_cause())
        };
        assert_eq!(code("late"), (Some(Code::New), true));
        assert_eq!(code("early"), (Some(Code::Gone), true));
    }
}
