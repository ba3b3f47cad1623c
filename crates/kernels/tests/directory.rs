//! Tests of kernels from the directory of a build, with handmade trees.

mod fixture;

use std::fs;
use std::path::{Path, PathBuf};

use fixture::{ARM64_BANNER, Bench, arm64_image, bzimage, exporting, gzip, vmlinux, write};
use kernels::out_of_tree::Source;
use kernels::{Error, Request};
use model::{Architecture, Kernel};

const RELEASE: &str = "6.12.1-mine";
/// The address of an exported function in the fixture.
const EXPORTS: [(&str, u64); 1] = [("kfree", 0xffff_ffff_8120_0000)];
const CONFIG: &str = "# Linux/x86 6.12.1 Kernel Configuration\nCONFIG_LOCALVERSION=\"-mine\"\n\
                      CONFIG_MODULES=y\nCONFIG_XFS_FS=m\nCONFIG_ZRAM=m\n# CONFIG_NUMA is not set\n";

impl Bench {
    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.tree().join(name), bytes.as_ref());
    }

    fn tree(&self) -> PathBuf {
        self.path("linux tree")
    }

    /// A directory as `make` leaves it.
    fn build(&self) {
        let elf = exporting(RELEASE, &EXPORTS);
        let module = |name: &str| {
            format!("\u{7f}ELF\0vermagic={RELEASE} SMP mod_unload \0intree=Y\0name={name}\0")
        };
        let map =
            "ffffffff81000000 T _text\nffffffff81200000 T kfree\nffffffff82000000 R linux_banner\n";
        self.put("vmlinux", &elf);
        self.put("arch/x86/boot/bzImage", bzimage(RELEASE, &gzip(&elf)));
        self.put(".config", CONFIG);
        self.put("System.map", map);
        self.put("modules.builtin", "kernel/fs/ext4/ext4.ko\n");
        self.put("modules.order", "fs/xfs/xfs.o\ndrivers/block/zram/zram.ko\n");
        self.put("fs/xfs/xfs.ko", module("xfs"));
        self.put("drivers/block/zram/zram.ko", module("zram"));
        self.put("fs/xfs/stale.ko", module("stale"));
        self.put("include/config/auto.conf", CONFIG.lines().skip(1).collect::<Vec<_>>().join("\n"));
        self.put("include/config/kernel.release", format!("{RELEASE}\n"));
        self.put("include/generated/autoconf.h", "");
        self.put("scripts/mod/modpost", "#!/bin/sh\n");
        self.put("Module.symvers", "0x0\tkfree\tvmlinux\tEXPORT_SYMBOL\t\n");
        self.put("Makefile", "modules:\n\t@cp $(M)/try.o $(M)/some.ko\n");
    }

    fn spec(&self) -> String {
        format!("dir:{}", self.tree().display())
    }

    fn obtain(&self) -> Result<Kernel, Error> {
        self.cache.obtain(&self.spec(), &|_| ())
    }

    fn refused(&self) -> String {
        let error = self.obtain().unwrap_err();
        assert!(error.is_the_users(), "{error}");
        assert_eq!(self.cache.list(&|_| ()).unwrap(), []);
        let prefix = format!("{}", self.tree().display());
        error.to_string().strip_prefix(&prefix).unwrap_or_else(|| panic!("{error}")).to_owned()
    }
}

/// Every file of a directory with its bytes and its time.
fn state(directory: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut files = Vec::new();
    let mut wanted = vec![directory.to_owned()];
    while let Some(path) = wanted.pop() {
        if path.is_dir() {
            wanted.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else {
            let modified = path.metadata().unwrap().modified().unwrap();
            files.push((path.clone(), fs::read(&path).unwrap(), modified));
        }
    }
    files.sort();
    files
}

#[test]
fn a_built_kernel_is_taken_as_it_is() {
    let bench = Bench::new();
    bench.build();
    let before = state(&bench.tree());
    assert!(!bench.cache.would_fetch(&bench.spec()).unwrap());
    let kernel = bench.obtain().unwrap();
    assert_eq!(state(&bench.tree()), before);

    assert!(kernel.name.starts_with("6.12.1-mine-") && kernel.release == RELEASE, "{kernel:?}");
    assert_eq!(kernel.origin, format!("build directory {}", bench.tree().display()));
    // The vmlinux has the names of functions, unlike the one in the bzImage of a real kernel.
    assert_eq!(kernel.vmlinux.as_ref(), Some(&kernel.image));
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some(CONFIG));
    assert!(kernels::text(&kernel, "map").unwrap().is_some_and(|it| it.contains("kfree")));
    let modules = kernels::modules::choose(&kernel, &["xfs", "zram", "ext4"]).unwrap();
    let kept = kernel.modules.as_ref().unwrap();
    assert_eq!(modules[0].path, kept.join("kernel/fs/xfs/xfs.ko"));
    assert_eq!(modules.len(), 2);
    // A module of an earlier configuration.
    assert!(!kernels::modules::has(&kernel, "stale").unwrap());
    assert_eq!(
        fs::read_to_string(kept.join("modules.order")).unwrap(),
        "kernel/fs/xfs/xfs.ko\nkernel/drivers/block/zram/zram.ko\n"
    );
    let source = Source { name: "some", text: "int some;\n" };
    bench.cache.out_of_tree(&kernel, &source, &|_| ()).unwrap().unwrap();

    let again = bench.obtain().unwrap();
    assert_eq!(again.name, kernel.name);
    assert_eq!(bench.cache.obtain(&kernel.name, &|_| ()).unwrap(), again);
}

#[test]
fn each_build_is_a_kernel_of_its_own() {
    let bench = Bench::new();
    bench.build();
    let first = bench.obtain().unwrap();
    let module = format!("\u{7f}ELF\0vermagic={RELEASE} SMP \0name=xfs\0other=1\0");
    bench.put("fs/xfs/xfs.ko", module);
    let second = bench.obtain().unwrap();
    assert_eq!((&first.digest, &first.release), (&second.digest, &second.release));
    assert_ne!(first.name, second.name);
    let named = Request::Directory { path: bench.tree(), name: Some("mine".into()) };
    assert_eq!(bench.cache.add(&named, &|_| ()).unwrap().name, "mine");
    bench.put("fs/xfs/xfs.ko", format!("\u{7f}ELF\0vermagic={RELEASE} SMP \0name=xfs\0"));
    let error = bench.cache.add(&named, &|_| ()).unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    assert_eq!(bench.cache.list(&|_| ()).unwrap().len(), 3);
}

#[test]
fn a_kernel_in_the_cache_is_checked_before_it_is_taken() {
    let bench = Bench::new();
    bench.build();
    let kernel = bench.obtain().unwrap();
    fs::write(kernel.modules.unwrap().join("kernel/fs/xfs/xfs.ko"), "other").unwrap();
    let error = bench.obtain().unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn what_is_missing_is_named() {
    let bench = Bench::new();
    let none = bench.refused();
    assert!(none.starts_with(": cannot be read: No such file"), "{none}");
    bench.put("Makefile", "");
    let none = bench.refused();
    assert!(none.starts_with(": it has neither vmlinux nor arch/x86/boot/bzImage"), "{none}");
    let removed = |file: &str| {
        bench.build();
        fs::remove_file(bench.tree().join(file)).unwrap();
        bench.refused()
    };
    for file in [".config", "modules.builtin", "modules.order"] {
        let error = removed(file);
        let told = format!(": it lacks {file}: build the kernel there with `make`");
        assert!(error.starts_with(&told), "{error}");
    }
    let error = removed("fs/xfs/xfs.ko");
    assert!(error.starts_with("/fs/xfs/xfs.ko: modules.order lists this module"), "{error}");
    bench.build();
    bench.put("modules.order", "../../escape.ko\n");
    assert!(bench.refused().contains("/../../escape.ko: modules.order lists this module"));
}

#[test]
fn what_belongs_to_another_build_is_an_error() {
    let bench = Bench::new();
    bench.build();
    bench.put(".config", CONFIG.replace("# CONFIG_NUMA is not set", "CONFIG_NUMA=y"));
    let error = bench.refused();
    let told = "its .config has changed since the kernel was built: CONFIG_NUMA was n and is y";
    assert!(error.contains(told), "{error}");
    bench.build();
    bench.put("fs/xfs/xfs.ko", "\u{7f}ELF\0vermagic=6.12.0-mine SMP \0name=xfs\0");
    assert!(
        bench
            .cache
            .obtain(&bench.spec(), &|_| ())
            .unwrap_err()
            .to_string()
            .contains("it is for the kernel 6.12.0-mine, but the image is 6.12.1-mine")
    );
    bench.build();
    bench.put("include/config/kernel.release", "6.12.0-mine\n");
    assert!(bench.refused().contains("these are the headers of 6.12.0-mine"));
    bench.build();
    bench.put("System.map", "ffffffff81000000 T _text\nffffffff81200004 T kfree\n");
    assert!(bench.refused().contains("it is the map of another build"));
}

#[test]
fn parts_that_a_kernel_does_not_need_may_be_missing() {
    let bench = Bench::new();
    bench.build();
    for file in ["vmlinux", "System.map", "Module.symvers"] {
        fs::remove_file(bench.tree().join(file)).unwrap();
    }
    let said = std::cell::RefCell::new(String::new());
    let say = |line: &str| said.borrow_mut().push_str(line);
    let kernel = bench.cache.obtain(&bench.spec(), &say).unwrap();
    assert!(kernel.image.ends_with("bzImage") && kernel.vmlinux.is_some(), "{kernel:?}");
    assert_eq!((kernel.headers, kernel.map), (None, None));
    assert!(said.borrow().contains("comes without headers"), "{said:?}");
    // Without CONFIG_PVH the vmlinux cannot be booted.
    bench.build();
    bench.put("vmlinux", vmlinux(RELEASE, 6));
    bench.put("arch/x86/boot/bzImage", bzimage(RELEASE, &gzip(&vmlinux(RELEASE, 6))));
    fs::remove_file(bench.tree().join("System.map")).unwrap();
    let kernel = bench.obtain().unwrap();
    assert!(kernel.image.ends_with("bzImage") && kernel.vmlinux.is_none(), "{kernel:?}");
    // A kernel that loads no modules has no list of them.
    bench.build();
    let without = "# Linux/x86 6.12.1 Kernel Configuration\nCONFIG_NUMA=y\n";
    bench.put(".config", without);
    bench.put("include/config/auto.conf", without);
    for file in ["modules.order", "Module.symvers"] {
        fs::remove_file(bench.tree().join(file)).unwrap();
    }
    let kernel = bench.obtain().unwrap();
    assert!(kernels::modules::choose(&kernel, &["ext4"]).unwrap().is_empty());
    assert_eq!(kernel.headers, None);
}

#[test]
fn a_kernel_built_for_arm64_is_taken() {
    let bench = Bench::new();
    let config = CONFIG.replace("x86", "arm64");
    let map = |banner: usize| {
        format!("ffff800080000000 T _text\n{:x} R linux_banner\n", 0xffff_8000_8000_0000 + banner)
    };
    bench.build();
    for left in ["vmlinux", "arch/x86/boot/bzImage"] {
        fs::remove_file(bench.tree().join(left)).unwrap();
    }
    bench.put(".config", &config);
    // As Linux 5.17 and newer have it.
    let auto = config.lines().skip(1).collect::<Vec<_>>().join("\n").replace('"', "");
    bench.put("include/config/auto.conf", auto);
    bench.put("System.map", map(ARM64_BANNER));
    let images = "arch/arm64/boot/Image nor arch/arm64/boot/Image.gz";
    assert!(bench.refused().starts_with(&format!(": it has neither {images}: ")));
    bench.put("arch/arm64/boot/Image.gz", gzip(&arm64_image(RELEASE)));
    bench.put("System.map", map(ARM64_BANNER + 8));
    assert!(bench.refused().contains("it is the map of another build"));
    bench.put("System.map", map(ARM64_BANNER));
    let packed = bench.obtain().unwrap();
    assert_eq!((packed.arch, &*packed.release), (Architecture::Arm64, RELEASE));
    assert!(packed.headers.is_none() && packed.modules.is_some() && packed.map.is_some());
    // Machines boot the unpacked image.
    bench.put("arch/arm64/boot/Image", arm64_image(RELEASE));
    let plain = bench.obtain().unwrap();
    assert_ne!(plain.name, packed.name);
    let unpacked = |kernel: &Kernel| fs::read(kernel.vmlinux.as_ref().unwrap()).unwrap();
    assert_eq!(unpacked(&packed), unpacked(&plain));
    // Its name in the cache can tell the architecture, but no other one.
    assert_eq!(bench.cache.get(&format!("{}@arm64", plain.name)).unwrap().as_ref(), Some(&plain));
    bench.build();
    let x86 = bench.obtain().unwrap();
    assert_eq!(x86.arch, Architecture::X86_64);
    let other = format!("{}@arm64", x86.name);
    assert_eq!(bench.cache.get(&other).unwrap(), None);
    let told = bench.cache.obtain(&other, &|_| ()).unwrap_err().to_string();
    assert!(told.ends_with("in the cache is one for x86_64"), "{told}");
}
