//! Packs a profile: a format number, then [`Form`] and for a sampled profile [`Sampled`] in postcard's wire format
//! (<https://postcard.jamesmunns.com>), packed by zstd. Names of functions in call paths are stored once. If call paths in
//! programs are known, they follow as indices into the names, those of each process in turn.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::{fmt, io};

use model::{Accesses, Function, Instructions, Process, Profile, Sampled, Stack};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::packed;

/// The number of the format of exact profiles, of that of sampled ones, and of that of sampled ones with call paths in
/// programs.
const EXACT: u8 = 1;
const SAMPLED: u8 = 2;
const WITH_PROGRAMS: u8 = 3;

/// A process without its call path.
#[derive(Serialize, Deserialize)]
struct Counted {
    id: u32,
    name: String,
    instructions: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct Form {
    cpus: Vec<Instructions>,
    functions: Vec<Function>,
    processes: Vec<Counted>,
    accesses: Vec<Accesses>,
    /// Names in call paths.
    names: Vec<String>,
    /// Call paths as indices into the names, and their instructions.
    stacks: Vec<(Vec<u32>, u64)>,
}

/// The begin of [`Form`], up to the accesses. The larger part, names and call paths, follows.
#[derive(Deserialize)]
struct Beginning {
    #[serde(rename = "cpus")]
    _cpus: Skipped<Instructions>,
    #[serde(rename = "functions")]
    _functions: Skipped<Function>,
    #[serde(rename = "processes")]
    _processes: Skipped<Counted>,
    accesses: Vec<Accesses>,
}

/// A list that is skipped.
struct Skipped<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Skipped<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Self(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Skipped<T> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<T>()?.is_some() {}
        Ok(self)
    }
}

/// Packs a profile, without its workload, iteration and phase.
pub fn encode(profile: &Profile) -> io::Result<Vec<u8>> {
    let mut places = HashMap::new();
    let mut names = Vec::new();
    let mut place = |name: &String| {
        *places.entry(name.clone()).or_insert_with(|| {
            names.push(name.clone());
            names.len() as u32 - 1
        })
    };
    let stacks = profile.stacks.iter().map(|stack| {
        (stack.functions.iter().map(&mut place).collect::<Vec<_>>(), stack.instructions)
    });
    let stacks = stacks.collect();
    let programs: Vec<Vec<u32>> = profile
        .processes
        .iter()
        .map(|process| process.functions.iter().map(&mut place).collect())
        .collect();
    let processes = profile.processes.iter().map(|Process { id, name, instructions, .. }| {
        Counted { id: *id, name: name.clone(), instructions: instructions.clone() }
    });
    let form = Form {
        cpus: profile.cpus.clone(),
        functions: profile.functions.clone(),
        processes: processes.collect(),
        accesses: profile.accesses.clone(),
        names,
        stacks,
    };
    let bytes = match &profile.sampled {
        None => postcard::to_extend(&form, vec![EXACT]),
        Some(sampled) if programs.iter().all(Vec::is_empty) => {
            postcard::to_extend(&(form, sampled), vec![SAMPLED])
        }
        Some(sampled) => postcard::to_extend(&(form, sampled, programs), vec![WITH_PROGRAMS]),
    };
    let bytes = bytes.map_err(io::Error::other)?;
    packed::pack(&bytes, packed::LEVEL)
}

/// Decodes the result of [`encode`]. Workload, iteration and phase are empty. Other bytes are an error.
pub fn decode(packed: &[u8]) -> io::Result<Profile> {
    parse(&packed::unpack(packed)?)
}

/// Decodes only the memory accesses of the result of [`encode`].
pub fn decode_accesses(packed: &[u8]) -> io::Result<Vec<Accesses>> {
    let bytes = packed::unpack(packed)?;
    let (_, bytes) = format(&bytes)?;
    let (form, _): (Beginning, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    Ok(form.accesses)
}

/// The format's number, and the bytes after it.
fn format(bytes: &[u8]) -> io::Result<(u8, &[u8])> {
    match bytes {
        [format @ (EXACT | SAMPLED | WITH_PROGRAMS), bytes @ ..] => Ok((*format, bytes)),
        [other, ..] => Err(io::Error::other(format!("unknown format {other}"))),
        [] => Err(io::Error::other("no data")),
    }
}

fn parse(bytes: &[u8]) -> io::Result<Profile> {
    let (format, bytes) = format(bytes)?;
    let (form, rest): (Form, _) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    let (sampled, rest): (Option<Sampled>, _) = match format {
        EXACT => (None, rest),
        _ => {
            let (sampled, rest) = postcard::take_from_bytes(rest).map_err(io::Error::other)?;
            (Some(sampled), rest)
        }
    };
    let (programs, rest): (Vec<Vec<u32>>, _) = match format {
        WITH_PROGRAMS => postcard::take_from_bytes(rest).map_err(io::Error::other)?,
        _ => (Vec::new(), rest),
    };
    if !rest.is_empty() {
        return Err(io::Error::other(format!("{} trailing bytes", rest.len())));
    }
    let name = |place: &u32| {
        let name = form.names.get(*place as usize).cloned();
        name.ok_or_else(|| io::Error::other(format!("there is no name {place}")))
    };
    let path = |places: &[u32]| places.iter().map(name).collect::<io::Result<Vec<String>>>();
    let stacks = form.stacks.iter().map(|(places, instructions)| {
        Ok(Stack { functions: path(places)?, instructions: *instructions })
    });
    let programs = programs.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    let processes = form.processes.into_iter().zip(programs).map(|(process, places)| {
        let Counted { id, name, instructions } = process;
        Ok(Process { id, name, instructions, functions: path(places)? })
    });
    Ok(Profile {
        stacks: stacks.collect::<io::Result<_>>()?,
        cpus: form.cpus,
        functions: form.functions,
        processes: processes.collect::<io::Result<_>>()?,
        accesses: form.accesses,
        sampled,
        ..Profile::default()
    })
}

#[cfg(test)]
mod tests {
    use model::{Count, Privilege, Slice, Target};
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn any_profile()(
            counts in prop::collection::vec((any::<u64>(), any::<u64>()), 0..9),
            names in prop::collection::vec(".{0,12}", 0..9),
            node in any::<u16>(),
            sampled in prop::option::of(prop::collection::vec((any::<u32>(), any::<u32>()), 0..9)),
        ) -> Profile {
            let counts = counts.into_iter().map(|(a, b)| Count { instructions: a, entries: b });
            let counts: Vec<Count> = counts.collect();
            let cpus = counts.iter().map(|count| Instructions {
                user: count.entries, kernel: count.instructions, firmware: 1,
            });
            Profile {
                cpus: cpus.collect(),
                functions: names.iter().map(|name| Function {
                    name: name.clone(), module: String::new(), counts: counts.clone(),
                }).collect(),
                processes: vec![Process {
                    id: 7, name: names.concat(), instructions: vec![1],
                    functions: if sampled.is_some() { names.clone() } else { Vec::new() },
                }],
                accesses: vec![Accesses {
                    cpu: 3, privilege: Privilege::User, target: Target::Node(node),
                    loads: 1, stores: 2,
                }],
                stacks: (0..names.len()).map(|end| Stack {
                    functions: names[end..].to_vec(), instructions: end as u64,
                }).collect(),
                sampled: sampled.map(|samples| Sampled {
                    event: "cycles".into(), frequency: 99, begun: 1, ended: 2, lost: 3, dropped: 4,
                    slices: vec![Slice { ended: 5, samples }],
                }),
                ..Profile::default()
            }
        }
    }

    proptest! {
        #[test]
        fn decoding_reverses_encoding(profile in any_profile()) {
            let packed = encode(&profile).unwrap();
            prop_assert_eq!(&decode_accesses(&packed).unwrap(), &profile.accesses);
            prop_assert_eq!(decode(&packed).unwrap(), profile);
        }

        #[test]
        fn random_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            let _ = decode(&bytes);
            for format in [EXACT, SAMPLED, WITH_PROGRAMS] {
                bytes[0] = format;
                let _ = parse(&bytes);
            }
            let _ = decode_accesses(&packed::pack(&bytes, packed::LEVEL).unwrap());
        }
    }
}
