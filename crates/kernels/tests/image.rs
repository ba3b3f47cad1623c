//! Handmade images, some of them damaged.

mod fixture;

use fixture::{bzimage, gzip, kernel, vmlinux};
use kernels::image::{self, Error};
use proptest::prelude::*;

#[test]
fn the_vmlinux_comes_out_as_it_went_in() {
    let elf = vmlinux("6.1.0-test", 18);
    assert_eq!(image::extract(&kernel("6.1.0-test")).unwrap(), elf);
    assert_eq!(
        image::extract(&bzimage("x", &zstd::encode_all(&elf[..], 1).unwrap())).unwrap(),
        elf
    );
}

#[test]
fn images_tell_their_release() {
    assert_eq!(image::release(&kernel("6.1.0-test")).as_deref(), Some("6.1.0-test"));
    assert_eq!(image::release(&vmlinux("7.3.4+", 18)).as_deref(), Some("7.3.4+"));
    assert_eq!(image::release(b"\x7fELF"), None);
    assert_eq!(image::release(&[0; 4096]), None);
}

#[test]
fn only_a_pvh_note_is_a_pvh_entry() {
    assert!(image::has_pvh_entry(&vmlinux("x", 18)));
    assert!(!image::has_pvh_entry(&vmlinux("x", 6)));
    assert!(!image::has_pvh_entry(&kernel("x")));
}

#[test]
fn what_is_wrong_with_an_image_is_told() {
    let error = |file: &[u8]| image::extract(file).unwrap_err();
    assert!(matches!(error(b"MZ"), Error::NotBzImage));
    assert!(matches!(error(&vmlinux("x", 18)), Error::NotBzImage));
    let good = kernel("x");
    assert!(matches!(error(&good[..good.len() - 101]), Error::CutShort { .. }));
    assert!(matches!(error(&bzimage("x", b"BZh91AY")), Error::UnknownFormat));
    assert!(matches!(error(&bzimage("x", &gzip(b"no ELF"))), Error::NotElf));
    let mut old = good;
    old[0x206] = 0x05;
    assert_eq!(
        error(&old[..]).to_string(),
        "its boot protocol 2.05 does not tell where the kernel lies (2.08 and newer do)"
    );
}

proptest! {
    #[test]
    fn damaged_images_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        end in any::<prop::sample::Index>(),
    ) {
        for mut file in [kernel("6.1.0-test"), vmlinux("6.1.0-test", 18)] {
            for (place, value) in &changes {
                let place = place.index(file.len());
                file[place] = *value;
            }
            for file in [&file[..], &file[..end.index(file.len())]] {
                let _ = (image::extract(file), image::has_pvh_entry(file), image::release(file));
            }
        }
    }
}
