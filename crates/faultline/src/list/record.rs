//! What a recorded command used, and the counters that moved.

use model::grouped;
use report::escape;

/// A figure of each session.
pub struct Moved {
    pub name: String,
    pub unit: String,
    pub values: Vec<f64>,
}

/// The figures, then the counters: a line each, with the mean, and with the least and the most of several sessions.
pub fn moved(figures: &[Moved], counters: &[Moved]) -> String {
    let most = figures.iter().chain(counters).map(|it| it.values.len()).max().unwrap_or(0);
    let all: Vec<[String; 5]> =
        figures.iter().chain(counters).map(|it| row(it, most > 1)).collect();
    let width = |cell: usize| all.iter().map(|row| row[cell].len()).max().unwrap_or(0);
    let [name, mean, least, last, _] = std::array::from_fn(width);
    let line = |[label, value, low, high, unit]: &[String; 5]| {
        let range = match most > 1 {
            true => format!("  {low:>least$}  {high:>last$}"),
            false => String::new(),
        };
        format!("{label:name$}  {value:>mean$}{range}  {unit}").trim_end().to_owned() + "\n"
    };
    let mut text = String::from("\n");
    if most > 1 {
        text += &format!("{most} sessions: mean, least and most\n");
    }
    all[..figures.len()].iter().for_each(|row| text += &line(row));
    if !counters.is_empty() {
        text += "Counters of the whole host that moved (`faultline explain --counter NAME` says what one counts):\n";
        all[figures.len()..].iter().for_each(|row| text += &line(row));
    }
    text
}

fn row(Moved { name, unit, values }: &Moved, several: bool) -> [String; 5] {
    let number = |value: f64| match unit.as_str() {
        "s" => format!("{value:.4}"),
        _ if value.fract() == 0.0 => grouped(&format!("{value}")),
        _ => grouped(&format!("{value:.1}")),
    };
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let [least, most] = match several && values.len() > 1 {
        true => [f64::min, f64::max]
            .map(|of| values.iter().copied().reduce(of).map_or(String::new(), number)),
        false => [String::new(), String::new()],
    };
    [escape(name), number(mean), least, most, escape(unit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_before_counters() {
        let moved_by = |name: &str, unit: &str, values: &[f64]| Moved {
            name: name.into(),
            unit: unit.into(),
            values: values.into(),
        };
        let wall = |values| moved_by("wall", "s", values);
        let faults = |values| moved_by("pgfault", "faults", values);
        let head = "Counters of the whole host that moved (`faultline explain --counter NAME` says what one counts):\n";
        let one = moved(&[wall(&[0.25])], &[faults(&[14275.0])]);
        assert_eq!(one, format!("\nwall     0.2500  s\n{head}pgfault  14,275  faults\n"));
        let two = moved(&[wall(&[0.25, 0.5])], &[faults(&[1.0, 14275.0]), faults(&[-7.0])]);
        assert_eq!(
            two,
            format!(
                "\n2 sessions: mean, least and most\nwall     0.3750  0.2500  0.5000  s\n{head}\
                 pgfault   7,138       1  14,275  faults\npgfault      -7                  faults\n"
            )
        );
    }
}
