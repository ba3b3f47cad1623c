//! Merges commits that do not change the kernel into their parents.

use crate::{History, Node};

/// A history in which each node is one commit, or several that have the same kernel.
#[derive(Clone, Debug)]
pub struct Contracted {
    /// The history of the groups.
    pub history: History,
    /// The commits of each group, in order. The first one changes the kernel, unless it is the good end.
    pub groups: Vec<Vec<Node>>,
}

impl Contracted {
    /// Joins commits with their parents. `parents` are the parents of each commit, as for [`History::new`]. `is_same`
    /// tells whether a commit has the same kernel as its parent with this index.
    ///
    /// A merge is joined with a parent only if all its other parents are ancestors of that parent. Otherwise the
    /// commits that those bring would have no place.
    pub fn new(parents: &[Vec<Node>], is_same: impl Fn(Node, usize) -> bool) -> Self {
        let mut history = History::new(vec![Vec::new()]);
        let mut groups: Vec<Vec<Node>> = vec![vec![0]];
        let mut of: Vec<Node> = vec![0];
        for (node, parents) in parents.iter().enumerate().skip(1) {
            let own: Vec<Node> = parents.iter().map(|parent| of[*parent]).collect();
            let joined = (0..own.len()).find(|place| {
                is_same(node, *place) && own.iter().all(|it| history.has(own[*place], *it))
            });
            let group = match joined {
                Some(place) => own[place],
                None => {
                    let mut distinct: Vec<Node> = Vec::new();
                    for group in own {
                        if !distinct.contains(&group) {
                            distinct.push(group);
                        }
                    }
                    history.push(distinct);
                    groups.push(Vec::new());
                    history.bad()
                }
            };
            groups[group].push(node);
            of.push(group);
        }
        Self { history, groups }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_without_effect_are_one_with_their_parents() {
        // 0 - 1 - 2 ----- 5 - 6
        //      \- 3 - 4 -/
        let parents = [vec![], vec![0], vec![1], vec![1], vec![3], vec![2, 4], vec![5]];
        let contracted = |same: &'static [(Node, usize)]| {
            Contracted::new(&parents, |node, place| same.contains(&(node, place)))
        };
        // No commit on the side branch changes the kernel.
        let side = contracted(&[(3, 0), (4, 0), (5, 0)]);
        assert_eq!(side.groups, [vec![0], vec![1, 3, 4], vec![2, 5], vec![6]]);
        assert_eq!(side.history.bad(), 3);
        assert_eq!(side.history.parents(2), [1]);
        // A merge that drops the changes of a branch is a node of its own.
        let dropped = contracted(&[(5, 0)]);
        assert_eq!(dropped.groups.len(), 7);
        // No commit changes the kernel.
        let none = Contracted::new(&parents, |_, _| true);
        assert_eq!((none.groups.len(), none.history.bad()), (1, 0));
    }
}
