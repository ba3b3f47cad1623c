//! Tests of kernels in several packages, with handmade ones.

mod fixture;

use std::cell::RefCell;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use fixture::{Bench, bzimage, deb, exporting, gzip, kernel, write};
use kernels::out_of_tree::Source;
use kernels::{Error, Request};
use model::Kernel;

const RELEASE: &str = "6.8.0-31-generic";
const EXPORTS: [(&str, u64); 1] = [("kfree", 0xffff_ffff_8120_0000)];

/// A `System.map` of the image, with as many symbols as make it no stub.
fn map() -> String {
    let filler: String = (0..200).map(|n| format!("ffffffff8110{n:04x} t symbol_{n}\n")).collect();
    format!(
        "ffffffff81000000 T _text\n{filler}ffffffff81200000 T kfree\nffffffff82000000 R linux_banner\n"
    )
}

impl Bench {
    /// A package of Debian with these files.
    fn deb(&self, name: &str, files: &[(&str, &[u8])]) -> PathBuf {
        let tree = self.path(name);
        for (path, bytes) in files {
            write(&tree.join(path.replace("RELEASE", RELEASE)), bytes);
        }
        fs::create_dir_all(&tree).unwrap();
        deb(&tree, &format!("{name}.deb"))
    }

    fn image(&self) -> PathBuf {
        let image = bzimage(RELEASE, &gzip(&exporting(RELEASE, &EXPORTS)));
        self.deb("linux-image-6.8+1", &[("boot/vmlinuz-RELEASE", &image)])
    }

    fn modules(&self) -> PathBuf {
        let map = map();
        let files: [(&str, &[u8]); 4] = [
            ("boot/config-RELEASE", b"CONFIG_NUMA=y\n"),
            ("boot/System.map-RELEASE", map.as_bytes()),
            ("lib/modules/RELEASE/modules.builtin", b"kernel/fs/ext4/ext4.ko\n"),
            ("lib/modules/RELEASE/kernel/fs/xfs.ko", b"\x7fELF"),
        ];
        let tree = self.path("linux-modules");
        let library = tree.join("lib/modules").join(RELEASE);
        fs::create_dir_all(&library).unwrap();
        symlink(format!("/usr/src/linux-headers-{RELEASE}"), library.join("build")).unwrap();
        self.deb("linux-modules", &files)
    }

    fn extra(&self) -> PathBuf {
        self.deb(
            "linux-modules-extra",
            &[("lib/modules/RELEASE/kernel/drivers/zram.ko", b"\x7fELF")],
        )
    }

    /// Headers in two packages, as Ubuntu has them: one is for all flavours.
    fn headers(&self) -> [PathBuf; 2] {
        let common = "usr/src/linux-headers-6.8.0-31";
        let tree = self.path("linux-headers-generic");
        let own = tree.join("usr/src").join(format!("linux-headers-{RELEASE}"));
        fs::create_dir_all(own.join("scripts")).unwrap();
        for shared in ["Makefile", "scripts/mod"] {
            let up = if shared == "Makefile" { "../" } else { "../../" };
            symlink(format!("{up}linux-headers-6.8.0-31/{shared}"), own.join(shared)).unwrap();
        }
        let generic = self.deb(
            "linux-headers-generic",
            &[
                (
                    "usr/src/linux-headers-RELEASE/Module.symvers",
                    b"0x0\tkfree\tvmlinux\tEXPORT_SYMBOL\t\n",
                ),
                ("usr/src/linux-headers-RELEASE/include/config/auto.conf", b"CONFIG_MODULES=y\n"),
                ("usr/src/linux-headers-RELEASE/include/config/kernel.release", RELEASE.as_bytes()),
                ("usr/src/linux-headers-RELEASE/include/generated/autoconf.h", b""),
            ],
        );
        let rule = b"modules:\n\t@cp $(M)/try.o $(M)/some.ko\n";
        let all = self.deb(
            "linux-headers-all",
            &[
                (&format!("{common}/Makefile"), rule),
                (&format!("{common}/scripts/mod/modpost"), b"#!/bin/sh\n"),
            ],
        );
        [generic, all]
    }

    fn add(&self, packages: &[PathBuf]) -> Result<Kernel, Error> {
        self.cache.obtain(&spec(packages), &|_| ())
    }

    fn refused(&self, packages: &[PathBuf]) -> String {
        let error = self.add(packages).unwrap_err();
        assert!(error.is_the_users(), "{error}");
        assert_eq!(self.cache.list(&|_| ()).unwrap(), []);
        assert_eq!(fs::read_dir(self.path("cache/tmp")).map_or(0, Iterator::count), 0);
        error.to_string()
    }
}

fn spec(packages: &[PathBuf]) -> String {
    packages.iter().map(|path| path.to_str().unwrap()).collect::<Vec<_>>().join("+")
}

#[test]
fn several_packages_make_one_kernel() {
    let bench = Bench::new();
    let [generic, all] = bench.headers();
    let packages = [bench.image(), bench.modules(), bench.extra(), generic, all];
    assert!(!bench.cache.would_fetch(&spec(&packages)).unwrap());
    let kernel = bench.add(&packages).unwrap();
    assert_eq!((&*kernel.name, &*kernel.release), (RELEASE, RELEASE));
    assert_eq!(kernel.origin, spec(&packages));
    let modules = kernels::modules::choose(&kernel, &["xfs", "zram", "ext4"]).unwrap();
    assert_eq!(modules.len(), 2);
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some("CONFIG_NUMA=y\n"));
    assert_eq!(kernels::text(&kernel, "map").unwrap(), Some(map()));
    let source = Source { name: "some", text: "int some;\n" };
    bench.cache.out_of_tree(&kernel, &source, &|_| ()).unwrap().unwrap();
    assert_eq!(bench.add(&packages).unwrap().name, RELEASE, "the same packages again");
}

#[test]
fn other_packages_make_another_kernel() {
    let bench = Bench::new();
    let packages = [bench.image(), bench.modules()];
    bench.add(&packages).unwrap();
    let more = [&packages[..], &[bench.extra()]].concat();
    let error = bench.add(&more).unwrap_err();
    assert!(matches!(error, Error::NameTaken { .. }), "{error}");
    let named = Request::Packages { files: more, name: Some("more".into()) };
    let kernel = bench.cache.add(&named, &|_| ()).unwrap();
    assert_eq!((&*kernel.name, &*kernel.release), ("more", RELEASE));
    assert!(kernels::modules::has(&kernel, "zram").unwrap());
}

#[test]
fn what_packages_lack_is_said() {
    let bench = Bench::new();
    let said = |packages: &[PathBuf]| {
        let said = RefCell::new(String::new());
        let say = |line: &str| said.borrow_mut().push_str(line);
        let kernel = bench.cache.obtain(&spec(packages), &say).unwrap();
        bench.cache.remove(&kernel.name, &|_| ()).unwrap();
        said.into_inner()
    };
    let [generic, _] = bench.headers();
    let modules = bench.modules();
    let said_of = said(&[bench.image()]);
    assert!(said_of.contains("comes without modules"), "{said_of}");
    let said_of = said(&[bench.image(), modules.clone(), generic]);
    assert!(
        said_of
            .contains("comes without headers, which build our modules: the packages lack Makefile")
    );
    // The map is of another build.
    let other = bench.deb("linux-image-other", &[("boot/vmlinuz-RELEASE", &kernel(RELEASE))]);
    let said_of = said(&[other, modules]);
    assert!(
        said_of.contains("comes without its System.map: it is the map of another build"),
        "{said_of}"
    );
}

#[test]
fn packages_of_no_kernel_or_of_several_are_errors() {
    let bench = Bench::new();
    let none = bench.refused(&[bench.modules(), bench.extra()]);
    assert!(none.contains("it contains no kernel image") && none.contains("A.deb+B.deb"), "{none}");
    let other = bench.deb("other", &[("lib/modules/6.8.0-30-generic/kernel/one.ko", b"\x7fELF")]);
    let error = bench.refused(&[bench.image(), other]);
    assert!(error.ends_with(
        "it has files of several kernels, 6.8.0-30-generic and 6.8.0-31-generic: name those of one"
    ));
    let missing = bench.refused(&[bench.image(), bench.path("none.deb")]);
    assert!(missing.contains("none.deb: cannot be read"), "{missing}");
    let directory = bench.path("directory.deb");
    fs::create_dir(&directory).unwrap();
    assert!(bench.refused(&[directory]).contains("it is a directory, not a package"));
}

/// Serves the files of `directory` by HTTP, each request on a connection of its own, until the test ends. Returns the
/// address.
fn serve(directory: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines =
                BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let request = lines.next().unwrap_or_default();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
            let (state, body) = match fs::read(directory.join(path.replace("%2b", "+"))) {
                Ok(bytes) => ("200 OK", bytes),
                Err(_) => ("404 Not Found", Vec::new()),
            };
            let head = format!(
                "HTTP/1.1 {state}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    address
}

#[test]
fn mainline_builds_are_fetched_by_version() {
    let bench = Bench::new();
    let place = bench.path("archive/v6.8-rc3/amd64");
    fs::create_dir_all(&place).unwrap();
    let [generic, all] = bench.headers();
    let mut list = String::from("# Checksums-Sha256:\n");
    for (package, name) in [
        (bench.image(), "linux-image-unsigned-6.8-generic_6.8.0_amd64.deb"),
        (bench.modules(), "linux-modules-6.8-generic_6.8.0_amd64.deb"),
        (generic, "linux-headers-6.8-generic_6.8.0_amd64.deb"),
        (all, "linux-headers-6.8_6.8.0_all.deb"),
    ] {
        let bytes = fs::read(package).unwrap();
        list += &format!("{}  {name}\n", kernels::digest(&bytes));
        fs::write(place.join(name), bytes).unwrap();
    }
    fs::write(place.join("CHECKSUMS"), &list).unwrap();
    let archive = serve(bench.path("archive"));
    let add = |version: &str| {
        let request = Request::Mainline { version: version.into(), archive: archive.clone() };
        bench.cache.add(&request, &|_| ())
    };
    let missing = add("6.8-rc4").unwrap_err();
    assert!(missing.is_the_users(), "{missing}");
    let said = missing.to_string();
    assert!(said.starts_with("mainline:6.8-rc4: http://127.0.0.1:"), "{said}");
    assert!(said.contains("/v6.8-rc4/amd64 has no build of it"), "{said}");

    // A package that is damaged on its way is refused.
    let image = place.join("linux-image-unsigned-6.8-generic_6.8.0_amd64.deb");
    let whole = fs::read(&image).unwrap();
    let mut damaged = whole.clone();
    damaged[100] ^= 1;
    fs::write(&image, damaged).unwrap();
    let error = add("6.8-rc3").unwrap_err().to_string();
    assert!(error.contains("Hash Sum mismatch"), "{error}");
    assert_eq!(bench.cache.list(&|_| ()).unwrap(), []);
    fs::write(&image, whole).unwrap();

    let kernel = add("6.8-rc3").unwrap();
    assert_eq!((&*kernel.name, &*kernel.release), ("mainline-6.8-rc3", RELEASE));
    assert_eq!(kernel.origin, "Ubuntu's mainline build v6.8-rc3");
    assert!(kernels::modules::has(&kernel, "xfs").unwrap());
    for name in ["mainline:6.8-rc3", "mainline:v6.8-rc3", "mainline-6.8-rc3"] {
        assert_eq!(bench.cache.obtain(name, &|_| ()).unwrap().name, kernel.name);
        assert!(!bench.cache.would_fetch(name).unwrap());
    }
    assert!(bench.cache.would_fetch("mainline:6.9").unwrap());
    let wrong = bench.cache.obtain("mainline:6.x", &|_| ()).unwrap_err();
    assert!(wrong.to_string().contains("such as mainline:6.13-rc2"), "{wrong}");
}

/// The kernel's own build packs with tar, so the test does too.
#[test]
fn tarballs_of_the_kernels_build_are_packages() {
    let bench = Bench::new();
    let tree = bench.path("tar-install");
    let put = |name: &str, bytes: &[u8]| write(&tree.join(name.replace("RELEASE", RELEASE)), bytes);
    put("boot/vmlinuz-RELEASE", &bzimage(RELEASE, &gzip(&exporting(RELEASE, &EXPORTS))));
    put("boot/vmlinux-RELEASE", &exporting(RELEASE, &EXPORTS));
    put("boot/System.map-RELEASE", map().as_bytes());
    put("boot/config-RELEASE", b"CONFIG_NUMA=y\n");
    put("lib/modules/RELEASE/kernel/fs/xfs.ko.zst", &zstd::encode_all(&b"\x7fELF"[..], 1).unwrap());
    put("lib/modules/RELEASE/modules.builtin", b"");
    symlink("/home/me/linux", tree.join(format!("lib/modules/{RELEASE}/build"))).unwrap();
    for (ending, option) in
        [("tar", "--format=pax"), ("tar.gz", "-z"), ("tgz", "-z"), ("tar.xz", "-J")]
    {
        let path = bench.path(&format!("linux-{RELEASE}-x86.{ending}"));
        let mut tar = Command::new("tar");
        let packed =
            tar.arg("-C").arg(&tree).arg(option).arg("-cf").arg(&path).args(["boot", "lib"]);
        assert!(packed.status().unwrap().success());
        if ending == "tar" {
            let zst = path.with_extension("tar.zst");
            fs::write(&zst, zstd::encode_all(&*fs::read(&path).unwrap(), 3).unwrap()).unwrap();
            taken(&bench, &zst);
        }
        taken(&bench, &path);
    }
    // A source is no package.
    let source = bench.path("source");
    write(&source.join("linux-6.8/Makefile"), b"VERSION = 6\n");
    let path = bench.path("linux-6.8.tar");
    let packed =
        Command::new("tar").arg("-C").arg(&source).arg("-cf").arg(&path).arg("linux-6.8").status();
    assert!(packed.unwrap().success());
    let error = bench.refused(&[path]);
    assert!(error.contains("contains no kernel image") && error.contains("src:"), "{error}");
}

/// Adds the kernel of an archive, checks it, and removes it.
fn taken(bench: &Bench, path: &Path) {
    let kernel = bench.add(&[path.to_owned()]).unwrap();
    assert_eq!((&*kernel.name, &*kernel.origin), (RELEASE, path.to_str().unwrap()));
    assert_eq!(kernels::text(&kernel, "map").unwrap(), Some(map()));
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some("CONFIG_NUMA=y\n"));
    assert_eq!(kernels::modules::choose(&kernel, &["xfs"]).unwrap().len(), 1);
    bench.cache.remove(RELEASE, &|_| ()).unwrap();
}

#[test]
fn no_package_writes_through_the_links_of_another() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    fs::create_dir(&outside).unwrap();
    let tree = bench.path("first");
    fs::create_dir_all(tree.join("usr/src")).unwrap();
    symlink(&outside, tree.join("usr/src/absolute")).unwrap();
    symlink(Path::new("../../../../../outside"), tree.join("usr/src/relative")).unwrap();
    let first = bench.deb("first", &[("boot/vmlinuz-RELEASE", &kernel(RELEASE))]);
    let second =
        bench.deb("second", &[("usr/src/absolute/file", b"x"), ("usr/src/relative/file", b"x")]);
    bench.add(&[first, second]).unwrap();
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}
