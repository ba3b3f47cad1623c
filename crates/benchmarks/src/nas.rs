//! The report that programs of the NAS Parallel Benchmarks print at their end:
//!
//! ```text
//!  CG Benchmark Completed.
//!  Class           =                        C
//!  Time in seconds =                    12.34
//!  Mop/s total     =                 11615.32
//!  Verification    =               SUCCESSFUL
//! ```

/// The name of the time in a report, in seconds.
pub const TIME: &str = "Time in seconds";

/// The value of `name` in a report; `None` without such a line.
pub fn field<'a>(output: &'a str, name: &str) -> Option<&'a str> {
    let value =
        |line: &'a str| line.trim_start().strip_prefix(name)?.trim_start().strip_prefix('=');
    output.lines().find_map(value).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_names() {
        let output =
            " CPU Time in seconds = 3\n Time in seconds =   12.34\n Mop/s total     = 5 \n";
        assert_eq!(field(output, TIME), Some("12.34"));
        assert_eq!(field(output, "Mop/s total"), Some("5"));
        assert_eq!([field(output, "Mop/s"), field("", TIME)], [None; 2]);
    }
}
