//! Commits that no reading so far tells apart.

use crate::{History, Node};

/// Classes of commits. The commits of a class are in the same kernels among those that were read.
pub struct Classes {
    /// The class of each commit. The good end has none: its change is in all kernels.
    pub of: Vec<usize>,
    /// For each class, which of the kernels that were read have its commits.
    pub has: Vec<Vec<bool>>,
}

impl Classes {
    pub fn new(history: &History, read: &[Node]) -> Self {
        let mut of = vec![0; history.len()];
        let mut has = vec![Vec::new()];
        for node in read {
            let ancestors = history.ancestors(*node);
            let mut split = vec![[None; 2]; has.len()];
            let mut next: Vec<Vec<bool>> = Vec::new();
            for (commit, of) in of.iter_mut().enumerate().skip(1) {
                let inside = ancestors.contains(commit);
                let old = *of;
                *of = *split[old][usize::from(inside)].get_or_insert_with(|| {
                    let mut of_class = has[old].clone();
                    of_class.push(inside);
                    next.push(of_class);
                    next.len() - 1
                });
            }
            has = next;
        }
        Self { of, has }.sorted()
    }

    /// Orders the classes so that neighbours have nearly the same kernels.
    fn sorted(self) -> Self {
        let mut order: Vec<usize> = (0..self.has.len()).collect();
        order.sort_by(|a, b| self.has[*a].cmp(&self.has[*b]));
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, class)| place[*class] = at);
        let of = self.of.iter().map(|class| place[*class]).collect();
        Self { of, has: order.into_iter().map(|class| self.has[class].clone()).collect() }
    }
}
