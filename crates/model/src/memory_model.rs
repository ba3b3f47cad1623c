//! Models of caches and TLBs: their sizes, as a user names or describes them.

use serde::{Deserialize, Deserializer, Serialize};

use crate::Bytes;

/// The sizes of the caches and TLBs of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryModel {
    /// Its name, for people.
    pub name: String,
    /// The cache of data of each CPU.
    pub l1d: CacheSize,
    /// The second cache of each CPU.
    pub l2: CacheSize,
    /// Whether a line that leaves L2 leaves L1D too.
    #[serde(default)]
    pub inclusive: bool,
    /// What each CPU adds to its last-level cache.
    pub llc: CacheSize,
    /// The largest number of CPUs that share a last-level cache; `None` for all of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llc_cpus: Option<u32>,
    /// The first TLBs of each CPU for data. Each size of pages has one.
    pub dtlb: Vec<TlbSize>,
    /// The second ones.
    pub stlb: Vec<TlbSize>,
}

/// The size of a cache with lines of 64 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSize {
    /// Its bytes. The number of sets can be any.
    pub size: Bytes,
    /// Its ways.
    pub ways: u32,
}

/// The size of a TLB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlbSize {
    /// The sizes of its pages.
    pub pages: Vec<PageSize>,
    /// Its entries.
    pub entries: u32,
    /// Its ways.
    pub ways: u32,
}

/// A size of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PageSize {
    /// 4 KiB.
    #[serde(rename = "4K")]
    Small,
    /// 2 MiB.
    #[serde(rename = "2M")]
    Large,
    /// 1 GiB.
    #[serde(rename = "1G")]
    Huge,
}

use PageSize::{Huge, Large, Small};

impl CacheSize {
    /// The bytes of a line.
    const LINE: u64 = 64;
    const MOST: u64 = 1 << 28;
    const MOST_WAYS: u32 = 64;

    const fn new(kib: u64, ways: u32) -> Self {
        Self { size: Bytes(kib << 10), ways }
    }

    /// The number of its sets.
    pub fn sets(self) -> u64 {
        self.size.0 / Self::LINE / u64::from(self.ways.max(1))
    }

    fn is_sound(self) -> bool {
        (1..=Self::MOST_WAYS).contains(&self.ways)
            && (1..=Self::MOST).contains(&self.size.0)
            && self.sets() * Self::LINE * u64::from(self.ways) == self.size.0
    }
}

impl TlbSize {
    const MOST: u32 = 1 << 16;
    const MOST_WAYS: u32 = 128;

    fn new(pages: &[PageSize], entries: u32, ways: u32) -> Self {
        Self { pages: pages.to_vec(), entries, ways }
    }

    fn is_sound(&self) -> bool {
        (1..=Self::MOST_WAYS).contains(&self.ways)
            && (1..=Self::MOST).contains(&self.entries)
            && self.entries.is_multiple_of(self.ways)
    }
}

impl MemoryModel {
    /// The names of the models that are known.
    pub const NAMES: [&str; 3] = ["skylake-2s", "sapphire-2s", "milan-2s"];

    /// The model with this name. Sizes are those that CPUID of a processor reports, in leaves 2, 4 and 0x18, or 0x80000005,
    /// 0x80000006, 0x80000019 and 0x8000001D (dumps of github.com/InstLatx64/InstLatx64 at 087af2c7).
    pub fn named(name: &str) -> Option<Self> {
        let model = match name {
            "skylake-2s" => Self::skylake(),
            "sapphire-2s" => Self::sapphire(),
            "milan-2s" => Self::milan(),
            _ => return None,
        };
        Some(Self { name: name.to_owned(), ..model })
    }

    /// Xeon Scalable of 2017: `GenuineIntel0050654_SkylakeXeon_CPUID16`. The STLB has 12 ways (anandtech.com/show/11550);
    /// CPUID says 6.
    fn skylake() -> Self {
        Self {
            name: String::new(),
            l1d: CacheSize::new(32, 8),
            l2: CacheSize::new(1024, 16),
            inclusive: false,
            llc: CacheSize::new(1408, 11),
            llc_cpus: None,
            dtlb: vec![
                TlbSize::new(&[Small], 64, 4),
                TlbSize::new(&[Large], 32, 4),
                TlbSize::new(&[Huge], 4, 4),
            ],
            stlb: vec![TlbSize::new(&[Small, Large], 1536, 12), TlbSize::new(&[Huge], 16, 4)],
        }
    }

    /// Xeon Scalable of 2023: `GenuineIntel00806F8_SapphireRapids_06`. Its first TLB is that of loads; the processor has
    /// another one of 16 entries for stores. Its STLB has two parts of 1024 entries and 8 ways, one for 4 KiB and 2 MiB,
    /// one for 4 KiB and 1 GiB; here small pages have both, and do not take the place of others.
    fn sapphire() -> Self {
        Self {
            l1d: CacheSize::new(48, 12),
            l2: CacheSize::new(2048, 16),
            llc: CacheSize::new(1920, 15),
            dtlb: vec![
                TlbSize::new(&[Small], 64, 4),
                TlbSize::new(&[Large], 32, 4),
                TlbSize::new(&[Huge], 8, 8),
            ],
            stlb: vec![
                TlbSize::new(&[Small], 2048, 16),
                TlbSize::new(&[Large], 1024, 8),
                TlbSize::new(&[Huge], 1024, 8),
            ],
            ..Self::skylake()
        }
    }

    /// EPYC of 2021 (Zen 3): `AuthenticAMD0A00F11_K19_Milan_02`. 8 CPUs share a last-level cache of 32 MiB. CPUID says 8 ways
    /// of the second TLB for 4 KiB and 4 for 2 MiB; here both have 8.
    fn milan() -> Self {
        Self {
            l1d: CacheSize::new(32, 8),
            l2: CacheSize::new(512, 8),
            inclusive: true,
            llc: CacheSize::new(4096, 16),
            llc_cpus: Some(8),
            dtlb: vec![TlbSize::new(&[Small, Large, Huge], 64, 64)],
            stlb: vec![TlbSize::new(&[Small, Large], 2048, 8), TlbSize::new(&[Huge], 64, 64)],
            ..Self::skylake()
        }
    }

    /// The problem with the sizes, if there is one.
    pub fn problem(&self) -> Option<String> {
        let caches = [("l1d", self.l1d), ("l2", self.l2), ("llc", self.llc)];
        if let Some((name, _)) = caches.into_iter().find(|(_, it)| !it.is_sound()) {
            let most = Bytes(CacheSize::MOST);
            return Some(format!(
                "the size of {name} is not a multiple of its ways times 64 bytes, with {} ways and {most} at most",
                CacheSize::MOST_WAYS
            ));
        }
        for (name, level) in [("dtlb", &self.dtlb), ("stlb", &self.stlb)] {
            if !level.iter().all(TlbSize::is_sound) {
                return Some(format!(
                    "the entries of {name} are not a multiple of its ways, with {} ways and {} entries at most",
                    TlbSize::MOST_WAYS,
                    TlbSize::MOST
                ));
            }
            let mut pages: Vec<PageSize> = level.iter().flat_map(|it| &it.pages).copied().collect();
            pages.sort();
            if pages != [Small, Large, Huge] {
                return Some(format!("{name} does not have each of 4K, 2M and 1G once"));
            }
        }
        (self.llc_cpus == Some(0)).then(|| "llc_cpus is 0".to_owned())
    }
}

/// A model in a file: the name of one that is known, or a description.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected skylake-2s, sapphire-2s, milan-2s, or all sizes of a model"
)]
enum Asked {
    Name(String),
    Sizes(MemoryModel),
}

/// Reads a model that is named or described.
///
/// # Errors
/// If the name is unknown, or the description is incomplete.
pub fn asked<'de, D: Deserializer<'de>>(from: D) -> Result<Option<MemoryModel>, D::Error> {
    match Asked::deserialize(from)? {
        Asked::Sizes(model) => Ok(Some(model)),
        Asked::Name(name) => match MemoryModel::named(&name) {
            Some(model) => Ok(Some(model)),
            None => {
                let known = MemoryModel::NAMES.join(", ");
                Err(serde::de::Error::custom(format!(
                    "there is no memory model `{name}`: use {known}"
                )))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_models_are_sound_and_have_the_sets_of_their_processors() {
        let sets = MemoryModel::NAMES.map(|name| {
            let model = MemoryModel::named(name).unwrap();
            assert_eq!((&*model.name, model.problem()), (name, None));
            [model.l1d, model.l2, model.llc].map(CacheSize::sets)
        });
        assert_eq!(sets, [[64, 1024, 2048], [64, 2048, 2048], [64, 1024, 4096]]);
        // 24.75 MiB of 18 CPUs, 82.5 MiB of 44 and 32 MiB of 8.
        let whole = |name: &str, cpus: u64| MemoryModel::named(name).unwrap().llc.size.0 * cpus;
        assert_eq!(whole("skylake-2s", 18), 25344 << 10);
        assert_eq!(whole("sapphire-2s", 44), 84480 << 10);
        assert_eq!(whole("milan-2s", 8), 32 << 20);
        assert_eq!(MemoryModel::named("x"), None);
    }

    #[test]
    fn sizes_that_no_cache_has_are_a_problem() {
        let skylake = || MemoryModel::named("skylake-2s").unwrap();
        let wrong = [
            MemoryModel { l1d: CacheSize::new(32, 0), ..skylake() },
            MemoryModel { l2: CacheSize::new(1, 3), ..skylake() },
            MemoryModel { llc: CacheSize { size: Bytes(1 << 40), ways: 16 }, ..skylake() },
            MemoryModel { dtlb: vec![TlbSize::new(&[Small, Large], 64, 4)], ..skylake() },
            MemoryModel { stlb: vec![TlbSize::new(&[Small, Large, Huge], 64, 5)], ..skylake() },
            MemoryModel { stlb: [skylake().stlb, skylake().stlb].concat(), ..skylake() },
            MemoryModel { llc_cpus: Some(0), ..skylake() },
        ];
        for model in wrong {
            assert!(model.problem().is_some(), "{model:?}");
        }
    }
}
