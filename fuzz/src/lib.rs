//! The parsers of foreign bytes, each as a function of a file's name and bytes. They return whether something was
//! read. A parser must not panic, hang, or take memory without a limit. `tests/damaged.rs` runs them.

mod frames;

use std::fs;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::path::Path;

use kernelfiles::kallsyms::Symbols;
use kernels::arch::image;
use mmtests::benchmark::Logs;
use model::Source;
use plan::file::Input;
use store::Detail;

pub use frames::{events, profile};

/// Files of `/proc` and `/sys`, and the kernel's log.
pub fn kernel_files(_name: &str, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    kernelfiles::klog::panic_line(&text);
    kernelfiles::config::parse(&text);
    kernelfiles::config::compiler(&text);
    let counters = Source::ALL.iter().map(|source| kernelfiles::counters(*source, "", &text).len());
    counters.sum::<usize>() + kernelfiles::klog::problems(&text).len() > 0
}

/// Lines of the metric protocol of workloads.
pub fn protocol(_name: &str, bytes: &[u8]) -> bool {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines.filter(|line| flight::protocol::parse(line).is_ok()).count() > 0
}

/// Mails, patches, commit messages and pages with tables. Each table is checked and gets another baseline.
pub fn mails(_name: &str, bytes: &[u8]) -> bool {
    let document = import::read(bytes);
    for table in &document.tables {
        import::check(table);
        let _ = import::rebase(table, "#1", None);
    }
    let mut tables = 0;
    let _ = import::read_mails(&mut Cursor::new(bytes), |mail| tables += mail.tables.len());
    tables > 0
}

/// The output of `perf script`.
pub fn perf_script(_name: &str, bytes: &[u8]) -> bool {
    import::perf_script(bytes, None).is_ok()
}

/// The output of `perf data convert --to-json`.
pub fn perf_json(_name: &str, bytes: &[u8]) -> bool {
    import::perf_json(bytes, None).is_ok()
}

/// A log of mmtests. Its name is `BENCHMARK+LOG`.
pub fn mmtests_logs(name: &str, bytes: &[u8]) -> bool {
    let (benchmark, log) = name.split_once('+').expect("a benchmark and its log");
    let files = [(log.to_owned(), bytes.to_vec())].into();
    mmtests::benchmark::read(benchmark, &Logs { files }).is_ok()
}

/// Files in TOML: experiments, searches and lists of packages.
pub fn toml_files(_name: &str, bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let path = Path::new("experiments/damaged.toml");
    let experiment = plan::file::parse(path, &text, None).map_err(|error| error.to_string());
    let form = Input::file(path, text.clone().into_owned()).map_err(|error| error.to_string());
    let search = form.and_then(|(input, form)| input.search(form).map_err(|it| it.to_string()));
    let packages = plan::file::lock::read(&text);
    experiment.is_ok() || search.is_ok() || packages.is_ok()
}

/// ELF files and compressed kernels.
pub fn images(_name: &str, bytes: &[u8]) -> bool {
    let _ = image::check(bytes);
    let _ = image::extract(bytes);
    let _ = image::release(bytes);
    image::has_entry(bytes);
    kernels::image::loaded(bytes);
    kernels::layout::tasks(bytes);
    let symbols = Symbols::parse("ffffffff81000000 T function\n");
    let image = code::Image::read(bytes, &symbols);
    image.is_ok_and(|image| !code::difference(&image, &image).same.is_empty())
}

/// Packages of kernels, of the kind that the name ends with.
pub fn packages(name: &str, bytes: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(name);
    fs::write(&path, bytes).expect("writes the copy");
    kernels::unpack::unpack(&[path], &directory.path().join("files")).is_ok()
}

/// A store of another user's. It is copied, because reading migrates a store of an older version.
pub fn stores(_name: &str, bytes: &[u8]) -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("damaged.db");
    fs::write(&path, bytes).expect("writes the copy");
    let Ok(store) = store::open_to_read(&path) else { return false };
    let _ = store.check();
    let mut boots = 0;
    for row in store.experiments().unwrap_or_default() {
        let _ = store.experiment(row.id);
        let _ = store.each_boot(row.id, Detail::Whole, &mut |_| {
            boots += 1;
            ControlFlow::Continue(())
        });
    }
    boots > 0
}
