//! For tests: figures with a known distribution, and a comparison with the results of other programs.

/// Checks figures against those that another program printed, to this relative error.
pub fn assert_near(found: &[f64], printed: &str, error: f64) {
    let expected: Vec<f64> = printed.split(' ').map(|figure| figure.parse().unwrap()).collect();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found / expected - 1.0).abs() < error, "{found}, not {expected}");
    }
}

/// Independent normal figures of mean 0 and standard deviation 1, the same for the same `seed` (Box and
/// Muller, "A note on the generation of random normal deviates", Annals of Mathematical Statistics 29,
/// 1958).
pub fn normal(seed: u64) -> impl FnMut() -> f64 {
    let mut random = fastrand::Rng::with_seed(seed);
    move || {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.f64()).cos()
    }
}
