use proptest::prelude::*;

use super::*;

/// A made-up member.
#[derive(Clone, Debug)]
enum Node {
    /// A number of so many bytes.
    Number(u32),
    /// A bit field of so many bits.
    Bits(u32),
    /// An array of so many numbers of 4 bytes.
    Array(u32),
    /// A structure or union, with a name or without.
    Nested { is_union: bool, is_named: bool, nodes: Vec<Node> },
}

fn node() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        prop::sample::select(vec![1_u32, 2, 4, 8]).prop_map(Node::Number),
        (1..32_u32).prop_map(Node::Bits),
        (0..5_u32).prop_map(Node::Array),
    ];
    leaf.prop_recursive(4, 40, 6, |node| {
        (any::<bool>(), any::<bool>(), prop::collection::vec(node, 1..6))
            .prop_map(|(is_union, is_named, nodes)| Node::Nested { is_union, is_named, nodes })
    })
}

fn size(node: &Node) -> u32 {
    match node {
        Node::Number(bytes) => bytes * 8,
        Node::Bits(bits) => *bits,
        Node::Array(length) => length * 32,
        Node::Nested { is_union, nodes, .. } => {
            let ends = placed(nodes, *is_union).map(|(begins, node)| begins + size(node));
            ends.max().unwrap_or(0).next_multiple_of(8)
        }
    }
}

/// The first bit of each member. Bit fields begin at any bit, others at a byte.
fn placed(nodes: &[Node], is_union: bool) -> impl Iterator<Item = (u32, &Node)> {
    nodes.iter().scan(0_u32, move |end, node| {
        let begins = match (is_union, node) {
            (true, _) => 0,
            (false, Node::Bits(_)) => *end,
            (false, _) => end.next_multiple_of(8),
        };
        *end = begins + size(node);
        Some((begins, node))
    })
}

/// Adds a structure or union, and returns its number. Its members are called by their places.
fn add(made: &mut Made, name: &str, is_union: bool, nodes: &[Node], numbers: &[u32; 4]) -> u32 {
    let (mut rest, mut end) = (Vec::new(), 0);
    for (number, (begins, node)) in placed(nodes, is_union).enumerate() {
        let kind = match node {
            Node::Number(bytes) => numbers[bytes.ilog2() as usize],
            Node::Bits(_) => numbers[2],
            Node::Array(length) => made.add(ARRAY, "", 0, 0, &[numbers[2], numbers[2], *length]),
            Node::Nested { is_union, nodes, .. } => add(made, "", *is_union, nodes, numbers),
        };
        let is_named = !matches!(node, Node::Nested { is_named: false, .. });
        let name = if is_named { made.name(&format!("m{number}")) } else { 0 };
        let width = if let Node::Bits(bits) = node { *bits } else { 0 };
        rest.extend([name, kind, width << 24 | begins]);
        end = end.max(begins + size(node));
    }
    // Members have the width of bit fields in the upper 8 bits (`kind_flag`).
    let kind = 1 << 7 | if is_union { UNION } else { STRUCT };
    made.add(kind, name, nodes.len(), end.div_ceil(8), &rest)
}

/// The types of a kernel that has a structure `t` with these members.
fn with_members(nodes: &[Node]) -> Types {
    let mut made = Made::default();
    let numbers = [1, 2, 4, 8].map(|size| made.add(INT, "int", 0, size, &[size * 8]));
    let [.., int, long] = numbers;
    made.members(STRUCT, "task_struct", 24, &[("tgid", int, 0), ("comm", long, 8)]);
    add(&mut made, "t", false, nodes, &numbers);
    Types::read(&made.bytes()).unwrap()
}

/// The names of members without members of their own. Each has its first bit and the bit behind it.
fn leaves(nodes: &[Node], is_union: bool, first: u32, path: &str) -> Vec<(String, u32, u32)> {
    let own = placed(nodes, is_union).enumerate().flat_map(|(number, (begins, node))| {
        let begins = first + begins;
        let dot = if path.is_empty() { "" } else { "." };
        let named = format!("{path}{dot}m{number}");
        let ends = begins + size(node);
        match node {
            Node::Nested { is_union, is_named, nodes } => {
                let is_one = nodes.len() == 1 && !is_union;
                match (*is_named, is_one) {
                    (true, true) => vec![(named, begins, ends)],
                    (true, false) => leaves(nodes, *is_union, begins, &named),
                    (false, _) => leaves(nodes, *is_union, begins, path),
                }
            }
            Node::Array(_) => vec![(format!("{named}[]"), begins, ends)],
            _ => vec![(named, begins, ends)],
        }
    });
    own.collect()
}

proptest! {
    #[test]
    fn members_have_each_field_once(nodes in prop::collection::vec(node(), 1..8)) {
        let types = with_members(&nodes);
        let members = types.members("t").unwrap();
        let mut expected = leaves(&nodes, false, 0, "");
        expected.sort_by_key(|it| it.1 / 8);
        let of = |it: &Member| {
            let (first, width) = it.bits.unwrap_or((0, it.size as u32 * 8));
            let begins = it.offset as u32 * 8 + first;
            (it.name.clone(), begins, begins + width)
        };
        prop_assert_eq!(members.members.iter().map(of).collect::<Vec<_>>(), expected);
        for member in &members.members {
            let bytes = member.offset..member.offset + member.size;
            prop_assert!(bytes.end <= members.size);
            // A byte of one member alone has the member's name.
            let is_alone = |at: &u64| {
                let own = members.members.iter();
                own.filter(|it| (it.offset..it.offset + it.size).contains(at)).count() == 1
            };
            for at in bytes.filter(is_alone) {
                prop_assert_eq!(types.field("t", at), Some(format!("t.{}", member.name)));
            }
        }
    }
}

/// The tenth field is before the eighth by its name.
#[test]
fn a_byte_of_bit_fields_has_the_name_of_the_first() {
    let types = with_members(&[const { Node::Bits(1) }; 12]);
    let fields = [0, 1].map(|at| types.field("t", at).unwrap());
    assert_eq!(fields, ["t.m0", "t.m8"]);
}

#[test]
fn variables_have_members_too() {
    let types = types(true);
    let queue = types.members("per-CPU call_single_queue").unwrap();
    assert_eq!((queue.begins, queue.size), (64, 48));
    let of = |it: &Member| (it.name.clone(), it.offset, it.size);
    let expected = [
        ("mmap_lock.count", 0, 8),
        ("mmap_lock.owner", 8, 8),
        ("first", 24, 4),
        ("both", 24, 8),
        ("rss_stat[]", 32, 32),
    ];
    let members: Vec<_> = queue.members.iter().map(of).collect();
    assert_eq!(members, expected.map(|(name, offset, size)| (name.to_owned(), offset, size)));
    for unknown in ["per-CPU this_cpu_off", "per-CPU nothing", "nothing", "atomic_long_t"] {
        assert_eq!(types.members(unknown), None, "{unknown}");
    }
}
