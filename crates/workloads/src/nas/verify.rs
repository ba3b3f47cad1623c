//! Compares results with the official values.

/// Accepts `found` if it differs from `official` by at most the share `epsilon`. The error, also for a `found` that
/// is not a number, has both values.
pub fn check(what: &str, found: f64, official: f64, epsilon: f64) -> Result<(), String> {
    // This form rejects a NaN.
    match ((found - official) / official).abs() <= epsilon {
        true => Ok(()),
        false => Err(format!("{what} is {found:.13e}, but the official value is {official:.13e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_values_are_accepted() {
        assert_eq!(check("zeta", 8.0 + 1e-9, 8.0, 1e-8), Ok(()));
        for found in [8.0 + 1e-6, -8.0, 0.0, f64::NAN, f64::INFINITY] {
            let why = check("zeta", found, 8.0, 1e-8).unwrap_err();
            assert!(why.starts_with("zeta is ") && why.ends_with("8.0000000000000e0"), "{why}");
        }
    }
}
