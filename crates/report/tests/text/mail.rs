//! The table of a mail, from its values.

use super::*;

/// From "mm: numa: Slow PTE scan rate if migration failures occur" (Mel Gorman, 7 March 2015): the table
/// "Time", and the rows of "xfsrepair" that its two decimals determine.
const MAIL: &str = "\
System-NUMA01                  602.44 (  0.00%)      209.42 ( 65.24%)      194.70 ( 67.68%)
System-NUMA01_THEADLOCAL        78.10 (  0.00%)       92.70 (-18.69%)       98.52 (-26.15%)
System-NUMA02                    6.47 (  0.00%)        6.06 (  6.34%)        9.28 (-43.43%)
System-NUMA02_SMT                5.06 (  0.00%)        3.39 ( 33.00%)        3.79 ( 25.10%)
Elapsed-NUMA01                 755.96 (  0.00%)      833.63 (-10.27%)      558.84 ( 26.08%)
Elapsed-NUMA01_THEADLOCAL      382.22 (  0.00%)      395.45 ( -3.46%)      382.54 ( -0.08%)
Elapsed-NUMA02                  49.38 (  0.00%)       50.21 ( -1.68%)       49.83 ( -0.91%)
Elapsed-NUMA02_SMT              47.70 (  0.00%)       48.55 ( -1.78%)       46.59 (  2.33%)
Elapsed-min-real-fsmark       1157.41 (  0.00%)     1150.38 (  0.61%)     1164.44 ( -0.61%)
Elapsed-min-syst-fsmark       3998.06 (  0.00%)     3988.42 (  0.24%)     4016.12 ( -0.45%)
Elapsed-min-real-xfsrepair     497.64 (  0.00%)      456.87 (  8.19%)      442.64 ( 11.05%)
Elapsed-min-syst-xfsrepair     500.61 (  0.00%)      263.41 ( 47.38%)      194.97 ( 61.05%)
Elapsed-real-fsmark           1166.63 (  0.00%)     1155.97 (  0.91%)     1166.28 (  0.03%)
Elapsed-syst-fsmark           4020.94 (  0.00%)     4004.19 (  0.42%)     4025.87 ( -0.12%)
Elapsed-real-xfsrepair         507.85 (  0.00%)      459.58 (  9.50%)      447.66 ( 11.85%)
Elapsed-syst-xfsrepair         519.88 (  0.00%)      281.63 ( 45.83%)      202.93 ( 60.97%)
Elapsed-max-real-fsmark       1171.98 (  0.00%)     1159.25 (  1.09%)     1167.96 (  0.34%)
Elapsed-max-syst-fsmark       4033.84 (  0.00%)     4024.53 (  0.23%)     4039.20 ( -0.13%)
Elapsed-max-real-xfsrepair     523.40 (  0.00%)      464.40 ( 11.27%)      455.42 ( 12.99%)
Elapsed-max-syst-xfsrepair     533.37 (  0.00%)      309.38 ( 42.00%)      207.94 ( 61.01%)
";

#[test]
fn a_mails_values_give_its_table() {
    let mut boots = [boot(0), boot(0), boot(0)];
    for line in MAIL.lines() {
        let (metric, rest) = line.split_once('-').unwrap();
        let (label, rest) = rest.split_once(' ').unwrap();
        let values = rest.split(')').filter_map(|cell| cell.split('(').next());
        let values = values.filter_map(|value| value.trim().parse().ok());
        for (boot, value) in boots.iter_mut().zip(values) {
            measure(boot, metric, label, &[value]);
        }
    }
    let text = text(&[
        ("4.0.0-rc1-vanilla", &boots[..1]),
        ("4.0.0-rc1-slowscan-v2", &boots[1..2]),
        ("3.19.0-vanilla", &boots[2..]),
    ]);
    // One boot of each variant is too few for a verdict.
    let unspaced = |line: &str| line.replace(' ', "").replace("%?", "%)").replace('?', "(");
    let printed: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("Amean ")).map(unspaced).collect();
    let expected: Vec<String> = MAIL.lines().map(unspaced).collect();
    assert_eq!(printed, expected);
    assert!(widest(&text) <= 100);
}
