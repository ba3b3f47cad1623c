//! Tests with Debian's archive.

use std::cell::RefCell;

use kernels::out_of_tree::Source;
use kernels::{Cache, Error, Request};
use model::{Architecture, Kernel};

/// A module that does nothing.
const SOURCE: Source =
    Source { name: "nothing", text: "#include <linux/module.h>\nMODULE_LICENSE(\"GPL\");\n" };

#[test]
#[ignore = "fetches up to 130 MB from deb.debian.org: `make check-long` runs it"]
fn kernels_of_both_forms_are_fetched_once() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path());
    for (wanted, prefix) in [("debian:6.1", "6.1."), ("newest", "")] {
        let kernel = cache.obtain(wanted, &|line| eprintln!("{line}")).unwrap();
        assert!(kernel.name.starts_with(prefix) && kernel.name.ends_with("-cloud-amd64"));
        assert!(kernel.vmlinux.is_some() && kernel.config.is_some(), "{kernel:?}");
        let modules = kernels::modules::choose(&kernel, &["xfs", "virtio_blk"]).unwrap();
        let names: Vec<_> = modules.iter().map(|module| module.name.as_str()).collect();
        assert!(names.contains(&"xfs"), "{names:?}");
        for module in modules {
            assert!(kernels::image::is_elf(&module.read().unwrap()), "{module:?}");
        }
        for name in [wanted, &kernel.name] {
            let again = cache.obtain(name, &|line| panic!("once is enough: {line}")).unwrap();
            assert_eq!(again, kernel);
        }
    }
    assert_eq!(cache.list(&|_| ()).unwrap().len(), 2);
    let kernels = cache.list(&|_| ()).unwrap();
    for kernel in &kernels {
        a_module_is_built(&cache, kernel);
    }
    what_cannot_be_built_is_told(&cache, &kernels[0]);
}

#[test]
#[ignore = "fetches up to 130 MB from deb.debian.org: `make check-long` runs it"]
fn kernels_for_arm64_are_kept_beside_others() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path());
    let arm64 = cache.obtain("6.1@arm64", &|line| eprintln!("{line}")).unwrap();
    assert!(arm64.name.ends_with("-cloud-arm64") && arm64.arch == Architecture::Arm64);
    assert!(arm64.image.ends_with("Image") && arm64.config.is_some(), "{arm64:?}");
    assert_eq!(arm64.vmlinux.as_ref(), Some(&arm64.image));
    assert!(!kernels::modules::choose(&arm64, &["xfs"]).unwrap().is_empty());
    let once = |line: &str| panic!("once is enough: {line}");
    let release = format!("{}@arm64", arm64.name);
    for name in ["debian:6.1@arm64", &arm64.name, &release] {
        assert_eq!(cache.obtain(name, &once).unwrap(), arm64, "{name}");
    }
    assert_eq!(cache.get("6.1").unwrap(), None);
}

/// Built once, then taken from the cache.
fn a_module_is_built(cache: &Cache, kernel: &Kernel) {
    let built = cache.out_of_tree(kernel, &SOURCE, &|line| eprintln!("{line}")).unwrap().unwrap();
    let bytes = built.read().unwrap();
    assert!(kernels::image::is_elf(&bytes));
    let magic = format!("vermagic={} SMP", kernel.release);
    assert!(bytes.windows(magic.len()).any(|window| window == magic.as_bytes()), "{magic}");
    let again = cache.out_of_tree(kernel, &SOURCE, &|line| panic!("once is enough: {line}"));
    assert_eq!(again.unwrap().unwrap(), built);
}

fn what_cannot_be_built_is_told(cache: &Cache, kernel: &Kernel) {
    let wrong = Source { name: "wrong", text: "int wrong\n" };
    let why = cache.out_of_tree(kernel, &wrong, &|_| ()).unwrap().unwrap_err();
    assert!(
        why.starts_with("cannot be used to build the module wrong: ") && why.contains("error"),
        "{why}"
    );
    let gone = Kernel { origin: "Debian 2.4.1-1, linux-image".into(), ..kernel.clone() };
    let other = Source { name: "other", text: "" };
    let why = cache.out_of_tree(&gone, &other, &|_| ()).unwrap().unwrap_err();
    assert_eq!(why, "has no headers in the Debian archive: 2.4.1-1");
}

#[test]
#[ignore = "fetches up to 130 MB from deb.debian.org: `make check-long` runs it"]
fn a_kernel_that_the_archive_lacks_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::at(directory.path());
    let said = RefCell::new(String::new());
    let say = |line: &str| said.borrow_mut().push_str(line);
    let add = |version: &str, suite: &str| {
        let (version, suite) = (version.into(), Some(suite.into()));
        let request = Request::Debian { version, arch: Architecture::X86_64, suite };
        cache.add(&request, &say).unwrap_err()
    };
    let absent = add("2.4", "trixie-backports");
    assert!(matches!(absent, Error::NotInArchive { .. }), "{absent}");
    let no_suite = add("6.1", "nosuchsuite");
    assert!(matches!(no_suite, Error::Tool { tool: "apt-get", .. }), "{no_suite}");
    assert!(said.borrow().contains("The lists of nosuchsuite cannot be fetched"), "{said:?}");
}
