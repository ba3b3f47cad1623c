//! Tests of kernels in packages of rpm. The packages are made by `rpmbuild`, some of them by the test.

mod fixture;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::{Bench, kernel, write};
use kernels::{Error, unpack};
use proptest::prelude::*;

const RELEASE: &str = "6.14.0-63.fc42.x86_64";
/// What packages are compressed with, and whether we read it.
const PAYLOADS: [(&str, bool); 6] = [
    ("w9.gzdio", true),
    ("w6.xzdio", true),
    ("w3.zstdio", true),
    ("w6.lzdio", true),
    ("w.ufdio", true),
    ("w9.bzdio", false),
];

/// The files of a kernel as Fedora has them, and files with two names, links and an empty file.
fn tree(root: &Path) {
    let library = root.join("lib/modules").join(RELEASE);
    write(&library.join("vmlinuz"), &kernel(RELEASE));
    write(&library.join("config"), b"CONFIG_NUMA=y\n");
    write(&library.join("modules.builtin"), b"kernel/fs/ext4/ext4.ko\n");
    write(&library.join("kernel/fs/xfs.ko"), &b"\x7fELF module ".repeat(1000));
    write(&library.join("empty"), b"");
    write(&library.join("twice/one"), b"the same");
    fs::hard_link(library.join("twice/one"), library.join("twice/two")).unwrap();
    symlink(format!("/usr/src/kernels/{RELEASE}"), library.join("build")).unwrap();
    symlink("vmlinuz", library.join("link")).unwrap();
}

/// Makes a package of a tree; `None` if `rpmbuild` is not installed. A script of the package would make `mark`.
fn rpm(directory: &Path, name: &str, tree: &Path, payload: &str, mark: &Path) -> Option<PathBuf> {
    let spec = format!(
        "%define debug_package %{{nil}}\n%define __os_install_post %{{nil}}\nAutoReqProv: no\n\
         Name: {name}\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\n%description\nx\n\
         %install\ncp -a {tree}/. %{{buildroot}}\n%pre\ntouch {mark}\n%post\ntouch {mark}\n%files\n/lib\n",
        tree = tree.display(),
        mark = mark.display()
    );
    let path = directory.join(format!("{name}.spec"));
    fs::write(&path, spec).unwrap();
    let built = Command::new("rpmbuild")
        .args(["-bb", "--quiet", "--target", "x86_64", "--define"])
        .arg(format!("_topdir {}", directory.join("rpmbuild").display()))
        .args(["--define", &format!("_binary_payload {payload}")])
        .arg(&path)
        .env("HOME", directory)
        .output();
    let Ok(built) = built else {
        eprintln!("skipped: rpmbuild is not installed");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(directory.join(format!("rpmbuild/RPMS/x86_64/{name}-1-1.x86_64.rpm")))
}

/// A package that is kept with the tests.
fn kept(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rpm").join(name)
}

fn refused(bench: &Bench, package: &Path) -> String {
    let error = bench.cache.obtain(package.to_str().unwrap(), &|_| ()).unwrap_err();
    assert!(error.is_the_users(), "{error}");
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), []);
    error.to_string()
}

#[test]
fn packages_of_rpmbuild_are_unpacked_as_they_were_packed() {
    let bench = Bench::new();
    let (from, mark) = (bench.path("tree"), bench.path("mark"));
    tree(&from);
    for (payload, is_known) in PAYLOADS {
        let name = payload.replace('.', "-");
        let Some(path) = rpm(bench.directory.path(), &name, &from, payload, &mark) else { return };
        if !is_known {
            let error = refused(&bench, &path);
            assert!(error.ends_with(
                "its compression `bzip2` is not known here: gzip, xz, lzma and zstd are"
            ));
            continue;
        }
        let to = bench.path(&name);
        unpack::unpack(&[path], &to).unwrap();
        let mut diff = Command::new("diff");
        diff.env("LC_ALL", "C").args(["-r", "--no-dereference"]).args([&from, &to]);
        let compared = String::from_utf8(diff.output().unwrap().stdout).unwrap();
        // The link to the headers leads nowhere.
        let expected = format!("Only in {}/lib/modules/{RELEASE}: build\n", from.display());
        assert_eq!(compared, expected, "{payload}");
    }
    assert!(!mark.exists(), "a script of a package was run");
}

#[test]
fn packages_become_a_kernel() {
    let bench = Bench::new();
    let spec = ["core-zstd.rpm", "modules-xz.rpm"].map(|name| kept(name).display().to_string());
    let kernel = bench.cache.obtain(&spec.join("+"), &|_| ()).unwrap();
    assert_eq!((&*kernel.name, &*kernel.release), (RELEASE, RELEASE));
    assert!(kernel.vmlinux.is_some() && kernel.image.ends_with("bzImage"));
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some("CONFIG_NUMA=y\n"));
    assert_eq!(kernels::modules::choose(&kernel, &["xfs", "ext4"]).unwrap().len(), 1);
}

#[test]
fn damaged_packages_are_refused() {
    let bench = Bench::new();
    let bytes = fs::read(kept("core-zstd.rpm")).unwrap();
    let path = bench.path("damaged.rpm");
    let error = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let error = refused(&bench, &path);
        error.split_once(": ").unwrap().1.to_owned()
    };
    let changed = |place: usize| {
        let mut bytes = bytes.clone();
        bytes[place] ^= 1;
        error(&bytes)
    };
    assert_eq!(changed(0), "it is not a package of rpm");
    assert!(changed(7).starts_with("it is a package of sources"));
    assert!(changed(97).starts_with("it is damaged: it has no header"));
    assert_eq!(changed(bytes.len() - 20), "it is damaged: the SHA-256 of its files differs");
    let header = bytes.windows(3).rposition(|it| it == [0x8e, 0xad, 0xe8]).unwrap();
    assert_eq!(changed(header + 40), "it is damaged: the SHA-256 of its header differs");
    assert_eq!(error(&bytes[..50]), "it is truncated");
    assert_eq!(error(&bytes[..header + 100]), "it is truncated");
    assert!(error(&bytes[..bytes.len() - 1]).contains("SHA-256 of its files"));
    let mut large = bytes.clone();
    large[header + 8..header + 12].fill(0xff);
    assert_eq!(error(&large), "its header is larger than that of any kernel");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    /// The package has no digests, so that damage reaches all parts of the reader.
    #[test]
    fn damage_is_never_a_panic(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        length in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = fs::read(kept("no-digests.rpm")).unwrap();
        for (place, byte) in places {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(length) = length {
            bytes.truncate(length.index(bytes.len()));
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("damaged.rpm");
        fs::write(&path, bytes).unwrap();
        if let Err(error) = unpack::unpack(&[path], &directory.path().join("root")) {
            prop_assert!(matches!(error, Error::NoKernel { .. }), "{error}");
        }
        prop_assert!(fs::read_dir(directory.path()).unwrap().count() <= 2);
    }
}

/// Makes the packages that are kept with the tests, in the directory FAULTLINE_TEST_FIXTURE.
#[test]
#[ignore = "it makes fixtures, with rpmbuild"]
fn maker() {
    let Some(to) = std::env::var_os("FAULTLINE_TEST_FIXTURE").map(PathBuf::from) else { return };
    let bench = Bench::new();
    let part = |name: &str, payload: &str, left_out: &[&str]| {
        let from = bench.path(name);
        tree(&from);
        for file in left_out {
            let path = from.join("lib/modules").join(RELEASE).join(file);
            if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
        }
        let mark = Path::new("/mark");
        fs::read(rpm(bench.directory.path(), name, &from, payload, mark).unwrap()).unwrap()
    };
    let image = ["vmlinuz", "config", "modules.builtin"];
    let core = part("core", "w3.zstdio", &["kernel", "twice", "empty"]);
    fs::write(to.join("core-zstd.rpm"), core).unwrap();
    fs::write(to.join("modules-xz.rpm"), part("modules", "w6.xzdio", &image)).unwrap();
    let mut whole = part("whole", "w.ufdio", &[]);
    // The entries of the digests of header and files get a tag that nobody knows.
    for [tag, kind] in [[273u32, 6u32], [5092, 8]] {
        let entry = [tag.to_be_bytes(), kind.to_be_bytes()].concat();
        let place = whole.windows(8).position(|it| it == entry).unwrap();
        whole[place] = 0x7f;
    }
    fs::write(to.join("no-digests.rpm"), whole).unwrap();
}
