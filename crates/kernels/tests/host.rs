//! Tests of the kernel that a host runs, with handmade root directories.

mod fixture;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use fixture::{Bench, kernel, write};
use kernels::{Error, Request};
use model::Kernel;

const RELEASE: &str = "6.14.0-63.fc42.x86_64";
const CONFIG: &str = "# Linux/x86_64 6.14.0 Kernel Configuration\nCONFIG_NUMA=y\n";

impl Bench {
    fn root(&self) -> PathBuf {
        self.path("root")
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        write(&self.root().join(name.replace("RELEASE", RELEASE)), bytes.as_ref());
    }

    /// A host as Fedora has it.
    fn host(&self) {
        let module = format!("\u{7f}ELF\0vermagic={RELEASE} SMP \0name=xfs\0");
        self.put("proc/sys/kernel/osrelease", format!("{RELEASE}\n"));
        self.put("lib/modules/RELEASE/vmlinuz", kernel(RELEASE));
        self.put("lib/modules/RELEASE/config", CONFIG);
        self.put("lib/modules/RELEASE/System.map", "a stub");
        self.put("lib/modules/RELEASE/modules.builtin", "kernel/fs/ext4/ext4.ko\n");
        self.put("lib/modules/RELEASE/kernel/fs/xfs.ko", module);
        self.put("usr/src/headers/include/config/kernel.release", format!("{RELEASE}\n"));
        let build = self.root().join("lib/modules").join(RELEASE).join("build");
        if !build.is_symlink() {
            symlink(self.root().join("usr/src/headers"), build).unwrap();
        }
    }

    fn add(&self) -> (Result<Kernel, Error>, String) {
        let said = RefCell::new(String::new());
        let say = |line: &str| said.borrow_mut().push_str(&format!("{line}\n"));
        let request = Request::Host { root: self.root(), name: None };
        (self.cache.add(&request, &say), said.into_inner())
    }

    fn refused(&self) -> String {
        let error = self.add().0.unwrap_err();
        assert!(error.is_the_users(), "{error}");
        assert_eq!(self.cache.list(&|_| ()).unwrap(), []);
        error.to_string()
    }
}

#[test]
fn the_running_kernel_is_copied() {
    let bench = Bench::new();
    bench.host();
    let (added, said) = bench.add();
    let kernel = added.unwrap();
    assert!(kernel.name.starts_with(&format!("{RELEASE}-")), "{kernel:?}");
    assert!(kernel.origin.starts_with("host, ") && kernel.origin.ends_with("/vmlinuz"));
    assert_eq!(kernels::text(&kernel, "config").unwrap().as_deref(), Some(CONFIG));
    assert_eq!(kernels::modules::choose(&kernel, &["xfs", "ext4"]).unwrap().len(), 1);
    assert_eq!((kernel.map, kernel.headers), (None, None));
    assert!(said.contains("comes without headers") && said.contains("lacks Makefile"), "{said}");
    assert_eq!(bench.add().0.unwrap().name, kernel.name);
}

#[test]
fn what_a_host_lacks_is_named() {
    let bench = Bench::new();
    bench.host();
    let library = bench.root().join("lib/modules").join(RELEASE);
    fs::remove_dir_all(library.join("kernel")).unwrap();
    for file in ["config", "build"] {
        fs::remove_file(library.join(file)).unwrap();
    }
    let (added, said) = bench.add();
    let kernel = added.unwrap();
    assert_eq!((kernel.config, kernel.modules, kernel.headers), (None, None, None));
    for part in ["its configuration: there is no", "modules: there is no", "headers: there is no"] {
        assert!(said.contains(&format!("{RELEASE} comes without {part} ")), "{said}");
    }
    assert!(said.contains("/root/proc/config.gz"), "{said}");
    bench.cache.remove(&kernel.name, &|_| ()).unwrap();

    bench.put("lib/modules/RELEASE/vmlinuz", kernel_of_another_release());
    let error = bench.refused();
    assert!(
        error.ends_with("it is the kernel 6.14.1, but the host runs 6.14.0-63.fc42.x86_64"),
        "{error}"
    );
    fs::remove_file(library.join("vmlinuz")).unwrap();
    let error = bench.refused();
    assert!(
        error.contains(&format!("boot/vmlinuz-{RELEASE}: the image of the running kernel")),
        "{error}"
    );
    assert!(error.ends_with("give it with `faultline kernel add --image FILE`"), "{error}");
}

fn kernel_of_another_release() -> Vec<u8> {
    kernel("6.14.1")
}
