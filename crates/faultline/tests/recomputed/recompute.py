"""Computes every figure of `tables.json`, which `faultline compare` printed, once more from the samples
and counters that `faultline export` wrote, and prints how many agree. Three blocks of boots a side: then
Student's t has 2 degrees of freedom, and its distribution and quantiles are plain formulas."""

import json
import math

import pandas as pd

PREPARATION = ["", "fill"]
METRICS = {"Elapsed": ("lower", "Amean"), "Rate": ("higher", "Hmean"), "CPU": (None, "Amean")}
PRIMARY = ["Elapsed", "Rate"]
BLOCKS = 3

with open("tables.json") as file:
    document = json.load(file)
base, new = document["variants"]
margin, confidence = document["judging"]["margin"], document["judging"]["confidence"]
samples = pd.read_parquet("samples.parquet")
series = pd.read_parquet("series.parquet")
agree = 0


def check(what, ours, theirs):
    global agree
    if ours is None or theirs is None:
        assert ours is theirs, (what, ours, theirs)
    else:
        assert math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12), (what, ours, theirs)
    agree += 1


def mean(values, kind):
    if kind == "Amean":
        return sum(values) / len(values)
    return len(values) / sum(1 / value for value in values)


def gain(better, value, baseline):
    if better is None:
        return None
    if baseline == value:
        return 0.0
    return 100 - 100 * value / baseline if better == "lower" else 100 * value / baseline - 100


def statistic(name, values, better):
    values = sorted(values, reverse=better == "higher")
    arithmetic, harmonic = mean(values, "Amean"), mean(values, "Hmean")
    n = len(values)
    spread = math.sqrt(sum((value - arithmetic) ** 2 for value in values) / (n - 1))
    # By the delta method.
    about = harmonic**2 * math.sqrt(sum((1 / value - 1 / harmonic) ** 2 for value in values) / n)
    best = values[: n * 95 // 100]
    return {
        "Min": min(values),
        "Max": max(values),
        "Amean": arithmetic,
        "Hmean": harmonic,
        "Stddev": spread,
        "CoeffVar": 100 * spread / arithmetic,
        "HStddev": about,
        "HCoeffVar": 100 * about / harmonic,
        "BAmean.95": mean(best, "Amean"),
        "BHmean.95": mean(best, "Hmean"),
    }[name]


def above(t):
    """How probably Student's t of 2 degrees of freedom is higher."""
    return (1 - t / math.sqrt(t * t + 2)) / 2


def quantile(p):
    return (2 * p - 1) / math.sqrt(2 * p * (1 - p))


def evidence(sides):
    """What figures of blocks, all above 0, say of each other."""
    steps = [math.log(other) - math.log(one) for one, other in zip(*sides)]
    step = mean(steps, "Amean")
    error = math.sqrt(sum((it - step) ** 2 for it in steps) / (BLOCKS - 1) / BLOCKS)
    reach = quantile((1 + confidence) / 2) * error
    return {
        "ratio": math.exp(step),
        "low": math.exp(step - reach),
        "high": math.exp(step + reach),
        "p_alone": 2 * above(abs(step) / error),
        "p_same": max(
            above((step - math.log1p(-margin)) / error),
            above((math.log1p(margin) - step) / error),
        ),
    }


def holm(ps):
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(order):
        highest = min(1.0, max(highest, (len(ps) - rank) * ps[place]))
        adjusted[place] = highest
    return adjusted


def benjamini_hochberg(ps):
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    adjusted, lowest = [0.0] * len(ps), 1.0
    for rank in reversed(range(len(ps))):
        lowest = min(lowest, len(ps) * ps[order[rank]] / (rank + 1))
        adjusted[order[rank]] = lowest
    return adjusted


def judge(rows, judged=()):
    """Checks rows with what their blocks say, alone and together; verdicts are on those `judged`."""
    families = [], []
    for row, figures in rows:
        if any(figure is None for side in figures for figure in side):
            assert row["evidence"][1] is None, row["metric"]
            continue
        if all(figure == figures[0][0] for side in figures for figure in side):
            continue
        found, said = evidence(figures), row["evidence"][1]
        for name, value in found.items():
            check((row["metric"], name), value, said[name])
        families[0 if row["metric"].split("-")[0] in judged else 1].append((row, found))
    primary, others = families
    adjusted = holm([found["p_alone"] for _, found in primary])
    for (row, found), p in zip(primary, adjusted):
        check((row["metric"], "Holm"), p, row["evidence"][1]["p"])
        if found["p_same"] < 1 - confidence:
            verdict = "same"
        elif p >= 1 - confidence:
            verdict = "undecided"
        else:
            is_better = (found["ratio"] > 1) == (row["better"] == "higher")
            verdict = "improvement" if is_better else "regression"
        assert row["verdicts"][1] == verdict, (row["metric"], verdict)
        verdicts.append(verdict)
    # Fewer boots can't tell one figure among many by less.
    adjusted = benjamini_hochberg([max(found["p_alone"], 2 / 4**BLOCKS) for _, found in others])
    for (row, _), p in zip(others, adjusted):
        check((row["metric"], "false discovery rate"), p, row["evidence"][1]["p"])


def of_metrics(table):
    rows = []
    measured = samples[samples.kind == "metric"]
    for row in table["rows"]:
        metric, label = row["metric"].split("-")
        better, kind = METRICS[metric]
        chosen = measured[(measured.metric == metric) & (measured.label == label)]
        sides = [chosen[chosen.variant == variant] for variant in (base, new)]
        values = [statistic(row["statistic"], list(side.value), better) for side in sides]
        is_spread = "Stddev" in row["statistic"] or "CoeffVar" in row["statistic"]
        better = "lower" if is_spread and better else better
        for ours, said, gained in zip(values, row["values"], row["gains"]):
            check((row["metric"], row["statistic"]), ours, said)
            check((row["metric"], "gain"), gain(better, ours, values[0]), gained)
        if row["statistic"] == kind:
            figures = [
                [mean(list(boot), kind) for _, boot in side.groupby("block").value]
                for side in sides
            ]
            rows.append((row, figures))
    judge(rows, PRIMARY)


def of_durations(table):
    rows = []
    for row in table["rows"]:
        chosen = samples[(samples.kind == "duration") & (samples.metric == row["metric"])]
        sides = [
            list(chosen[chosen.variant == variant].groupby("block").value.sum())
            for variant in (base, new)
        ]
        for side, said in zip(sides, row["values"]):
            check(row["metric"], mean(side, "Amean"), said)
        rows.append((row, sides))
    judge(rows)


def growth():
    """By how much each counter grew in each boot, and the seconds that it took."""
    counted = series.assign(phase=series.phase.fillna(""))
    counted = counted[~counted.phase.isin(PREPARATION) & (counted.source == "vmstat")]
    spans = counted.groupby(["variant", "block", "iteration", "phase", "span", "counter"])
    grown = spans.value.last() - spans.value.first()
    took = (spans.time.last() - spans.time.first()) / 1e9
    by = ["variant", "block", "counter"]
    return grown.groupby(by).sum().unstack(), took.groupby(by).sum().unstack().max(axis=1)


def share(part, whole):
    return 100 * part / whole if whole > 0 else None


# Rows by what counters grew by, and the seconds; those that are no sums are of all boots together.
ROWS = {
    "Minor Faults": lambda it, _: it.pgfault - it.pgmajfault,
    "Major Faults": lambda it, _: it.pgmajfault,
    "Allocation stalls": lambda it, _: it.allocstall_normal + it.allocstall_movable,
    "Direct pages scanned": lambda it, _: it.pgscan_direct,
    "Kswapd pages scanned": lambda it, _: it.pgscan_kswapd,
    "Kswapd pages reclaimed": lambda it, _: it.pgsteal_kswapd,
    "Kswapd efficiency": lambda it, _: share(it.pgsteal_kswapd, it.pgscan_kswapd),
    "Kswapd velocity": lambda it, seconds: it.pgscan_kswapd / seconds,
    "Direct velocity": lambda it, seconds: it.pgscan_direct / seconds,
    "Percentage direct scans": lambda it, _: share(
        it.pgscan_direct, it.pgscan_direct + it.pgscan_kswapd
    ),
    "NUMA base-page updates": lambda it, _: it.numa_pte_updates - 512 * it.numa_huge_pte_updates,
    "NUMA huge PMD updates": lambda it, _: it.numa_huge_pte_updates,
    "NUMA page range updates": lambda it, _: it.numa_pte_updates,
    "NUMA hint faults": lambda it, _: it.numa_hint_faults,
    "NUMA hint local faults": lambda it, _: it.numa_hint_faults_local,
    "NUMA hint local percent": lambda it, _: share(it.numa_hint_faults_local, it.numa_hint_faults),
    "NUMA pages migrated": lambda it, _: it.numa_pages_migrated,
    "AutoNUMA cost": lambda it, _: (
        7 * it.numa_pte_updates + 5000 * it.numa_hint_faults + 19 * it.numa_pages_migrated
    )
    / 1e6,
}
RATIOS = {name for name in ROWS if name.endswith(("efficiency", "velocity", "percent", "scans"))}


def of_counters(table):
    grown, took = growth()
    assert [row["metric"] for row in table["rows"]] == list(ROWS)
    rows = []
    for row in table["rows"]:
        formula = ROWS[row["metric"]]
        sides = []
        for variant, said in zip((base, new), row["values"]):
            boots, seconds = grown.loc[variant], took.loc[variant]
            whole = formula(boots.sum(), seconds.sum())
            check(row["metric"], whole if row["metric"] in RATIOS else whole / BLOCKS, said)
            sides.append([formula(boots.loc[block], seconds.loc[block]) for block in boots.index])
        rows.append((row, sides))
    judge(rows)


verdicts = []
tables = {"metrics": of_metrics, "duration": of_durations, "counters": of_counters}
assert [table["kind"] for table in document["tables"]] == list(tables)
for table in document["tables"]:
    tables[table["kind"]](table)
print(json.dumps({"agree": agree, "verdicts": sorted(set(verdicts))}))
