//! Tests with handmade images, some of them damaged.

mod fixture;

use fixture::{bzimage, exporting, gzip, kernel, lz4, sum, vmlinux};
use kernels::arch::image::{self, Error};
use kernels::image::loaded;
use proptest::prelude::*;

#[test]
fn the_vmlinux_is_extracted() {
    let elf = vmlinux("6.1.0-test", 18);
    assert_eq!(image::extract(&kernel("6.1.0-test")).unwrap(), elf);
    let zstd = [zstd::encode_all(&elf[..], 1).unwrap(), (elf.len() as u32).to_le_bytes().to_vec()];
    for packed in [zstd.concat(), lz4(&elf)] {
        assert_eq!(image::extract(&bzimage("x", &packed)).unwrap(), elf);
    }
}

#[test]
fn the_release_is_read_from_images() {
    assert_eq!(image::release(&kernel("6.1.0-test")).as_deref(), Some("6.1.0-test"));
    assert_eq!(image::release(&vmlinux("7.3.4+", 18)).as_deref(), Some("7.3.4+"));
    assert_eq!(image::release(b"\x7fELF"), None);
    assert_eq!(image::release(&[0; 4096]), None);
}

#[test]
fn only_a_pvh_note_is_a_pvh_entry() {
    assert!(image::has_entry(&vmlinux("x", 18)));
    assert!(!image::has_entry(&vmlinux("x", 6)));
    assert!(!image::has_entry(&kernel("x")));
}

#[test]
fn kernels_that_load_the_same_run_alike() {
    let elf = exporting("x", &[("kfree", 0xffff_ffff_8120_0000)]);
    let digest = loaded(&elf).unwrap();
    let changed = |elf: &[u8], place: usize| {
        let mut other = elf.to_vec();
        other[place] ^= 1;
        loaded(&other).unwrap()
    };
    // The section's contents, and what is in none.
    assert_ne!(changed(&elf, 0x1200), digest);
    assert_eq!(changed(&elf, 0x300), digest);
    // The build ID is not compared.
    let name = elf.windows(10).position(|bytes| bytes == b"__ksymtab\0").unwrap();
    let mut notes = elf.clone();
    notes[name..name + 7].copy_from_slice(b".notes\0");
    assert_eq!(changed(&notes, 0x1200), loaded(&notes).unwrap());
    assert_eq!(loaded(b"\x7fELF"), None);
}

#[test]
fn each_error_of_an_image_is_named() {
    let error = |file: &[u8]| image::extract(file).unwrap_err();
    assert!(matches!(error(b"MZ"), Error::NotBzImage));
    assert!(matches!(error(&vmlinux("x", 18)), Error::NotBzImage));
    let good = kernel("x");
    assert!(matches!(error(&good[..good.len() - 120]), Error::CutShort { .. }));
    assert!(matches!(error(&bzimage("x", b"BZh91AY")), Error::UnknownFormat));
    assert!(matches!(error(&bzimage("x", &gzip(b"no ELF"))), Error::NotElf));
    let mut other_size = lz4(&vmlinux("x", 18));
    *other_size.last_mut().unwrap() = 1;
    assert!(matches!(error(&bzimage("x", &other_size)), Error::Damaged(_)));
    let mut old = good;
    old[0x206] = 0x05;
    assert_eq!(
        error(&old[..]).to_string(),
        "its boot protocol 2.05 does not give the offset of the kernel (2.08 and newer do)"
    );
}

/// lz4 has no checksum, but a flipped bit of a name makes another kernel.
#[test]
fn an_lz4_image_is_checked_by_its_crc_even_when_it_was_signed() {
    let mut image = bzimage("x", &lz4(&vmlinux("Flipped", 18)));
    image[0x3c] = 0x40;
    image[0x40..0x44].copy_from_slice(b"PE\0\0");
    let without = image.clone();
    sum(&mut image);
    let mut signed = image.clone();
    signed[0x40 + 88..][..4].fill(7);
    signed[0x40 + 168..][..8].fill(7);
    let place = image.windows(7).position(|window| window == b"Flipped").unwrap();
    for (good, is_found) in [(image, true), (signed, true), (without, false)] {
        image::check(&good).unwrap();
        let mut flipped = good;
        flipped[place] ^= 1;
        assert!(image::extract(&flipped).is_ok());
        assert_eq!(matches!(image::check(&flipped), Err(Error::Sum)), is_found);
    }
}

#[test]
fn a_vmlinux_ends_after_its_segments() {
    let elf = exporting("x", &[("kfree", 0xffff_ffff_8120_0000)]);
    let end = elf.windows(6).position(|window| window == b"kfree\0").unwrap() + 6;
    image::check(&elf).unwrap();
    image::check(&elf[..end]).unwrap();
    for length in [end - 1, 0x200, 190] {
        let error = image::check(&elf[..length]).unwrap_err().to_string();
        let expected = format!("it is truncated: its header requires {end} bytes or more");
        assert!(error.starts_with(&expected), "{length}: {error}");
    }
}

proptest! {
    #[test]
    fn damaged_images_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        let lz4 = bzimage("6.1.0-test", &lz4(&vmlinux("6.1.0-test", 18)));
        for mut file in [kernel("6.1.0-test"), lz4, vmlinux("6.1.0-test", 18)] {
            for (place, value) in &changes {
                let place = place.index(file.len());
                file[place] = *value;
            }
            for file in [&file[..], &file[..end.index(file.len())]] {
                let _ = (image::extract(file), image::check(file));
                let _ = (image::has_entry(file), image::release(file));
            }
        }
    }
}
