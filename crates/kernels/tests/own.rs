//! Tests of users' kernels: files given with the image are kept, or rejected if they do not belong to the
//! kernel.

mod fixture;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use fixture::{Bench, arm64_image, bzimage, exporting, gzip, kernel, vmlinux, write};
use kernels::out_of_tree::Source;
use kernels::{Error, Files, Request};
use model::{Architecture, Kernel};

const RELEASE: &str = "6.12.1-mine";
const CONFIG: &str = "#\n# Automatically generated file; DO NOT EDIT.\n\
                      # Linux/x86 6.12.1 Kernel Configuration\n#\nCONFIG_LOCALVERSION=\"-mine\"\n";
/// The addresses of two exported functions in the fixture.
const EXPORTS: [(&str, u64); 2] =
    [("kfree", 0xffff_ffff_8120_0000), ("vfree", 0xffff_ffff_8130_0040)];

impl Bench {
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        write(&path, bytes.as_ref());
        path
    }

    fn add(&self, files: Files) -> Result<Kernel, Error> {
        self.cache.add(&Request::Files(files), &|_| ())
    }

    /// The error for a kernel. Checks that nothing of the kernel remains in the cache.
    fn refused(&self, files: Files) -> String {
        let error = self.add(files).unwrap_err();
        assert!(error.is_the_users(), "{error}");
        assert_eq!(self.cache.list(&|_| ()).unwrap(), []);
        let leftovers = fs::read_dir(self.directory.path().join("cache/tmp"));
        assert_eq!(leftovers.map_or(0, Iterator::count), 0);
        error.to_string()
    }

    fn refused_image(&self, bytes: &[u8]) -> String {
        let image = self.file("bzImage", bytes);
        let error = self.refused(Files { image: image.clone(), ..Files::default() });
        let prefix = format!("{}: ", image.display());
        error.strip_prefix(&prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
    }

    fn good(&self) -> Files {
        let vmlinux = exporting(RELEASE, &EXPORTS);
        let image = self.file("bzImage", bzimage(RELEASE, &gzip(&vmlinux)));
        Files { image, ..Files::default() }
    }

    /// A build tree whose `make` only copies.
    fn headers(&self, release: &str) -> PathBuf {
        let rule = "modules:\n\t@cp $(M)/try.o $(M)/some.ko; cat include/linux/own.h > $(M)/m\n";
        for (name, text) in [
            ("Makefile", rule),
            ("Module.symvers", "0x0\tkfree\tvmlinux\tEXPORT_SYMBOL\t\n"),
            (".config", CONFIG),
            ("include/config/auto.conf", "CONFIG_MODULES=y\n"),
            ("include/config/kernel.release", &format!("{release}\n")),
            ("include/generated/autoconf.h", ""),
            ("include/linux/own.h", "int own;\n"),
            ("arch/x86/include/asm/own.h", ""),
            ("arch/x86/mm/fault.o", "not wanted"),
            ("mm/page_alloc.o", "not wanted"),
            ("scripts/mod/modpost", "#!/bin/sh\n"),
            ("scripts/mod/modpost.o", "not wanted"),
        ] {
            self.file(&format!("build/{name}"), text);
        }
        let tree = self.directory.path().join("build");
        if !tree.join("loop").exists() {
            symlink(&tree, tree.join("include/loop")).unwrap();
        }
        tree
    }
}

/// A map of the fixture.
fn map(exports: &[(&str, u64)]) -> String {
    let line = |(name, address): &(&str, u64)| format!("{address:016x} T {name}\n");
    let text: String = exports.iter().map(line).collect();
    format!("ffffffff81000000 T _text\n{text}ffffffff82000000 R linux_banner\n")
}

#[test]
fn files_of_a_kernel_are_kept() {
    let bench = Bench::new();
    let headers = bench.headers(RELEASE);
    fs::remove_file(headers.join("include/loop")).unwrap();
    let files = Files {
        headers: Some(headers.clone()),
        config: Some(bench.file("config.gz", gzip(CONFIG.as_bytes()))),
        map: Some(bench.file("System.map", map(&EXPORTS))),
        name: Some("mine".into()),
        ..bench.good()
    };
    bench.add(files).unwrap();
    let kernel = bench.cache.get("mine").unwrap().unwrap();
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some(CONFIG));
    assert_eq!(kernels::text(&kernel, "map").unwrap(), Some(map(&EXPORTS)));
    let kept = kernel.headers.clone().unwrap();
    let is_kept = |name: &str| kept.join(name).is_file();
    assert!(is_kept("include/linux/own.h") && is_kept("arch/x86/include/asm/own.h"));
    assert!(!is_kept("mm/page_alloc.o") && !is_kept("scripts/mod/modpost.o"));
    assert!(!is_kept("arch/x86/mm/fault.o"));

    // The user then builds another kernel in the tree.
    fs::remove_dir_all(&headers).unwrap();
    let source = Source { name: "some", text: "int some;\n" };
    let module = bench.cache.out_of_tree(&kernel, &source, &|_| ()).unwrap().unwrap();
    assert!(module.read().unwrap().starts_with(b"\x7fELF"));

    fs::write(kept.join("include/linux/own.h"), "int other;\n").unwrap();
    let other = Source { name: "some", text: "int another;\n" };
    let error = bench.cache.out_of_tree(&kernel, &other, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("has changed since it was added"), "{error}");
    fs::write(kernel.map.as_ref().unwrap(), map(&EXPORTS[..1])).unwrap();
    let error = kernels::text(&kernel, "map").unwrap_err().to_string();
    assert!(error.contains("has changed since it was added"), "{error}");
}

#[test]
fn the_configuration_comes_from_the_headers() {
    let bench = Bench::new();
    let headers = bench.headers(RELEASE);
    fs::remove_file(headers.join("include/loop")).unwrap();
    let other = bench.file("config", format!("{CONFIG}CONFIG_NUMA=y\n"));
    let with = |config| Files { headers: Some(headers.clone()), config, ..bench.good() };
    let error = bench.refused(with(Some(other)));
    assert!(
        error.ends_with("its .config differs from the configuration that was given"),
        "{error}"
    );
    let kernel = bench.add(with(None)).unwrap();
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some(CONFIG));
}

#[test]
fn headers_of_another_kernel_are_errors() {
    let bench = Bench::new();
    let refused = |headers: &Path| {
        let error = bench.refused(Files { headers: Some(headers.to_owned()), ..bench.good() });
        error.split_once(": ").unwrap().1.to_owned()
    };
    let tree = bench.headers("6.12.2-mine");
    let error = refused(&tree);
    assert_eq!(error, "these are the headers of 6.12.2-mine, but the image is 6.12.1-mine");
    fs::remove_file(tree.join("include/config/kernel.release")).unwrap();
    assert!(refused(&tree).starts_with("it has neither include/config/kernel.release nor"));
    bench.file("build/include/generated/utsrelease.h", "#define UTS_RELEASE \"6.11.0\"\n");
    assert!(refused(&tree).starts_with("these are the headers of 6.11.0"));
    bench.file("build/include/generated/utsrelease.h", "#define UTS_RELEASE \"6.12.1-mine\"\n");
    bench.file("build/include/config/kernel.release", "6.12.1\n"); // as in Debian's packages
    // A loop of links.
    fs::remove_file(tree.join("Module.symvers")).unwrap();
    assert!(refused(&tree).starts_with("it lacks Module.symvers: build the kernel there"));
    assert_eq!(refused(&tree.join("Makefile")), "it is not a directory");
}

#[test]
fn a_tree_built_outside_of_its_source_is_combined_with_it() {
    let bench = Bench::new();
    let tree = bench.headers(RELEASE);
    fs::remove_file(tree.join("include/loop")).unwrap();
    let source = bench.directory.path().join("source");
    for name in ["Makefile", "include/linux/own.h", "arch/x86/include/asm/own.h"] {
        let to = source.join(name);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(tree.join(name), to).unwrap();
    }
    let leading = format!("# Automatically generated\ninclude {}/Makefile\n", source.display());
    bench.file("build/Makefile", leading);
    let kernel = bench.add(Files { headers: Some(tree.clone()), ..bench.good() }).unwrap();
    fs::remove_dir_all(&tree).unwrap();
    fs::remove_dir_all(&source).unwrap();
    let source = Source { name: "some", text: "int some;\n" };
    bench.cache.out_of_tree(&kernel, &source, &|_| ()).unwrap().unwrap();
}

#[test]
fn a_configuration_of_another_kernel_is_an_error() {
    let bench = Bench::new();
    let refused = |text: &str| {
        let config = Some(bench.file("config", text));
        let error = bench.refused(Files { config, ..bench.good() });
        error.split_once(": ").unwrap().1.to_owned()
    };
    for version in ["6.12.2", "6.12", "6.1.1", "7.0.1", "6.12.10"] {
        let expected =
            format!("it is the configuration of Linux {version}, but the image is {RELEASE}");
        assert_eq!(refused(&CONFIG.replace("6.12.1", version)), expected);
    }
    let error = refused(&CONFIG.replace("Linux/x86", "Linux/arm64"));
    assert_eq!(error, "it is the configuration of a kernel for arm64, not for x86_64");
    assert!(refused(&CONFIG.replace("-mine", "-yours")).contains("CONFIG_LOCALVERSION=\"-yours\""));
    for none in ["", "CONFIG_NUMA=y\n", "\u{0}\u{1}", "# Linux/x86 6.12.1 Kernel"] {
        assert!(refused(none).starts_with("it is not a kernel's configuration"), "{none}");
    }
    assert!(refused(&CONFIG.replace("CONFIG_", "")).contains("no line CONFIG_NAME=VALUE"));
}

#[test]
fn releases_of_distributions_match_any_version_of_their_series() {
    let bench = Bench::new();
    let add = |release: &str, version: &str| {
        let image = bench.file("bzImage", kernel(release));
        let text = format!("# Linux/x86 {version} Kernel Configuration\nCONFIG_NUMA=y\n");
        let config = Some(bench.file("config", text));
        let name = Some(format!("{release}-{version}"));
        bench.add(Files { image, config, name, ..Files::default() })
    };
    add("6.1.0-56-cloud-amd64", "6.1.192").unwrap();
    add("7.1.0-rc3-g12ab", "7.1.0-rc3").unwrap();
    add("6.1.0-56-cloud-amd64", "6.12.192").unwrap_err();
    add("6.1.0-mine", "6.1.192").unwrap_err();
}

#[test]
fn a_map_of_another_build_is_an_error() {
    let bench = Bench::new();
    let refused = |text: &str| {
        let map = Some(bench.file("System.map", text));
        let error = bench.refused(Files { map, ..bench.good() });
        error.split_once(": ").unwrap().1.to_owned()
    };
    let moved = [EXPORTS[0], ("vfree", 0xffff_ffff_8130_0080)];
    assert_eq!(
        refused(&map(&moved)),
        "it is the map of another build: vfree is at ffffffff81300040 in the image, but at \
                 ffffffff81300080 in the map (1 of 2 exported symbols differ)"
    );
    let banner = map(&EXPORTS).replace("ffffffff82000000 R", "ffffffff82000001 R");
    assert!(refused(&banner).contains("does not have `Linux version 6.12.1-mine` at"));
    let empty = refused("ffffffff81000000 T _text\n");
    assert!(empty.starts_with("it cannot be checked"), "{empty}");
    let other = "ffffffffffffffff B The real System.map is in the linux-image-dbg package\n";
    for none in [other, "x\n", "ffffffff81000000 T\n", "ffffffff T _text\n"] {
        assert!(refused(none).starts_with("it is not a System.map: line 1 is not"), "{none}");
    }
    assert!(refused("").contains("it lacks the symbol _text"));
}

#[test]
fn modules_of_another_kernel_are_errors() {
    let bench = Bench::new();
    let module =
        |release: &str| format!("\u{7f}ELF\0vermagic={release} SMP mod_unload \0name=one\0");
    let modules = bench.directory.path().join("lib/modules").join(RELEASE);
    bench.file(&format!("lib/modules/{RELEASE}/kernel/a/one.ko"), module(RELEASE));
    let packed = gzip(module("6.12.1-yours").as_bytes());
    let two = bench.file(&format!("lib/modules/{RELEASE}/kernel/b/two.ko.gz"), packed);
    let with = |modules: &Path| Files { modules: Some(modules.to_owned()), ..bench.good() };
    let expected = "it is for the kernel 6.12.1-yours, but the image is 6.12.1-mine";
    assert_eq!(bench.refused(with(&modules)), format!("{}: {expected}", two.display()));
    let damaged = gzip(module(RELEASE).as_bytes());
    write(&two, &damaged[..damaged.len() - 12]);
    assert!(bench.refused(with(&modules)).starts_with(two.to_str().unwrap()));
    fs::remove_file(&two).unwrap();
    let elsewhere = modules.with_file_name("6.12.1-yours");
    fs::rename(&modules, &elsewhere).unwrap();
    assert!(bench.refused(with(&elsewhere)).ends_with(expected));
}

#[test]
fn an_image_for_arm64_is_taken_without_headers() {
    let bench = Bench::new();
    let image = bench.file("Image", arm64_image(RELEASE));
    let config = Some(bench.file("config", CONFIG));
    let files = Files { image, ..Files::default() };
    let told = bench.refused(Files { config, ..files.clone() });
    assert!(told.ends_with("it is the configuration of a kernel for x86, not for arm64"), "{told}");
    let headers = Some(bench.headers(RELEASE));
    let told = bench.refused(Files { headers, ..files.clone() });
    assert!(told.contains("headers build our modules, which arm64 does not have yet"), "{told}");
    let config = Some(bench.file("config", CONFIG.replace("x86", "arm64")));
    let kernel = bench.add(Files { config, ..files }).unwrap();
    assert_eq!((kernel.arch, &*kernel.release), (Architecture::Arm64, RELEASE));
}

#[test]
fn images_that_cannot_be_booted_are_errors() {
    let bench = Bench::new();
    let refused = |bytes: &[u8]| bench.refused_image(bytes);
    let whole = bzimage(RELEASE, &gzip(&vmlinux(RELEASE, 18)));
    let needed = whole.len() - 100; // what follows is a signature
    for length in [needed - 200, 1536, 0x250] {
        let error = refused(&whole[..length]);
        assert!(error.starts_with("it is truncated: its header requires"), "{length}: {error}");
        assert!(error.ends_with(&format!("it has {length}")), "{error}");
    }
    for length in [0, 100, 0x202] {
        assert!(refused(&whole[..length]).starts_with("it is not a bzImage"), "{length}");
    }
    let changed = |place: usize, bytes: &[u8]| {
        let mut image = whole.clone();
        image[place..place + bytes.len()].copy_from_slice(bytes);
        refused(&image)
    };
    assert!(changed(3 * 512 + 30, &[0xff; 8]).starts_with("its packed kernel is damaged"));
    assert!(changed(0x236, &[0, 0]).starts_with("it is a kernel for 32-bit x86"));
    assert!(changed(0x38, b"RSC\x05").starts_with("it is a kernel for RISC-V"));
    assert!(changed(0x1f1, &[200]).starts_with("it is truncated"));
    assert!(changed(0x1f4, &[0xff; 4]).starts_with("it is truncated"));
    assert!(changed(0x248, &[0xff; 8]).starts_with("it is truncated"));

    let hint = "use the bzImage, which the kernel's build writes to arch/x86/boot/bzImage";
    let without_pvh = refused(&vmlinux(RELEASE, 6));
    assert!(without_pvh.contains("no PVH entry") && without_pvh.ends_with(hint), "{without_pvh}");
    let mut elf = vmlinux(RELEASE, 18);
    elf[16] = 1;
    assert!(refused(&elf).ends_with(hint));
    elf[18] = 183;
    assert!(refused(&elf).starts_with("it is the vmlinux of an arm64 kernel: use the Image"));
    elf[18] = 243;
    assert!(refused(&elf).contains("another machine (number 243 in ELF)"));
    assert!(refused(&elf[..40]).ends_with(hint));
}

#[test]
fn only_regular_files_up_to_the_limit_are_read() {
    let bench = Bench::new();
    let refused = |image: &Path| {
        let error = bench.refused(Files { image: image.to_owned(), ..Files::default() });
        error.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(refused(Path::new("/dev/zero")), "it is a device, not a regular file");
    let directory = bench.directory.path();
    assert_eq!(refused(directory), "it is a directory, not a regular file");
    let fifo = directory.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    assert_eq!(refused(&fifo), "it is a FIFO, not a regular file");
    assert!(refused(&directory.join("none")).starts_with("cannot be read: No such file"));
    let huge = directory.join("huge");
    fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    assert!(refused(&huge).starts_with("it has 1099511627776 bytes, but the limit is"));
    for map in [PathBuf::from("/dev/zero"), fifo, huge] {
        bench.refused(Files { map: Some(map.clone()), ..bench.good() });
        bench.refused(Files { config: Some(map), ..bench.good() });
    }
}
