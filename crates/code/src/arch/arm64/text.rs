//! Instructions in Arm's assembly language, as `objdump` prints them.

use yaxpeax_arch::{Arch, Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::ARMv8;

use super::names;
use super::word::{Named, Word};
use crate::image::Image;

/// The text of an instruction, with the names of addresses. `formed` is the address that it forms by a register.
pub(super) fn of(word: Word, address: u64, formed: Option<u64>, image: &Image<'_>) -> String {
    let name = |address: u64| image.name(address);
    let text = system(word).unwrap_or_else(|| decoded(word));
    match word.named(address) {
        Some((
            named @ (Named::Target(to)
            | Named::Page(to)
            | Named::Address(to)
            | Named::Literal(to, _)),
            _,
        )) => {
            let shown = match named {
                Named::Page(_) => None, // what is used of it, another instruction tells
                _ => name(to),
            };
            let shown = shown.unwrap_or_else(|| format!("{to:#x}"));
            // The decoder writes the distance.
            text.split_once('$').map_or(text.clone(), |(before, _)| format!("{before}{shown}"))
        }
        None => match formed.and_then(name) {
            Some(name) => format!("{text} // {name}"),
            None => text,
        },
    }
}

fn decoded(word: Word) -> String {
    let decoder = <ARMv8 as Arch>::Decoder::default();
    let bytes = word.0.to_le_bytes();
    let Ok(instruction) = decoder.decode(&mut U8Reader::new(&bytes)) else {
        return format!(".inst {:#010x}", word.0);
    };
    let text = instruction.to_string().replace(" #0]", "]");
    extended(word, conditional(text))
}

/// The text with the names of conditions that `objdump` has.
fn conditional(text: String) -> String {
    for (one, other) in [("hs", "cs"), ("lo", "cc")] {
        if let Some(rest) = text.strip_prefix("b.").and_then(|it| it.strip_prefix(one)) {
            return format!("b.{other}{rest}");
        }
        if let Some(rest) = text.strip_suffix(one).filter(|it| it.ends_with(", ")) {
            return format!("{rest}{other}");
        }
    }
    text
}

/// The text with the extension of an added register of 32 bits, for which the decoder writes a shift.
fn extended(word: Word, text: String) -> String {
    if !word.is(0x9fe0_e000, 0x8b20_4000) {
        return text;
    }
    match text.split_once(", lsl #") {
        Some((before, by)) => format!("{before}, uxtw #{by}"),
        None => format!("{text}, uxtw"),
    }
}

/// Instructions whose names the decoder does not know.
fn system(word: Word) -> Option<String> {
    let register = || match word.field(0, 5) {
        31 => "xzr".to_owned(),
        number => format!("x{number}"),
    };
    let number = word.field(5, 14) as u16;
    if word.is(0xffff_f01f, 0xd503_201f) {
        return Some(names::hint(word.field(5, 7) as u16)?.to_owned());
    }
    if word.is(0xfff8_f01f, 0xd500_401f) {
        let field = names::field((word.field(16, 3) << 3 | word.field(5, 3)) as u16)?;
        return Some(format!("msr {field}, #{:#x}", word.field(8, 4)));
    }
    if word.is(0xfff8_0000, 0xd508_0000) {
        let name = names::operation(number)?;
        let is_whole = word.field(0, 5) == 31 && !takes_register(name);
        return Some(match is_whole {
            true => name.to_owned(),
            false => format!("{name}, {}", register()),
        });
    }
    let number = word.field(5, 15) as u16;
    match word.0 >> 20 {
        0xd53 => Some(format!("mrs {}, {}", register(), names::register(number)?)),
        0xd51 => Some(format!("msr {}, {}", names::register(number)?, register())),
        _ => None,
    }
}

/// Whether an operation on caches or address translation has a register.
fn takes_register(name: &str) -> bool {
    let of = name.split_once(' ').map_or("", |(_, of)| of);
    !(of.starts_with("vmall") || of.starts_with("all") || of.starts_with("iall"))
}
