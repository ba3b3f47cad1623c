//! The commits of a range and their order.

use fixedbitset::FixedBitSet;

/// Index of a commit in a [`History`].
pub type Node = usize;

/// The commits that are reachable from the bad end and not from the good end. Parents come before their
/// children. Node 0 is the good end, the last node is the bad end. A parent outside the range is an ancestor
/// of the good end, or forked before it; node 0 stands for it.
#[derive(Clone, Debug)]
pub struct History {
    parents: Vec<Vec<Node>>,
    ancestors: Vec<FixedBitSet>,
}

impl History {
    /// Makes the history in which node `n` has `parents[n]`.
    ///
    /// # Panics
    /// When a parent does not come before its child, or a node other than 0 has no parent.
    pub fn new(parents: Vec<Vec<Node>>) -> Self {
        let mut history = Self { parents: Vec::new(), ancestors: Vec::new() };
        parents.into_iter().for_each(|parents| history.push(parents));
        history
    }

    /// Adds a commit, which becomes the bad end.
    pub(crate) fn push(&mut self, parents: Vec<Node>) {
        let node = self.len();
        assert!(node == 0 || !parents.is_empty(), "node {node} has no parent");
        let mut own = FixedBitSet::with_capacity(node + 1);
        own.insert(node);
        for parent in &parents {
            own.union_with(&self.ancestors[*parent]);
        }
        self.parents.push(parents);
        self.ancestors.push(own);
    }

    /// A history of `commits` commits after the good end, without merges.
    pub fn linear(commits: usize) -> Self {
        Self::new(
            (0..=commits).map(|node: usize| node.checked_sub(1).into_iter().collect()).collect(),
        )
    }

    /// The number of nodes, including the good end.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether there is no node, not even the good end.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// The bad end: the last node.
    pub fn bad(&self) -> Node {
        self.len() - 1
    }

    /// The parents of a commit. The first parent is the one that the others were merged into.
    pub fn parents(&self, node: Node) -> &[Node] {
        &self.parents[node]
    }

    /// A commit with all its ancestors.
    pub fn ancestors(&self, node: Node) -> &FixedBitSet {
        &self.ancestors[node]
    }

    /// Whether a kernel built from `node` has the change of `commit`.
    pub fn has(&self, node: Node, commit: Node) -> bool {
        self.ancestors[node].contains(commit)
    }

    /// The commits that `node` has and `without` lacks, as `git rev-list without..node` lists them.
    pub fn between(&self, without: Node, node: Node) -> FixedBitSet {
        let mut between = self.ancestors[node].clone();
        between.difference_with(&self.ancestors[without]);
        between
    }

    /// The commits that `high` has and `low` lacks, as a history of their own whose good end is `low`; and the node
    /// of each in this history.
    pub fn part(&self, low: Node, high: Node) -> (Self, Vec<Node>) {
        let mut part = Self::new(vec![Vec::new()]);
        let mut nodes = vec![low];
        let mut places = vec![0; self.len()];
        for node in self.between(low, high).ones() {
            let mut parents: Vec<Node> = self.parents[node].iter().map(|it| places[*it]).collect();
            parents.dedup();
            places[node] = part.len();
            part.push(parents);
            nodes.push(node);
        }
        (part, nodes)
    }

    /// The first parents from `node` down to the first one outside `within`; that one is the first element.
    pub fn line(&self, node: Node, within: &FixedBitSet) -> Vec<Node> {
        let mut line = vec![node];
        let mut last = node;
        while within.contains(last) {
            let Some(parent) = self.parents[last].first() else { break };
            line.push(*parent);
            last = *parent;
        }
        line.reverse();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 2 ----- 5 - 6
    ///      \- 3 - 4 -/
    fn merged() -> History {
        History::new(vec![vec![], vec![0], vec![1], vec![1], vec![3], vec![2, 4], vec![5]])
    }

    #[test]
    fn ancestors_follow_all_parents() {
        let history = merged();
        let of = |node| history.ancestors(node).ones().collect::<Vec<_>>();
        assert_eq!(of(4), [0, 1, 3, 4]);
        assert_eq!(of(5), [0, 1, 2, 3, 4, 5]);
        assert!(history.has(6, 3) && history.has(3, 3) && !history.has(2, 3));
        assert_eq!(history.between(2, 5).ones().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!((history.len(), history.bad()), (7, 6));
    }

    #[test]
    fn a_part_is_a_range_of_its_own() {
        let (part, nodes) = merged().part(2, 5);
        assert_eq!(nodes, [2, 3, 4, 5]);
        assert_eq!(
            (part.parents(1), part.parents(2), part.parents(3)),
            (&[0][..], &[1][..], &[0, 2][..])
        );
        assert_eq!(merged().part(0, 6).0.len(), 7);
    }

    #[test]
    fn lines_follow_first_parents() {
        let history = merged();
        let line = |from, to| history.line(to, &history.between(from, to));
        assert_eq!(line(0, 6), [0, 1, 2, 5, 6]);
        assert_eq!(line(2, 4), [1, 3, 4]);
        assert_eq!(History::linear(3).parents(2), [1]);
    }
}
