//! Tests of effects over axes.

use model::{Reading, Variant, VariantReading};

use super::*;
use crate::testing::{blocks_from, columns, deviations, near, seeds, variant};

/// Variants of two axes, in the order of the columns.
const CELLS: [[&str; 2]; 4] =
    [["none", "always"], ["none", "never"], ["fix", "always"], ["fix", "never"]];
const AXES: [&str; 2] = ["patches", "thp"];

/// A variant and its value on each axis.
type At = (Variant, VariantReading);

fn at(axes: &[&str], cell: &[&str]) -> At {
    let axes = axes.iter().zip(cell);
    let axes = axes.map(|(axis, value)| ((*axis).to_owned(), (*value).to_owned())).collect();
    (variant(&cell.join(" ")), VariantReading { axes, step: None })
}

fn cross(cells: &[At]) -> Option<Cross> {
    let variants: Vec<Variant> = cells.iter().map(|(variant, _)| variant.clone()).collect();
    let named = cells.iter().map(|(variant, own)| (variant.name.clone(), own.clone()));
    let reading = Reading { variants: named.collect(), ..Reading::default() };
    Cross::of(&columns(&variants, &vec![&[][..]; variants.len()]), &reading)
}

fn two_by_two() -> Cross {
    cross(&CELLS.map(|cell| at(&AXES, &cell))).unwrap()
}

/// Boots of blocks from 0 on, a column for each variant.
fn boots(columns: &[&[f64]]) -> Sides<'static> {
    Sides::Boots(columns.iter().map(|values| blocks_from(0, values)).collect())
}

fn effects(cross: Cross, sides: Sides<'_>) -> Effects {
    cross.effects([(7, sides)].into_iter(), |_| Better::Lower, &Judging::default())
}

const BOOTS: [[f64; 5]; 4] = [
    [62.4, 64.0, 61.9, 63.3, 62.7],
    [70.1, 71.9, 69.0, 71.4, 70.3],
    [58.9, 60.8, 58.1, 59.2, 59.6],
    [69.2, 71.5, 68.9, 70.1, 69.0],
];

/// statsmodels 0.15.0, `df` with the logarithms as `y`: p-values of
/// `AnovaRM(df, "y", "block", within=["patches", "thp"]).fit()`; `exp` of the interaction in
/// `ols("y ~ C(patches, Treatment('none')) * C(thp, Treatment('always')) + C(block)", df).fit()`, and of twice
/// the main effects in the same with `Sum`. SciPy 1.17.1: bounds by `ttest_1samp` of the sums of each block.
#[test]
fn effects_over_blocks_agree_with_statsmodels() {
    let found = effects(two_by_two(), boots(&BOOTS.each_ref().map(|it| &it[..])));
    let [patches, thp, both] = &found.effects[..] else { panic!("{found:?}") };
    let expected = [
        (patches, [0.9658919443944705, 0.9596682749601074, 0.972155975756219]),
        (thp, [1.148592183960259, 1.141296651174832, 1.155934352121834]),
        (both, [1.04771336587409, 1.033942736410424, 1.061667400307052]),
    ];
    // By Holm: twice the second, and the largest of three as it is.
    let alone = [0.0001179978200845975, 4.510595452436036e-07, 0.0006122492081251924];
    let times = [2.0, 3.0, 1.0];
    for (number, (effect, [ratio, low, high])) in expected.into_iter().enumerate() {
        let evidence = effect.evidence.unwrap();
        let p = times[number] * alone[number];
        let found = [effect.ratio, evidence.low, evidence.high, evidence.p_alone, evidence.p];
        near(&found, &[ratio, low, high, alone[number], p]);
        assert_eq!((effect.row, effect.floor, evidence.boots), (7, None, [5, 5]));
    }
    let verdicts: Vec<_> = found.effects.iter().map(|effect| effect.verdict).collect();
    assert_eq!(verdicts, [Verdict::Improvement, Verdict::Regression, Verdict::Regression]);
    // The patch helps with one setting more than with the other.
    let mean = |column: usize| BOOTS[column].iter().map(|it| it.ln()).sum::<f64>() / 5.0;
    let [always, never] = both.apart.unwrap();
    let apart = [(mean(2) - mean(0)).exp(), (mean(3) - mean(1)).exp(), both.ratio];
    near(&[always, never, never / always], &apart);
    assert_eq!((patches.apart, patches.gain(0.9).unwrap().round()), (None, 10.0));
}

/// NumPy 2.4.6 and SciPy 1.17.1: Satterthwaite's formula on logarithms ([`Estimate::of_contrast`]), and
/// `exp(t.ppf(1 - level / 2, df) * se) - 1` with the levels of Holm: 1 %, 1 % / 3 and 1 % / 2.
#[test]
fn effects_over_seeds_have_luck_floors() {
    let sides = [
        seeds(&[100.0, 104.0, 101.0, 102.0]),
        seeds(&[110.0, 111.0, 112.0, 108.0]),
        seeds(&[99.0, 99.5, 98.0, 100.0]),
        seeds(&[120.0, 121.5, 118.0, 122.0]),
    ];
    let found = effects(two_by_two(), Sides::Seeds(&sides, Vec::new()));
    let expected = [
        (1.031386454179331, 0.02271504387349799),
        (1.147069404330541, 0.02741118571054946),
        (1.120670947694757, 0.05197283473793401),
    ];
    for (effect, (ratio, floor)) in found.effects.iter().zip(expected) {
        near(&[effect.ratio, effect.floor.unwrap()], &[ratio, floor]);
        assert_eq!((effect.verdict, effect.evidence), (Verdict::Regression, None));
    }
    // Figures that are equal in all seeds do not differ beyond the resolution.
    let still = [seeds(&[3.0; 4]), seeds(&[3.0; 4]), seeds(&[3.0; 4]), seeds(&[3.0; 4])];
    let found = effects(two_by_two(), Sides::Seeds(&still, Vec::new()));
    for effect in &found.effects {
        assert_eq!((effect.verdict, effect.floor), (Verdict::Same, Some(0.001)));
    }
    // A decrease is beyond its floor exactly if its inverse is.
    let inverse = |it: &Seeds| seeds(&it.values().iter().map(|it| 1.0 / it).collect::<Vec<_>>());
    let fewer: Vec<Seeds> = sides.iter().map(inverse).collect();
    for effect in effects(two_by_two(), Sides::Seeds(&fewer, Vec::new())).effects {
        assert_eq!(effect.verdict, Verdict::Improvement);
        assert!(1.0 - effect.ratio > effect.floor.unwrap());
    }
}

/// The patch halves the loops of one setting: its effect is the loops' alone, and that of the setting is larger without
/// them. By hand: a factor of 2 in what is left, and none by the patch.
#[test]
fn effects_are_given_without_loops() {
    let loops = [800.0, 400.0, 400.0, 400.0];
    let rest = [100.0, 200.0, 100.0, 200.0];
    let of = |values: [f64; 4]| values.map(|it| seeds(&[it - 0.01, it, it + 0.01, it]));
    let all = of([900.0, 600.0, 500.0, 600.0]);
    assert_eq!(all[0].values()[1], loops[0] + rest[0]);
    let loops = loops.map(|it| (0..4).map(|seed| (seed, it)).collect());
    let without: Vec<Seeds> = all.iter().zip(&loops).map(|(all, it)| all.less(it)).collect();
    let found = effects(two_by_two(), Sides::Seeds(&all, without));
    let said: Vec<_> = found.effects.iter().map(|it| it.without_loops.unwrap()).collect();
    let off = said.iter().zip([0.0, 1.0, 0.0]).map(|(it, share)| (it.share - share).abs());
    assert!(off.fold(0.0, f64::max) < 1e-6, "{said:?}");
    assert_eq!(said.iter().map(|it| it.is_luck).collect::<Vec<_>>(), [true, false, true]);
    // Loops that are everywhere the same change little here.
    let same = [10.0; 4].map(|it| (0..4).map(|seed| (seed, it)).collect());
    let without: Vec<Seeds> = all.iter().zip(&same).map(|(all, it)| all.less(it)).collect();
    let found = effects(two_by_two(), Sides::Seeds(&all, without));
    assert!(found.effects.iter().all(|it| it.without_loops.is_none()));
}

#[test]
fn each_value_is_compared_with_the_baselines_over_all_others() {
    let axes = ["a", "b", "c"];
    let mut variants = Vec::new();
    for a in ["0", "1", "2"] {
        for b in ["0", "1"] {
            variants.extend(["0", "1"].map(|c| at(&axes, &[a, b, c])));
        }
    }
    // a=1 doubles, a=2 triples, c=1 adds half; with b=1, a=2 triples again.
    let figure = |cell: &[usize]| {
        let both = if cell[0] == 2 && cell[1] == 1 { 3.0 } else { 1.0 };
        [1.0, 2.0, 3.0][cell[0]] * [1.0, 1.5][cell[2]] * both
    };
    let cross = cross(&variants).unwrap();
    let times = |cell: &Vec<usize>| [1.0, 1.1, 0.9].map(|block| block * figure(cell));
    let sides: Vec<_> = cross.cells.iter().map(times).collect();
    let sides: Vec<&[f64]> = sides.iter().map(|side| &side[..]).collect();
    let found = effects(cross, boots(&sides));
    let name = |effect: &Effect| -> String {
        effect.of.iter().map(|it| format!("{}{}", axes[it.axis], it.value)).collect()
    };
    let names: Vec<String> = found.effects.iter().map(name).collect();
    assert_eq!(names, ["a1", "a2", "b1", "c1", "a1b1", "a1c1", "a2b1", "a2c1", "b1c1"]);
    // With b=1 a third of the variants is three times as large.
    let expected = [2.0, 3.0 * 3.0_f64.sqrt(), 3.0_f64.cbrt(), 1.5, 1.0, 1.0, 3.0, 1.0, 1.0];
    let ratios: Vec<f64> = found.effects.iter().map(|effect| effect.ratio).collect();
    near(&ratios, &expected);
    near(&found.effects[6].apart.unwrap(), &[3.0, 9.0]);
}

#[test]
fn only_a_full_cross_of_two_axes_has_effects() {
    let variants = CELLS.map(|cell| at(&AXES, &cell));
    assert!(cross(&variants).is_some());
    assert!(cross(&variants[..3]).is_none());
    assert!(cross(&[]).is_none());
    assert!(cross(&["a", "b"].map(|name| at(&[], &[name]))).is_none());
    assert!(cross(&["a", "b"].map(|value| at(&["thp"], &[value]))).is_none());
    let twice = [&variants[..], &variants[..1]].concat();
    assert!(cross(&twice).is_none());
    let mut other = variants.clone();
    other[3].1.axes[1].0 = "mglru".into();
    assert!(cross(&other).is_none());
    // The first column is the baseline, and has the first values; the order of axes is the baseline's.
    let turned = [&variants[3], &variants[1], &variants[0], &variants[2]].map(Clone::clone);
    let found = cross(&turned).unwrap();
    assert_eq!(found.axes[1].values, ["never", "always"]);
    assert_eq!(found.cells, [[0, 0], [1, 0], [1, 1], [0, 1]]);
}

#[test]
fn effects_need_figures_of_all_variants() {
    let unknown = |sides: Sides<'_>| {
        let found = effects(two_by_two(), sides);
        assert_eq!((found.effects, found.unknown), (vec![], vec![7]));
    };
    let [a, b, c, d] = &BOOTS;
    unknown(boots(&[&a[..], b, c, &d[..2]]));
    unknown(boots(&[&a[..], b, c, &[]]));
    unknown(boots(&[&a[..], b, c, &[1.0, 0.0, 2.0]]));
    unknown(boots(&[&a[..], b, c, &[1.0, f64::NAN, 2.0]]));
    let short = |seeds: &[u32]| Seeds::new([(0, Some(1.0)), (2, Some(9.0))], seeds.iter().copied());
    let whole = || seeds(&[1.0, 2.0, 3.0]);
    unknown(Sides::Seeds(&[whole(), seeds(&[0.0, 1.0, 2.0]), whole(), whole()], Vec::new()));
    unknown(Sides::Seeds(
        &[seeds(&[1.0]), seeds(&[1.0]), seeds(&[1.0]), seeds(&[1.0])],
        Vec::new(),
    ));
    // A seed whose boot failed counts in no variant. One that lacks only this figure is unknown.
    unknown(Sides::Seeds(&[whole(), whole(), short(&[1]), whole()], Vec::new()));
    let some = [whole(), whole(), short(&[]), whole()];
    assert_eq!(effects(two_by_two(), Sides::Seeds(&some, Vec::new())).effects.len(), 3);
    // Three blocks in common are enough.
    assert_eq!(effects(two_by_two(), boots(&[&a[..], b, c, &d[..3]])).effects.len(), 3);
}

/// The variants do not differ, but one scatters more. At most 5 % of tables by blocks and 1 % of tables by seeds
/// may call any of the three effects a change, give or take 4 standard errors.
#[test]
fn false_effects_are_as_rare_as_stated() {
    const TABLES: usize = 5_000;
    let mut deviations = deviations();
    let mut draw = |number: usize| -> Vec<Vec<f64>> {
        let scatter = [0.02, 0.02, 0.05, 0.02];
        let side = |by: f64| deviations.by_ref().take(number).map(|it| (by * it).exp()).collect();
        scatter.map(side).into()
    };
    let judging = Judging { margin: 0.0, ..Judging::default() };
    for (by_seeds, number, stated) in [(false, 4, 0.05), (true, 4, 0.01)] {
        let is_false = |_: &usize| {
            let values = draw(number);
            let own: Vec<Seeds> = values.iter().map(|it| seeds(it)).collect();
            let sides = match by_seeds {
                true => Sides::Seeds(&own, Vec::new()),
                false => boots(&values.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            };
            let rows = [(0, sides)].into_iter();
            let found = two_by_two().effects(rows, |_| Better::Lower, &judging);
            let changes = [Verdict::Regression, Verdict::Improvement];
            found.effects.iter().any(|effect| changes.contains(&effect.verdict))
        };
        let share = (0..TABLES).filter(is_false).count() as f64 / TABLES as f64;
        let error = (stated * (1.0 - stated) / TABLES as f64).sqrt();
        assert!(share < stated + 4.0 * error, "{share}, not {stated}");
        assert!(share > 0.2 * stated, "{share}");
    }
}
