//! Simulated ranges of commits whose steps are known.

use std::error::Error;
use std::process::Command;

use culprit::{History, Node};
use fastrand::Rng;
use fixedbitset::FixedBitSet;

/// The distribution of boots of one kernel. All have the mean 0 and the standard deviation 1.
#[derive(Clone, Copy, PartialEq)]
pub enum Boots {
    Normal,
    /// Two equally likely modes, four standard deviations of a mode apart.
    Bimodal,
    /// Two modes at the same distance, the higher one with a probability of one in five.
    RareMode,
    /// One boot of 20 is eight standard deviations of the others higher.
    Outliers,
    /// A step changes each boot with a probability of one half.
    Half,
}

impl Boots {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Bimodal => "bimodal 50:50",
            Self::RareMode => "bimodal 80:20",
            Self::Outliers => "outliers 95:5",
            Self::Half => "half of boots step",
        }
    }

    /// The probability of the higher mode and its distance in standard deviations of a mode.
    const fn mode(self) -> [f64; 2] {
        match self {
            Self::Normal | Self::Half => [0.0, 0.0],
            Self::Bimodal => [0.5, 4.0],
            Self::RareMode => [0.2, 4.0],
            Self::Outliers => [0.05, 8.0],
        }
    }

    fn draw(self, rng: &mut Rng) -> f64 {
        let [share, apart] = self.mode();
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * rng.f64()).cos();
        let mode = if rng.f64() < share { apart } else { 0.0 };
        (normal + mode - share * apart) / (1.0 + share * (1.0 - share) * apart * apart).sqrt()
    }

    fn density(self, at: f64) -> f64 {
        let [share, apart] = self.mode();
        let sd = (1.0 + share * (1.0 - share) * apart * apart).sqrt();
        let at = at * sd + share * apart;
        let normal = |z: f64| (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
        sd * ((1.0 - share) * normal(at) + share * normal(at - apart))
    }

    /// The bits of information in a boot about which of two equally likely levels, `shift` apart, it has.
    pub fn information(self, shift: f64) -> f64 {
        let step = 0.005;
        let term = |it: f64| if it > 0.0 { -it * it.log2() } else { 0.0 };
        let points = (0..8000).map(|point| -20.0 + step * f64::from(point));
        let told = points.map(|at| {
            let [low, moved] = [self.density(at), self.density(at - shift)];
            let high = if self == Self::Half { 0.5 * (low + moved) } else { moved };
            term(0.5 * (low + high)) - 0.5 * (term(low) + term(high))
        });
        step * told.sum::<f64>()
    }
}

/// A range of commits, the kernels without readings, and the commits at which the figure changes.
pub struct World<'a> {
    pub history: &'a History,
    pub boots: Boots,
    pub unreadable: FixedBitSet,
    /// Commits and the changes they make, in standard deviations.
    pub steps: Vec<(Node, f64)>,
}

impl<'a> World<'a> {
    /// A range in which the changes `steps` are at random commits. `unreadable` is the share of commits without
    /// readings.
    pub fn new(
        history: &'a History,
        boots: Boots,
        steps: &[f64],
        unreadable: f64,
        rng: &mut Rng,
    ) -> Self {
        let bad = history.bad();
        let mut cannot = FixedBitSet::with_capacity(history.len());
        for _ in 0..(unreadable * bad as f64).round() as usize {
            // Commits without readings come in stretches of about four.
            let first = rng.usize(1..bad);
            let last = (first + rng.usize(1..8)).min(bad);
            if cannot.count_ones(..) as f64 <= unreadable * bad as f64 {
                cannot.insert_range(first..last);
            }
        }
        let mut places = rng.choose_multiple(1..=bad, steps.len());
        rng.shuffle(&mut places);
        let steps = places.into_iter().zip(steps.iter().copied()).collect();
        Self { history, boots, unreadable: cannot, steps }
    }

    /// One reading of a kernel.
    pub fn read(&self, node: Node, rng: &mut Rng) -> f64 {
        let moves = self.boots != Boots::Half || rng.bool();
        let has = |step: &&(Node, f64)| moves && self.history.has(node, step.0);
        let level: f64 = self.steps.iter().filter(has).map(|step| step.1).sum();
        100.0 + level + self.boots.draw(rng)
    }

    pub fn is_step(&self, commit: Node) -> bool {
        self.steps.iter().any(|step| step.0 == commit)
    }
}

/// A history with merges: a third of the commits on the main line, the others on branches of 1 to 30 commits
/// that forked up to 40 steps of the main line before they were merged. Some merge the main line again.
pub fn merged(commits: usize, rng: &mut Rng) -> History {
    let mut parents = vec![vec![]];
    let mut line = vec![0];
    while parents.len() < commits {
        let tip = line[line.len() - 1];
        if rng.f64() < 0.75 || parents.len() + 3 > commits {
            parents.push(vec![tip]);
        } else {
            let mut last = line[line.len().saturating_sub(1 + rng.usize(0..40))];
            let length = rng.usize(1..=30).min(commits - parents.len() - 1);
            for _ in 0..length {
                let mut of_commit = vec![last];
                if rng.f64() < 0.03 && tip != last {
                    of_commit.push(tip);
                }
                parents.push(of_commit);
                last = parents.len() - 1;
            }
            parents.push(vec![tip, last]);
        }
        line.push(parents.len() - 1);
    }
    parents.push(vec![line[line.len() - 1]]);
    History::new(parents)
}

/// The commits of a range `good..bad` of a git repository.
pub fn of_repository(repository: &str, range: &str) -> Result<History, Box<dyn Error>> {
    let (good, _) = range.split_once("..").ok_or("the range has no `..`")?;
    let git = |arguments: &[&str]| -> Result<String, Box<dyn Error>> {
        let output = Command::new("git").args(["-C", repository]).args(arguments).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout)?),
            false => Err(String::from_utf8_lossy(&output.stderr).into()),
        }
    };
    let good = git(&["rev-parse", &format!("{good}^{{commit}}")])?;
    let listed = git(&["rev-list", "--topo-order", "--reverse", "--parents", range])?;
    let mut numbers = std::collections::HashMap::from([(good.trim(), 0)]);
    let mut parents = vec![vec![]];
    for line in listed.lines() {
        let mut commits = line.split(' ');
        numbers.insert(commits.next().unwrap_or_default(), parents.len());
        let of_commit = commits.map(|parent| numbers.get(parent).copied().unwrap_or(0));
        let of_commit: Vec<Node> = of_commit.collect();
        parents.push(if of_commit.is_empty() { vec![0] } else { of_commit });
    }
    match parents.len() > 1 {
        true => Ok(History::new(parents)),
        false => Err(format!("{range} has no commits").into()),
    }
}
