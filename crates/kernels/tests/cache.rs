//! Tests of the cache with handmade packages and files, without network.

mod fixture;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::{Bench, bzimage, deb, gzip, kernel, vmlinux, write};
use kernels::out_of_tree::Source;
use kernels::{Error, Files, Request};
use sha2::{Digest, Sha256};

const RELEASE: &str = "6.1.0-9-cloud-amd64";

impl Bench {
    /// A package like Debian's up to 6.18.
    fn whole_deb(&self, image: &[u8]) -> PathBuf {
        let tree = self.path("tree");
        write(&tree.join("boot/vmlinuz-6.1.0-9-cloud-amd64"), image);
        write(&tree.join("boot/config-6.1.0-9-cloud-amd64"), b"CONFIG_NUMA=y\n");
        let modules = tree.join("lib/modules").join(RELEASE);
        write(&modules.join("modules.builtin"), b"kernel/fs/ext4/ext4.ko\n");
        write(&modules.join("modules.order"), b"kernel/one.ko\n");
        write(&modules.join("kernel/one.ko"), &vmlinux("x", 1));
        deb(&tree, "whole.deb")
    }

    fn add(&self, request: &Request) -> Result<model::Kernel, Error> {
        self.cache.add(request, &|_| ())
    }

    fn leftovers(&self) -> usize {
        fs::read_dir(self.path("cache/tmp")).map_or(0, Iterator::count)
    }
}

fn package(path: PathBuf) -> Request {
    Request::Packages { files: vec![path], name: None }
}

fn files(image: &Path, modules: Option<PathBuf>, name: Option<&str>) -> Request {
    let (image, name) = (image.to_owned(), name.map(str::to_owned));
    Request::Files(Files { image, modules, name, ..Files::default() })
}

#[test]
fn a_kernel_with_changed_files_is_an_error() {
    let bench = Bench::new();
    let deb = bench.whole_deb(&kernel(RELEASE));
    let kernel = bench.add(&package(deb)).unwrap();
    let obtain = || bench.cache.obtain(RELEASE, &|_| ());
    assert_eq!(obtain().unwrap(), kernel);
    let module = kernel.modules.as_ref().unwrap().join("kernel/one.ko");
    let vmlinux = kernel.vmlinux.clone().unwrap();
    for file in [&kernel.image, &vmlinux, kernel.config.as_ref().unwrap(), &module] {
        let bytes = fs::read(file).unwrap();
        let mut flipped = bytes.clone();
        *flipped.last_mut().unwrap() ^= 1;
        fs::write(file, flipped).unwrap();
        let expected = format!(
            "{}: it has changed since it was added: its SHA-256 differs; remove the kernel \
                         (`faultline kernel remove {RELEASE}`) and add it again",
            file.display()
        );
        assert_eq!(obtain().unwrap_err().to_string(), expected);
        fs::write(file, bytes).unwrap();
        obtain().unwrap();
    }
    fs::remove_file(&module).unwrap();
    assert!(obtain().unwrap_err().to_string().contains("one.ko: it is missing"));
    bench.cache.remove(RELEASE, &|_| ()).unwrap();
}

#[test]
fn a_fifo_in_the_place_of_a_list_or_a_record_is_not_opened() {
    let bench = Bench::new();
    let kernel = bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    for name in ["sha256sums", "kernel.json"] {
        let path = kernel.image.with_file_name(name);
        fs::remove_file(&path).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let error = bench.cache.obtain(RELEASE, &|_| ()).unwrap_err().to_string();
        assert!(error.contains("it is a FIFO, not a regular file"), "{error}");
    }
}

#[test]
fn the_list_of_digests_has_every_file_of_a_kernel_and_agrees_with_its_record() {
    let bench = Bench::new();
    let kernel = bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    let home = kernel.image.parent().unwrap();
    let (sums, record) = (home.join("sha256sums"), home.join("kernel.json"));
    let [list, recorded] = [&sums, &record].map(|path| fs::read_to_string(path).unwrap());
    let fails = |problem: &str| {
        let error = bench.cache.obtain(RELEASE, &|_| ()).unwrap_err();
        let remedy =
            format!("; remove the kernel (`faultline kernel remove {RELEASE}`) and add it again");
        let error = error.to_string();
        assert!(error.ends_with(&remedy) && error.contains(problem), "{problem}: {error}");
        fs::write(&sums, &list).unwrap();
        fs::write(&record, &recorded).unwrap();
        bench.cache.obtain(RELEASE, &|_| ()).unwrap();
    };

    fs::remove_file(&sums).unwrap();
    fails("sha256sums: it is missing, so the files beside it cannot be checked");
    fs::write(&sums, "").unwrap();
    fails("bzImage: it is not listed in sha256sums");
    fs::write(&sums, "a").unwrap();
    fails("line 1 is not a digest");
    // The list is damaged if any single line is missing.
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.len() >= 8, "{list}");
    for left_out in &lines {
        let rest: String =
            lines.iter().filter(|line| *line != left_out).map(|line| format!("{line}\n")).collect();
        fs::write(&sums, rest).unwrap();
        let (_, place) = left_out.split_once("  ").unwrap();
        fails(&format!("{}: it is not listed in sha256sums", home.join(place).display()));
    }
    for length in 0..list.len() {
        fs::write(&sums, &list[..length]).unwrap();
        let cut = bench.cache.obtain(RELEASE, &|_| ());
        assert!(cut.is_err() || length + 1 == list.len(), "{length} bytes");
    }

    // The record and the list have different digests of the image. The image itself has not changed.
    let of = |text: &str| format!("{:x}", Sha256::digest(text));
    let other = recorded.replace(&kernel.digest, &of("another image"));
    fs::write(&record, &other).unwrap();
    fs::write(&sums, list.replace(&of(&recorded), &of(&other))).unwrap();
    fails("bzImage: its SHA-256 differs from that in kernel.json");
    // Both the file and its line are missing.
    let vmlinux = kernel.vmlinux.as_ref().unwrap();
    let bytes = fs::read(vmlinux).unwrap();
    fs::remove_file(vmlinux).unwrap();
    let rest = lines.iter().filter(|line| !line.ends_with("  vmlinux"));
    fs::write(&sums, rest.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let error = bench.cache.obtain(RELEASE, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("vmlinux: it is not listed"), "{error}");
    fs::write(vmlinux, bytes).unwrap();
    fs::write(&sums, &list).unwrap();
    // A file that nobody added.
    let stray = kernel.modules.as_ref().unwrap().join("kernel/stray.ko");
    fs::write(&stray, "").unwrap();
    let error = bench.cache.obtain(RELEASE, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("stray.ko: it is not listed"), "{error}");
}

#[test]
fn a_package_becomes_a_kernel() {
    let bench = Bench::new();
    let deb = bench.whole_deb(&kernel(RELEASE));
    let said = RefCell::new(Vec::new());
    let added =
        bench.cache.add(&package(deb.clone()), &|line| said.borrow_mut().push(line.to_owned()));
    let kernel = added.unwrap();

    assert_eq!((kernel.name.as_str(), kernel.release.as_str()), (RELEASE, RELEASE));
    assert_eq!(kernel.digest.len(), 64);
    assert_eq!(fs::read(kernel.vmlinux.as_ref().unwrap()).unwrap(), vmlinux(RELEASE, 18));
    assert_eq!(fs::read(kernel.config.as_ref().unwrap()).unwrap(), b"CONFIG_NUMA=y\n");
    let modules = kernels::modules::choose(&kernel, &["one", "ext4"]).unwrap();
    assert_eq!(modules[0].path, kernel.modules.as_ref().unwrap().join("kernel/one.ko"));
    assert_eq!(modules.len(), 1);
    assert_eq!(said.borrow().len(), 2, "{said:?}");

    assert_eq!(bench.cache.get(RELEASE).unwrap().as_ref(), Some(&kernel));
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), std::slice::from_ref(&kernel));
    let obtained = bench.cache.obtain(RELEASE, &|line| panic!("{line}")).unwrap();
    assert_eq!(obtained, kernel);
    assert_eq!(bench.add(&package(deb)).unwrap(), kernel, "the same package again");
    assert_eq!(bench.leftovers(), 0);
}

#[test]
fn a_package_without_modules_is_a_kernel_without_modules() {
    let bench = Bench::new();
    let tree = bench.path("tree");
    let place = "usr/lib/modules/7.3.4+deb13-cloud-amd64/vmlinuz.unsigned";
    write(&tree.join(place), &kernel("7.3.4+deb13-cloud-amd64"));
    let path = deb(&tree, "binary.deb");
    let kernel = bench.cache.obtain(path.to_str().unwrap(), &|_| ()).unwrap();
    assert_eq!(kernel.name, "7.3.4+deb13-cloud-amd64");
    assert_eq!((kernel.modules, kernel.config), (None, None));
}

#[test]
fn another_kernel_with_the_same_name_is_an_error() {
    let bench = Bench::new();
    let first = bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    let other = bzimage(RELEASE, &gzip(&vmlinux("other", 18)));
    let error = bench.add(&package(bench.whole_deb(&other))).unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), [first]);
    assert_eq!(bench.leftovers(), 0);
}

#[test]
fn a_users_kernel_is_copied() {
    let bench = Bench::new();
    let image = bench.path("vmlinux");
    write(&image, &vmlinux("7.4.0-rc1+", 18));
    let modules = bench.path("modules");
    write(&modules.join("kernel/one.ko.gz"), &gzip(b"a module"));
    std::os::unix::fs::symlink("/nowhere", modules.join("build")).unwrap();
    let kernel = bench.add(&files(&image, Some(modules.clone()), Some("mine"))).unwrap();

    assert_eq!((kernel.name.as_str(), kernel.release.as_str()), ("mine", "7.4.0-rc1+"));
    assert_eq!(kernel.vmlinux.as_ref(), Some(&kernel.image));
    let kept = kernel.modules.unwrap();
    assert!(kept.join("modules.dep").is_file() && !kept.join("build").is_symlink());
    assert!(modules.join("kernel/one.ko.gz").is_file(), "the original stays");
    let said = RefCell::new(String::new());
    let same = files(&image, Some(modules.clone()), Some("mine"));
    let again = bench.cache.add(&same, &|line| *said.borrow_mut() = line.to_owned()).unwrap();
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), [again]);
    assert_eq!(*said.borrow(), "mine is already in the cache with the same files");
    write(&modules.join("kernel/one.ko.gz"), &gzip(b"another module"));
    for other in [same, files(&image, None, Some("mine"))] {
        let error = bench.add(&other).unwrap_err();
        assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    }
    assert_eq!(bench.add(&files(&image, None, None)).unwrap().name, "7.4.0-rc1+");
}

#[test]
fn a_kernel_without_known_headers_gets_no_module() {
    let bench = Bench::new();
    let kernel = bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    let source = Source { name: "some", text: "" };
    let why = bench.cache.out_of_tree(&kernel, &source, &|line| panic!("{line}")).unwrap();
    assert_eq!(why.unwrap_err(), "has no headers: add the kernel again with `--headers`");
}

#[test]
fn a_failed_add_leaves_no_files() {
    let bench = Bench::new();
    let image = bench.path("image");
    let refused = |request: Request, reason: &str| {
        let error = bench.add(&request).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!((bench.cache.list(&|_| ()).unwrap(), bench.leftovers()), (vec![], 0));
    };
    refused(files(&image, None, None), "No such file");
    write(&image, b"MZ");
    refused(files(&image, None, None), "it is not a bzImage");
    write(&image, &kernel("../../escape"));
    refused(files(&image, None, Some("mine")), "is not a kernel");
    write(&image, &kernel("6.1.0"));
    refused(files(&image, None, Some("../mine")), "is not a kernel");
    refused(files(&image, Some(bench.path("tree")), None), "no directory `kernel`");
    let garbage = bench.path("garbage.deb");
    write(&garbage, &kernel("6.1.0"));
    refused(package(garbage.clone()), "is not a Debian format archive");
    let cut = bench.path("cut.deb");
    let bytes = fs::read(deb(&bench.path("tree"), "empty.deb")).unwrap();
    write(&cut, &bytes[..bytes.len() / 2]);
    for damaged in [garbage, cut] {
        let damaged = bench.add(&package(damaged)).unwrap_err();
        assert!(damaged.is_the_users(), "{damaged}");
    }
    let missing = bench.add(&package(bench.path("missing.deb"))).unwrap_err();
    assert!(missing.is_the_users(), "{missing}");
    write(&bench.path("tree/usr/share/doc/readme"), b"");
    refused(package(deb(&bench.path("tree"), "empty.deb")), "contains no kernel image");
}

#[test]
fn links_in_a_package_are_not_followed() {
    let bench = Bench::new();
    write(&bench.path("host/vmlinuz-6.1.0"), &kernel("6.1.0"));
    fs::create_dir(bench.path("tree")).unwrap();
    std::os::unix::fs::symlink(bench.path("host"), bench.path("tree/boot")).unwrap();
    let error = bench.add(&package(deb(&bench.path("tree"), "link.deb"))).unwrap_err();
    assert!(matches!(error, Error::NoKernel { .. }), "{error}");
    assert!(bench.path("host/vmlinuz-6.1.0").is_file());
}

/// All files below a directory that are neither directories nor regular files, or that have a special bit.
fn special(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            found.extend(special(&path));
        }
        let is_plain = metadata.is_dir() || metadata.is_file();
        if !is_plain || metadata.permissions().mode() & 0o7000 != 0 {
            found.push(path);
        }
    }
    found
}

#[test]
fn links_devices_and_special_bits_of_a_package_are_not_kept() {
    let bench = Bench::new();
    bench.whole_deb(&kernel(RELEASE));
    let tree = bench.path("tree");
    let modules = tree.join("lib/modules").join(RELEASE);
    // Each of these links doubles the number of paths that a program sees if it follows links.
    for (to, name) in [(".", "a"), ("..", "b"), ("../..", "kernel/c"), ("one.ko", "kernel/two.ko")]
    {
        symlink(to, modules.join(name)).unwrap();
    }
    for (to, name) in
        [("/etc", "build"), ("/etc/passwd", "kernel/passwd.ko"), ("../../../../..", "up")]
    {
        symlink(to, modules.join(name)).unwrap();
    }
    let made = std::process::Command::new("mkfifo").arg(modules.join("kernel/fifo.ko")).status();
    assert!(made.unwrap().success());
    for file in
        [tree.join("boot").join(format!("vmlinuz-{RELEASE}")), modules.join("kernel/one.ko")]
    {
        fs::set_permissions(file, PermissionsExt::from_mode(0o6755)).unwrap();
    }
    fs::set_permissions(modules.join("kernel"), PermissionsExt::from_mode(0o1777)).unwrap();
    let added = bench.add(&package(deb(&tree, "strange.deb"))).unwrap();
    assert_eq!(special(&bench.path("cache")), Vec::<PathBuf>::new());
    let kept = added.modules.as_ref().unwrap();
    assert_eq!(fs::read_dir(kept.join("kernel")).unwrap().count(), 1);
    let list = fs::read_to_string(kept.join("modules.dep")).unwrap();
    assert_eq!(list.trim(), "kernel/one.ko:");
    bench.cache.obtain(RELEASE, &|_| ()).unwrap();
    assert_eq!(bench.leftovers(), 0);
}

#[test]
fn a_package_that_is_too_deep_leaves_the_cache_as_it_was() {
    let bench = Bench::new();
    bench.whole_deb(&kernel(RELEASE));
    let tree = bench.path("tree");
    write(&tree.join("d/".repeat(80)).join("file"), b"");
    let path = deb(&tree, "deep.deb");
    let error = bench.add(&package(path)).unwrap_err();
    assert!(error.is_the_users() && error.to_string().contains("nested deeper"), "{error}");
    assert_eq!((bench.cache.list(&|_| ()).unwrap(), bench.leftovers()), (vec![], 0));
    // The lock is free.
    bench.cache.remove("x", &|_| ()).unwrap_err();
}

#[test]
fn an_image_without_pvh_entry_boots_from_its_bzimage() {
    let bench = Bench::new();
    let image = bench.path("bzImage");
    write(&image, &bzimage("6.1.0", &gzip(&vmlinux("6.1.0", 6))));
    let said = RefCell::new(String::new());
    let say = |line: &str| said.borrow_mut().push_str(line);
    let kernel = bench.cache.add(&files(&image, None, None), &say).unwrap();
    assert_eq!(kernel.vmlinux, None);
    assert!(said.borrow().contains("no PVH entry"), "{said:?}");
}

#[test]
fn aliases_refer_to_their_kernel_until_it_is_removed() {
    let bench = Bench::new();
    let kernel = bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    let aliases = format!(r#"{{"debian:6.1": "{RELEASE}"}}"#);
    write(&bench.path("cache/aliases.json"), aliases.as_bytes());
    for name in ["6.1", "debian:6.1"] {
        assert_eq!(bench.cache.obtain(name, &|_| ()).unwrap(), kernel);
    }
    write(&bench.path("cache/aliases.json"), b"{garbage");
    let error = bench.cache.get("6.1").unwrap_err().to_string();
    assert!(error.contains("(remove this file, then add kernels"), "{error}");
    write(&bench.path("cache/aliases.json"), aliases.as_bytes());
    bench.cache.remove("6.1", &|_| ()).unwrap();
    assert_eq!(bench.cache.get("6.1").unwrap(), None);
    assert_eq!((bench.cache.list(&|_| ()).unwrap(), bench.leftovers()), (vec![], 0));
}

#[test]
fn the_error_for_an_unknown_name_lists_the_kernels() {
    let bench = Bench::new();
    let error = |name: &str| bench.cache.remove(name, &|_| ()).unwrap_err().to_string();
    assert_eq!(error("x"), "the cache has no kernel x; the cache is empty");
    bench.add(&package(bench.whole_deb(&kernel(RELEASE)))).unwrap();
    let expected = format!("the cache has no kernel ../x; it has {RELEASE}");
    assert_eq!(error("../x"), expected);
}

#[test]
fn a_killed_add_leaves_no_kernel() {
    let bench = Bench::new();
    write(&bench.path("cache/tmp/half/kernel/bzImage"), b"half");
    write(&bench.path("cache/kernels/stray/bzImage"), b"no record");
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), []);
    let image = bench.path("bzImage");
    write(&image, &kernel("6.1.0"));
    bench.add(&files(&image, None, None)).unwrap();
    assert_eq!((bench.cache.list(&|_| ()).unwrap().len(), bench.leftovers()), (1, 0));
}

#[test]
fn a_damaged_record_is_named() {
    let bench = Bench::new();
    write(&bench.path("cache/kernels/6.1.0/kernel.json"), b"{");
    let error = bench.cache.get("6.1.0").unwrap_err().to_string();
    assert!(error.contains("kernels/6.1.0/kernel.json"), "{error}");
    let image = bench.path("bzImage");
    write(&image, &kernel("6.2.0"));
    let other = bench.add(&files(&image, None, None)).unwrap();
    let said = RefCell::new(Vec::new());
    let listed = bench.cache.list(&|line| said.borrow_mut().push(line.to_owned())).unwrap();
    assert_eq!((listed, said.into_inner()), (vec![other], vec![error]));
}

#[test]
fn adds_at_the_same_time_wait_for_each_other() {
    let bench = Bench::new();
    let images = ["6.1.0", "6.2.0", "6.3.0", "6.4.0"].map(|release| {
        let path = bench.path(release);
        write(&path, &kernel(release));
        path
    });
    std::thread::scope(|scope| {
        for image in &images {
            scope.spawn(|| bench.cache.add(&files(image, None, None), &|_| ()).unwrap());
        }
    });
    let names: Vec<_> =
        bench.cache.list(&|_| ()).unwrap().into_iter().map(|kernel| kernel.name).collect();
    assert_eq!(names, ["6.1.0", "6.2.0", "6.3.0", "6.4.0"]);
}

#[test]
fn would_fetch_is_answered_without_fetching() {
    let bench = Bench::new();
    let deb = bench.whole_deb(&kernel(RELEASE));
    let (path, missing) = (deb.to_str().unwrap(), bench.path("missing.deb"));
    let would_fetch = |spec: &str| bench.cache.would_fetch(spec);
    assert!(would_fetch("debian:6.1").unwrap() && would_fetch(RELEASE).unwrap());
    assert!(!would_fetch(path).unwrap());
    assert!(matches!(would_fetch("mine").unwrap_err(), Error::Request { .. }));
    assert!(matches!(would_fetch(missing.to_str().unwrap()).unwrap_err(), Error::NoKernel { .. }));
    bench.add(&package(deb)).unwrap();
    assert!(!would_fetch(RELEASE).unwrap());
}
