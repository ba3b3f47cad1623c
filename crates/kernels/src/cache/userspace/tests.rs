use std::cell::RefCell;

use super::*;
use crate::debian::testing::archive;

const PACKAGES: [(&str, &str, &str, &str); 3] = [
    ("fio", "3.33-3", "", "usr/bin/fio"),
    ("coreutils", "9.1-1", "", "bin/true"),
    ("dash", "0.5-1", "", "bin/sh"),
];

/// Writes an image that lists the files and the digests of their contents.
fn mkfs(tree: &Path, image: &Path) -> Result<(), String> {
    let listed = std::process::Command::new("sh")
        .args(["-c", "cd \"$0\" && find . -type f | LC_ALL=C sort | xargs sha256sum"])
        .arg(tree)
        .output();
    fs::write(image, listed.unwrap().stdout).map_err(|error| error.to_string())
}

fn fio() -> [String; 1] {
    ["fio".to_owned()]
}

#[test]
fn a_lock_makes_the_same_image_in_another_cache() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path(), &PACKAGES);
    let open = || Ok(archive.clone());
    let caches = ["one", "two"].map(|name| Cache::at(directory.path().join(name)));
    let made = caches[0].maker(&open, &mkfs, &|_| ()).of_packages(&fio()).unwrap();
    let lock = caches[0].userspace_lock(&fio(), &|line| panic!("{line}")).unwrap();
    assert_eq!(made.lock.as_ref(), Some(&lock));
    let again = caches[1].maker(&open, &mkfs, &|_| ()).of_lock(&lock).unwrap();
    assert_eq!((&again.digest, &again.packages), (&made.digest, &made.packages));
    assert_ne!(again.image, made.image);
    assert_eq!(fs::read(&again.image).unwrap(), fs::read(&made.image).unwrap());
    // The archive is not used for an image in the cache, by name or by lock.
    let gone = || panic!("the archive is asked");
    for cache in &caches {
        let mut later = UserspaceLock { taken: 0, ..lock.clone() };
        later.packages[0].file = "archive/elsewhere.deb".into();
        let known = cache.maker(&gone, &mkfs, &|_| ()).of_lock(&later).unwrap();
        assert_eq!(known.digest, made.digest);
        assert_eq!(cache.userspace_of_digest(&made.digest).unwrap(), Some(known));
    }
    let known = caches[0].maker(&gone, &mkfs, &|_| ()).of_packages(&fio()).unwrap();
    assert_eq!(known, made);
}

#[test]
fn an_image_and_its_record_are_checked_against_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path(), &PACKAGES);
    let open = || Ok(archive.clone());
    let cache = Cache::at(directory.path().join("cache"));
    let made = cache.maker(&open, &mkfs, &|_| ()).of_packages(&fio()).unwrap();
    made.check().unwrap();
    let bytes = fs::read(&made.image).unwrap();
    let mut flipped = bytes.clone();
    flipped[10] ^= 1;
    for other in [&flipped[..], &bytes[..bytes.len() - 1], b""] {
        fs::write(&made.image, other).unwrap();
        let error = made.check().unwrap_err().to_string();
        let remedy = format!("`faultline userspace remove {}`", &made.digest[..16]);
        assert!(error.contains("its SHA-256 differs") && error.contains(&remedy), "{error}");
    }
    fs::remove_file(&made.image).unwrap();
    assert!(made.check().is_err());
    fs::write(&made.image, bytes).unwrap();
    let record = made.image.with_file_name("userspace.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replacen("fio=3.33-3", "fio=3.33-4", 1)).unwrap();
    let error = cache.userspace(&fio(), &mkfs, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("its packages are not those of its lock"), "{error}");
}

#[test]
fn renewed_packages_refer_to_a_new_image() {
    let directory = tempfile::tempdir().unwrap();
    let first = archive(directory.path(), &PACKAGES);
    let open = || Ok(first.clone());
    let cache = Cache::at(directory.path().join("cache"));
    let maker = cache.maker(&open, &mkfs, &|_| ());
    let none = maker.renew(vec![fio().into()]).unwrap_err().to_string();
    assert!(none.starts_with("the cache has no image of fio"), "{none}");
    let old = maker.of_packages(&fio()).unwrap();
    let same = maker.renew(vec![fio().into()]).unwrap();
    assert_eq!((&same[0].old, &same[0].new), (&old, &old));
    archive(directory.path(), &[("fio", "3.33-4", "", "usr/bin/fio4"), PACKAGES[1], PACKAGES[2]]);
    assert_eq!(maker.of_packages(&fio()).unwrap(), old);
    let renewed = maker.renew(vec![fio().into()]).unwrap();
    let [Renewed { new, .. }] = &renewed[..] else { panic!("{renewed:?}") };
    assert_eq!(new.packages, ["coreutils=9.1-1", "dash=0.5-1", "fio=3.33-4"]);
    assert_eq!(&maker.of_packages(&fio()).unwrap(), new);
    // The old image remains for boots that used it.
    assert_eq!(cache.userspace_of_digest(&old.digest).unwrap().as_ref(), Some(&old));
    assert!(fs::read(&old.image).unwrap() != fs::read(&new.image).unwrap());
    let mut known = cache.userspaces(&|line| panic!("{line}")).unwrap();
    known.sort_by_key(|known| known.image.digest != old.digest);
    let expected = [
        KnownUserspace { image: old.clone(), wanted: vec![] },
        KnownUserspace { image: new.clone(), wanted: vec![fio().into()] },
    ];
    assert_eq!(known, expected);
    cache.remove_userspace(&new.digest[..12], &|_| ()).unwrap();
    assert_eq!(cache.userspaces(&|line| panic!("{line}")).unwrap(), expected[..1]);
    for (digest, number) in [(&*new.digest, 0), ("", 0)] {
        let error = cache.remove_userspace(digest, &|_| ()).unwrap_err();
        assert!(matches!(error, Error::UnknownImage { number: n, .. } if n == number), "{error}");
    }
}

#[test]
fn renewal_without_the_archive_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path(), &PACKAGES);
    let cache = Cache::at(directory.path().join("cache"));
    let open = || Ok(archive.clone());
    let maker = cache.maker(&open, &mkfs, &|_| ());
    maker.of_packages(&fio()).unwrap();
    fs::remove_dir_all(directory.path().join("archive")).unwrap();
    let error = maker.renew(vec![fio().into()]).unwrap_err();
    assert!(matches!(error, Error::Tool { tool: "apt-get", .. }), "{error}");
}

#[test]
fn packages_refer_to_images_of_old_caches() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path());
    let wanted = Wanted::new(&fio()).unwrap();
    let home = cache.userspace_directory().join(wanted.old_place());
    assert!(home.ends_with("d39364c9765fb308"), "{home:?}");
    fs::create_dir_all(&home).unwrap();
    let record = r#"{"schema": 1, "wanted": ["fio"], "packages": ["fio=1"], "size": "2M",
                     "digest": "00"}"#;
    fs::write(home.join("userspace.json"), record).unwrap();
    let gone = || panic!("the archive is asked");
    let known = cache.maker(&gone, &mkfs, &|_| ()).of_packages(&fio()).unwrap();
    assert_eq!((known.packages.as_slice(), &known.lock), (&["fio=1".to_owned()][..], &None));
    let listed = KnownUserspace { image: known, wanted: vec![fio().into()] };
    assert_eq!(cache.userspaces(&|line| panic!("{line}")).unwrap(), [listed]);
    // Another one with the same digest is removed with it.
    let other = cache.userspace_directory().join("00");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("userspace.json"), record).unwrap();
    assert_eq!(cache.userspaces(&|line| panic!("{line}")).unwrap().len(), 2);
    cache.remove_userspace("0", &|_| ()).unwrap();
    assert_eq!(cache.userspaces(&|line| panic!("{line}")).unwrap(), []);
}

#[test]
fn a_damaged_image_does_not_affect_others() {
    let directory = tempfile::tempdir().unwrap();
    let archive = archive(directory.path(), &PACKAGES);
    let open = || Ok(archive.clone());
    let cache = Cache::at(directory.path().join("cache"));
    let maker = cache.maker(&open, &mkfs, &|_| ());
    let other = maker.of_packages(&["dash".to_owned()]).unwrap();
    let fio = maker.of_packages(&fio()).unwrap();
    let lock = fio.lock.clone().unwrap();
    let home = fio.image.parent().unwrap();
    fs::write(home.join("userspace.json"), "{").unwrap();

    let said = RefCell::new(Vec::new());
    let say = |line: &str| said.borrow_mut().push(line.to_owned());
    let listed = cache.userspaces(&say).unwrap();
    assert_eq!(listed.into_iter().map(|known| known.image).collect::<Vec<_>>(), [other]);
    let name = &fio.digest[..16];
    let [line] = &said.borrow()[..] else { panic!("{said:?}") };
    assert!(line.contains(&home.display().to_string()), "{line}");
    let remedy = format!("remove the image with `faultline userspace remove {name}`");
    assert!(line.ends_with(&remedy), "{line}");

    let mended = maker.of_lock(&lock).unwrap();
    assert_eq!((&mended.image, &mended.digest), (&fio.image, &fio.digest));
    assert_eq!(maker.of_packages(&["fio".to_owned()]).unwrap(), mended);
    fs::write(home.join("userspace.json"), "{").unwrap();
    for wrong in ["", ".", "..", &name[..12]] {
        assert!(cache.remove_userspace(wrong, &|_| ()).is_err(), "{wrong}");
    }
    cache.remove_userspace(name, &|_| ()).unwrap();
    assert!(!home.exists());
    assert_eq!(cache.userspaces(&|line| panic!("{line}")).unwrap().len(), 1);
}
