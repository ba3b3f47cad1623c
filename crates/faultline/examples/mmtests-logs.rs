//! Writes the logs that the tests make to a directory, in the layout of mmtests:
//! `cargo run -p faultline --example mmtests-logs DIR` gives `DIR/FORM/RUN/iter-N/BENCHMARK/logs`.

use std::path::Path;
use std::{env, fs, io};

#[path = "../tests/mmtests/logs.rs"]
mod logs;

fn main() -> io::Result<()> {
    let directory = env::args().nth(1).ok_or_else(|| io::Error::other("name a directory"))?;
    for form in &logs::FORMS {
        for (number, (run, _)) in logs::RUNS.iter().enumerate() {
            for iteration in 0..form.iterations {
                let place = Path::new(&directory).join(form.name).join(run);
                let place = place.join(format!("iter-{iteration}/{}/logs", form.benchmark));
                fs::create_dir_all(&place)?;
                for (name, bytes) in form.logs(number, iteration) {
                    fs::write(place.join(name), bytes)?;
                }
            }
        }
    }
    Ok(())
}
