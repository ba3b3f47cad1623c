//! What GNU `time` prints by default (`time.c`, format `%Uuser %Ssystem %Eelapsed %PCPU ...`).

use benchmarks::number;

/// Longest part of a line that a remark quotes.
const MAX_QUOTE: usize = 80;
/// The longest time that counts, in seconds: about 300 years. CPU time is the sum over all CPUs.
const LONGEST: f64 = 1e10;

/// What one command took, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// CPU time in user space.
    pub user: f64,
    /// CPU time in the kernel.
    pub system: f64,
    pub elapsed: f64,
    /// CPU time in percent of elapsed time; `time` does not always print it.
    pub cpu: Option<f64>,
}

/// The times of each command that a text reports. The text instead, if a command failed or was killed, or if its line
/// cannot be read.
pub fn runs(text: &str) -> Vec<Result<Times, String>> {
    let mut runs = Vec::new();
    let mut failed: Option<String> = None;
    for line in text.lines() {
        if FAILURES.iter().any(|failure| line.starts_with(failure)) {
            runs.extend(failed.replace(quote(line)).map(Err));
        } else if line.contains("elapsed") {
            runs.push(match failed.take() {
                Some(failure) => Err(failure),
                None => times(line).ok_or_else(|| format!("`{}` is no time", quote(line))),
            });
        }
    }
    runs.extend(failed.map(Err));
    runs
}

/// Prefixes of lines in which `time` reports that a command failed.
const FAILURES: [&str; 3] =
    ["Command exited with non-zero status", "Command terminated by", "Command stopped by"];

fn quote(line: &str) -> String {
    line.trim().chars().take(MAX_QUOTE).collect()
}

fn times(line: &str) -> Option<Times> {
    let field = |suffix: &str| line.split_whitespace().find_map(|word| word.strip_suffix(suffix));
    Some(Times {
        user: clock(field("user")?)?,
        system: clock(field("system")?)?,
        elapsed: clock(field("elapsed")?)?,
        cpu: field("%CPU").and_then(number),
    })
}

/// Seconds of `5.21`, `1:05.21` or `1:02:03`; `None` if they exceed [`LONGEST`].
fn clock(text: &str) -> Option<f64> {
    let mut parts = text.rsplit(':');
    let seconds = parts.next()?;
    let minutes = parts.next().map_or(Some(0.0), number)?;
    let hours = parts.next().map_or(Some(0.0), number)?;
    if parts.next().is_some() {
        return None;
    }
    let total = hours * 3600.0 + minutes * 60.0 + number(seconds)?;
    // Keeps exactly the digits that were printed, so that sums of such figures round as mmtests' do.
    let decimals = seconds.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    format!("{total:.decimals$}").parse().ok().filter(|seconds: &f64| *seconds <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        let read = ["5.21", "1:05.21", "2:10.11", "1:02:03", "0:00.00"].map(clock);
        assert_eq!(read, [5.21, 65.21, 130.11, 3723.0, 0.0].map(Some));
        assert_eq!(clock("166666666:40"), Some(LONGEST));
        let beyond = ["166666666:41", "99999999999999999999999:03", "99999999999:00:00"];
        for text in beyond
            .into_iter()
            .chain(["", ":", "1:2:3:4", "-1", "1e5", "nan", "inf", "0x10", "1:", "1..2"])
        {
            assert_eq!(clock(text), None, "{text}");
        }
    }

    #[test]
    fn failures_are_returned_instead_of_times() {
        let text = "iteration: 1 instance: 1\n\
                    0.01user 1.52system 0:09.98elapsed 15%CPU (0avgtext+0avgdata 2064maxresident)k\n\
                    8192inputs+0outputs (0major+88minor)pagefaults 0swaps\n\
                    Command exited with non-zero status 1\n\
                    0.00user 0.08system 0:00.08elapsed 98%CPU (0avgtext+0avgdata 3000maxresident)k\n\
                    Command terminated by signal 9\n\
                    1.00user elapsed\n\
                    0.00user 0.00system 0:00.00elapsed ?%CPU (0avgtext+0avgdata 0maxresident)k\n\
                    Command terminated by signal 15\n";
        let runs = runs(text);
        let times = |user, system, elapsed, cpu| Ok(Times { user, system, elapsed, cpu });
        assert_eq!(
            runs,
            [
                times(0.01, 1.52, 9.98, Some(15.0)),
                Err("Command exited with non-zero status 1".to_owned()),
                Err("Command terminated by signal 9".to_owned()),
                times(0.0, 0.0, 0.0, None),
                Err("Command terminated by signal 15".to_owned()),
            ]
        );
    }
}
