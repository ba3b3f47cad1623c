//! Packs samples and times of iterations: a format number, then [`Form`] in postcard's wire format
//! (<https://postcard.jamesmunns.com>), packed by zstd.

use std::io;
use std::num::NonZeroU32;

use model::{Sample, Usage};
use serde::{Deserialize, Serialize};

use crate::packed;

/// The number of the format.
const FORMAT: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Form<'a> {
    #[serde(borrow)]
    samples: Vec<Value<'a>>,
    #[serde(borrow)]
    usage: Vec<Times<'a>>,
}

/// A [`Sample`] as it is stored.
#[derive(Serialize, Deserialize)]
struct Value<'a> {
    workload: &'a str,
    iteration: u32,
    phase: &'a str,
    metric: &'a str,
    label: &'a str,
    value: f64,
    count: NonZeroU32,
    ended: Option<u64>,
}

/// A [`Usage`] as it is stored.
#[derive(Serialize, Deserialize)]
struct Times<'a> {
    workload: &'a str,
    iteration: u32,
    user: f64,
    system: f64,
    elapsed: f64,
}

/// Packs samples and times.
pub fn encode(samples: &[Sample], usage: &[Usage]) -> io::Result<Vec<u8>> {
    let samples = samples.iter().map(|it| Value {
        workload: &it.workload,
        iteration: it.iteration,
        phase: &it.phase,
        metric: &it.metric,
        label: &it.label,
        value: it.value,
        count: it.count,
        ended: it.ended,
    });
    let usage = usage.iter().map(|it| Times {
        workload: &it.workload,
        iteration: it.iteration,
        user: it.user,
        system: it.system,
        elapsed: it.elapsed,
    });
    let form = Form { samples: samples.collect(), usage: usage.collect() };
    let bytes = postcard::to_extend(&form, vec![FORMAT]).map_err(io::Error::other)?;
    packed::pack(&bytes, packed::LEVEL)
}

/// Decodes the result of [`encode`]. Other bytes are an error.
pub fn decode(packed: &[u8]) -> io::Result<(Vec<Sample>, Vec<Usage>)> {
    parse(&packed::unpack(packed)?)
}

fn parse(bytes: &[u8]) -> io::Result<(Vec<Sample>, Vec<Usage>)> {
    let form: Form = match bytes {
        [FORMAT, form @ ..] => packed::whole(form)?,
        [other, ..] => return Err(io::Error::other(format!("unknown format {other}"))),
        [] => return Err(io::Error::other("no data")),
    };
    let samples = form.samples.into_iter().map(|it| Sample {
        workload: it.workload.into(),
        iteration: it.iteration,
        phase: it.phase.into(),
        metric: it.metric.into(),
        label: it.label.into(),
        value: it.value,
        count: it.count,
        ended: it.ended,
    });
    let usage = form.usage.into_iter().map(|it| Usage {
        workload: it.workload.into(),
        iteration: it.iteration,
        user: it.user,
        system: it.system,
        elapsed: it.elapsed,
    });
    Ok((samples.collect(), usage.collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    prop_compose! {
        fn any_sample()(
            names in prop::array::uniform4(".{0,12}"),
            iteration: u32,
            value: i64,
            count in 1..u32::MAX,
            ended: Option<u64>,
        ) -> Sample {
            let [workload, phase, metric, label] = names;
            let count = NonZeroU32::new(count).unwrap();
            // NaN is left out, because it is not equal to itself.
            let value = Some(f64::from_bits(value.cast_unsigned())).filter(|it| !it.is_nan());
            let value = value.unwrap_or_default();
            Sample { workload, iteration, phase, metric, label, value, count, ended }
        }
    }

    proptest! {
        #[test]
        fn decoding_reverses_encoding(samples in prop::collection::vec(any_sample(), 0..9)) {
            let usage = samples.iter().map(|it| Usage {
                workload: it.label.clone(), iteration: it.iteration,
                user: it.value, system: 0.25, elapsed: -it.value,
            });
            let usage: Vec<Usage> = usage.collect();
            let packed = encode(&samples, &usage).unwrap();
            prop_assert_eq!(decode(&packed).unwrap(), (samples, usage));
        }

        #[test]
        fn random_bytes_do_not_panic(mut bytes in prop::collection::vec(any::<u8>(), 1..256)) {
            let _ = decode(&bytes);
            bytes[0] = FORMAT;
            let _ = parse(&bytes);
        }
    }
}
