//! Measures the cost of building kernels from source: Debian's packaged 6.12 with the small configuration, in a cache
//! of its own.
//!
//! Prints CPU time and wall time of clean builds without ccache and with its empty cache, of a neighbouring commit
//! that changes one file in `mm/`, of the same inputs again, and of a clean build with ccache's files, ratios, and
//! digests of the images, which show whether the clean builds gave the same. If another release is given, it is built
//! clean too, with the first one's ccache files. `bench/README.md` has figures.
//!
//! `bench-build [SERIES [SOURCE]]`: the default is 6.12; SOURCE is the other release, such as `src:linux.tar.xz`.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use kernels::{Cache, Source};
use model::Build;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// A patch that adds one function to one file.
const NEIGHBOUR: &str = "\
--- a/mm/mprotect.c
+++ b/mm/mprotect.c
@@ -1,2 +1,3 @@
 // SPDX-License-Identifier: GPL-2.0
+int faultline_neighbour(void); int faultline_neighbour(void) { return 1; }
 /*
";

/// The times of a build in seconds, and its result.
struct Cost {
    cpu: f64,
    wall: f64,
    /// SHA-256 of the image.
    image: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let series = std::env::args().nth(1).unwrap_or_else(|| "6.12".to_owned());
    let directory = tempfile::tempdir()?;
    let cache = Cache::at(directory.path());
    let source: Source = format!("debian-source:{series}").parse()?;
    let patch = directory.path().join("neighbour.patch");
    fs::write(&patch, NEIGHBOUR)?;
    let neighbour = Build { patches: vec![patch], ..Build::default() };
    // Fetching and unpacking do not count: this build stops at an option that no kernel has.
    let impossible = Build { set: [("FAULTLINE".into(), "y".into())].into(), ..Build::default() };
    let stopped = cache.build(&source, &impossible, &|line| eprintln!("{line}"))?;
    assert!(stopped.is_err(), "no kernel has this option");
    let build = |build: &Build| cost(&cache, &source, build);
    let ccache = directory.path().join("build/ccache");
    fs::create_dir_all(&ccache)?;
    fs::write(ccache.join("ccache.conf"), "disable = true\n")?;
    let plain = build(&Build::default())?;
    fs::remove_dir_all(&ccache)?;
    forget(directory.path())?;
    let clean = build(&Build::default())?;
    let next = build(&neighbour)?;
    let same = build(&Build::default())?;
    forget(directory.path())?;
    let warm = build(&Build::default())?;
    println!("{series}, small configuration            CPU s   wall s   CPU / clean  image");
    print("clean, without ccache", &plain, &clean);
    print("clean", &clean, &clean);
    print("a neighbouring commit in mm/", &next, &clean);
    print("the same inputs again", &same, &clean);
    print("clean, with ccache's files", &warm, &clean);
    if let Some(other) = std::env::args().nth(2) {
        let other: Source = other.parse()?;
        forget(directory.path())?;
        let other = cost(&cache, &other, &Build::default())?;
        print("another release, clean, with them", &other, &clean);
    }
    Ok(())
}

fn print(name: &str, Cost { cpu, wall, image }: &Cost, clean: &Cost) {
    println!("{name:<33} {cpu:8.1} {wall:8.1} {:13.3}  {image:.12}", cpu / clean.cpu);
}

/// Removes built kernels, but not ccache's files.
fn forget(cache: &Path) -> Result<(), Box<dyn Error>> {
    fs::remove_dir_all(cache.join("kernels"))?;
    Ok(fs::remove_dir_all(cache.join("build/linux/output"))?)
}

fn cost(cache: &Cache, source: &Source, build: &Build) -> Result<Cost, Box<dyn Error>> {
    let (begun, before) = (Instant::now(), cpu_time()?);
    let built = cache.build(source, build, &|line| eprintln!("{line}"))?;
    let kernel = built.map_err(|unbuilt| unbuilt.problem().to_owned())?;
    let wall = begun.elapsed().as_secs_f64();
    Ok(Cost { cpu: cpu_time()? - before, wall, image: kernel.digest })
}

/// The CPU time of all ended child processes, in seconds (getrusage(2)).
fn cpu_time() -> Result<f64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = usage.user_time() + usage.system_time();
    Ok(time.num_microseconds() as f64 / 1e6)
}
