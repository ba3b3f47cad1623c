//! Makes the schedule: which variant boots when. It is made before anything runs.
//!
//! In each block each variant boots once. The order changes from block to block, so that drift of the machine
//! does not look like a difference between kernels. Two variants go A B, B A, A B ...; more follow the rows
//! of a Williams design, a Latin square in which each variant also follows each other equally often (E. J.
//! Williams, "Experimental designs balanced for the estimation of residual effects of treatments", 1949). The
//! schedule for more boots begins with the schedule for fewer, so boots can be added later.

use store::ExperimentId;

/// The largest number of boots of a variant.
pub const MOST_BOOTS: u32 = 10_000;

/// One boot of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// Index of the variant.
    pub variant: usize,
    /// The number of this boot of the variant, from 0.
    pub boot_index: u32,
    /// The number of its block. It equals the boot index, because each block boots each variant once.
    pub block: u32,
}

/// The name of the directory for the files of a boot.
pub fn files_of(id: ExperimentId, slot: Slot) -> String {
    format!("{id}-{}-{}", slot.variant, slot.boot_index)
}

/// The schedule of `boots` boots for each of `variants` variants.
pub fn schedule(variants: usize, boots: u32) -> Vec<Slot> {
    (0..boots)
        .flat_map(|block| {
            row(variants, block as usize).into_iter().map(move |variant| Slot {
                variant,
                boot_index: block,
                block,
            })
        })
        .collect()
}

/// Row `index` of the design for `count` treatments: 0, 1, n-1, 2, n-2 ... shifted by the row's
/// number. An odd count needs the mirrored square too, which comes after the first.
fn row(count: usize, index: usize) -> Vec<usize> {
    let zigzag = (0..count)
        .map(|place| if place % 2 == 1 { place.div_ceil(2) } else { (count - place / 2) % count });
    let mut row: Vec<usize> = zigzag.map(|treatment| (treatment + index) % count).collect();
    if count % 2 == 1 && (index / count) % 2 == 1 {
        row.reverse();
    }
    row
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn letters(variants: usize, boots: u32) -> String {
        schedule(variants, boots).iter().map(|slot| (b'A' + slot.variant as u8) as char).collect()
    }

    #[test]
    fn two_variants_alternate() {
        assert_eq!(letters(2, 4), "ABBAABBA");
        assert_eq!(letters(1, 3), "AAA");
        assert_eq!(letters(0, 3), "");
    }

    #[test]
    fn each_block_boots_each_variant_once() {
        for variants in 1..8 {
            for block in schedule(variants, 9).chunks(variants) {
                let mut seen: Vec<_> = block.iter().map(|slot| slot.variant).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..variants).collect::<Vec<_>>());
                assert!(block.iter().all(|slot| slot.block == block[0].block));
            }
        }
    }

    #[test]
    fn complete_designs_are_balanced_in_place_and_carry_over() {
        for variants in 2..7_usize {
            let rows = if variants.is_multiple_of(2) { variants } else { 2 * variants };
            let slots = schedule(variants, rows as u32);
            let mut places = HashMap::new();
            let mut follows = HashMap::new();
            for block in slots.chunks(variants) {
                for (place, slot) in block.iter().enumerate() {
                    *places.entry((place, slot.variant)).or_insert(0) += 1;
                }
                for pair in block.windows(2) {
                    *follows.entry((pair[0].variant, pair[1].variant)).or_insert(0) += 1;
                }
            }
            assert!(places.len() == variants * variants);
            assert!(places.values().all(|count| *count == rows / variants));
            assert!(follows.len() == variants * (variants - 1));
            assert!(follows.values().all(|count| *count == rows / variants));
        }
    }

    #[test]
    fn a_longer_schedule_extends_a_shorter_one() {
        assert_eq!(schedule(3, 7)[..15], schedule(3, 5)[..]);
    }
}
