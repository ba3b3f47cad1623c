//! Comparison of package versions as dpkg does it (deb-version(7)).

use std::cmp::Ordering;

/// Compares two package versions; the newer one is greater.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a, b) = (parts(a), parts(b));
    number(a.epoch, b.epoch)
        .then_with(|| part(a.upstream, b.upstream))
        .then_with(|| part(a.revision, b.revision))
}

/// The upstream version in a package version: `6.1.176` in `1:6.1.176-1`.
pub(crate) fn upstream(version: &str) -> &str {
    parts(version).upstream
}

/// The parts of a version; those that it does not have are empty.
struct VersionParts<'a> {
    epoch: &'a str,
    upstream: &'a str,
    revision: &'a str,
}

/// Splits a version: `1:6.1.176-1` has the epoch 1, the upstream version 6.1.176 and the revision 1.
fn parts(version: &str) -> VersionParts<'_> {
    let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    VersionParts { epoch, upstream, revision }
}

/// Compares alternating parts of text and numbers.
fn part(mut a: &str, mut b: &str) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let (text_a, text_b) = (cut(&mut a, false), cut(&mut b, false));
        let (number_a, number_b) = (cut(&mut a, true), cut(&mut b, true));
        let order = text(text_a, text_b).then_with(|| number(number_a, number_b));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// Splits off the leading digits or the leading non-digits.
fn cut<'a>(rest: &mut &'a str, digits: bool) -> &'a str {
    let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
    let (front, back) = rest.split_at(end);
    *rest = back;
    front
}

/// Compares text. A tilde sorts before the end, the end before letters, letters before the rest.
fn text(a: &str, b: &str) -> Ordering {
    let weight = |byte: u8| match byte {
        b'~' => (0, byte),
        byte if byte.is_ascii_alphabetic() => (2, byte),
        byte => (3, byte),
    };
    let weights = |text: &str| text.bytes().map(weight).chain([(1, 0)]).collect::<Vec<_>>();
    weights(a).cmp(&weights(b))
}

/// Compares digits of any length as numbers.
fn number(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Each is older than the next, by `dpkg --compare-versions`.
    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        let rising = "5.10.1~rc1-1 5.10.1-1 5.10.9-1 5.10.10-1 6.1.176-1 6.1.192-2~deb11u1 \
            6.1.192-2 6.1.192-2+b1 6.1.192-10 6.1.192+dfsg-1 6.12.117-1~bpo13+1 \
            6.12.117-1~deb12u1 6.12.117-1 7.3~rc2-1 7.3-1 7.3a-1 7.3.4-1 1:0.1-1";
        let rising: Vec<&str> = rising.split(' ').collect();
        for (index, a) in rising.iter().enumerate() {
            for (other, b) in rising.iter().enumerate() {
                assert_eq!(compare(a, b), index.cmp(&other), "{a} and {b}");
            }
        }
        assert_eq!(compare("1.0", "0:1.00-0"), Ordering::Equal);
        assert_eq!(upstream("1:6.1.176-1~x"), "6.1.176");
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "[0-9a-c.+~:-]{0,9}", b in "[0-9a-c.+~:-]{0,9}",
                                 c in "[0-9a-c.+~:-]{0,9}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
