//! Reads `[culprit]`: the search for the commit or the option at which a figure changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Class, Experiment, Millis, Profiling, Reading, Share, Variant, exact_cost};
use serde::Deserialize;
use toml::Spanned;

use super::mode::BootsForm;
use super::variants::VariantForm;
use super::{Checked, FileForm, build, fault};
use crate::request::Request;
use crate::search::{Asked, BOOTS, CONFIDENCE, Search, is_confidence, name};

/// The table `[culprit]`: which change a search looks for.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CulpritForm {
    /// The commit before the change.
    pub good: Option<String>,
    /// The commit after the change.
    pub bad: Option<String>,
    /// The configuration of the good end.
    pub good_config: Option<String>,
    /// The configuration of the bad end.
    pub bad_config: Option<String>,
    /// An older commit to measure too.
    pub reference: Option<String>,
    /// A row of means.
    pub metric: Option<String>,
    /// A row of the tables of counters.
    pub counter: Option<String>,
    /// The phase whose instructions count.
    pub phase: Option<Spanned<String>>,
    /// The function whose instructions count.
    pub function: Option<Spanned<String>>,
    /// The cost that counts instead of instructions.
    pub cost: Option<Spanned<String>>,
    /// Search every step beyond luck.
    #[serde(default)]
    pub all: bool,
    /// Do not search inside merges.
    #[serde(default)]
    pub first_parent: bool,
    /// Patches that commits need to build or boot.
    #[serde(default)]
    pub with_patch: Vec<PathBuf>,
    /// Measured mode: how sure the answer is to be.
    pub confidence: Option<Spanned<Share>>,
    /// No further commit is tried after this time.
    pub budget: Option<Millis>,
}

/// The search that a form describes.
pub(super) fn search(mut form: FileForm, directory: &Path) -> Checked<Search> {
    let place = form.culprit.as_ref().map(Spanned::span).filter(|place| !place.is_empty());
    let place = place.or(form.name.as_ref().map(Spanned::span)).unwrap_or_default();
    let mut wanted = form.culprit.take().map(Spanned::into_inner).unwrap_or_default();
    let is_transfer = |cost: &str| Class::named(cost).is_some_and(Class::is_transfer);
    // No row of means has the name of a cost.
    if wanted.cost.is_none() && wanted.metric.as_deref().is_some_and(is_transfer) {
        wanted.cost = wanted.metric.take().map(|cost| Spanned::new(place.clone(), cost));
    }
    // What boots count follows from the figure.
    if let Some(cost) = wanted.cost.as_ref().filter(|it| is_transfer(it.get_ref())) {
        let profile =
            form.profile.get_or_insert_with(|| Spanned::new(cost.span(), Profiling::default()));
        profile.get_mut().transfers = true;
    }
    let [good, bad] = [("good", wanted.good), ("bad", wanted.bad)].map(|(name, commit)| {
        commit.map_or_else(
            || {
                let hint = format!("give it in [culprit] or with --{name}");
                fault(place.clone(), format!("a search needs the {name} end"), hint)
            },
            |commit| match commit.chars().any(char::is_control) {
                true => {
                    let problem =
                        format!("the {name} end `{}` is no commit", commit.escape_debug());
                    fault(place.clone(), problem, "name a commit, a tag or a branch")
                }
                false => Ok(commit),
            },
        )
    });
    let (good, bad) = (good?, bad?);
    let Some(tree) = form.tree.as_ref().map(|tree| build::path(directory, tree)) else {
        let hint = "name it with --tree, or at the top of the file: tree = \"~/linux\"";
        return fault(place, "a search needs the git repository of the commits", hint);
    };
    if form.sweep.is_some() {
        return fault(place, "a search runs on one machine", "leave [sweep] out");
    }
    if form.variants.is_none() && form.matrix.is_none() {
        let variant = VariantForm::new(Spanned::new(place.clone(), format!("git:{good}")));
        form.variants = Some(Spanned::new(place.clone(), vec![variant]));
    }
    if form.boots.is_none() && form.mode.is_measured() {
        form.boots = Some(Spanned::new(place.clone(), BootsForm::Number(BOOTS)));
    }
    let Request { experiment, reading, mut builds } = form.check(directory)?;
    let [_] = &experiment.workloads[..] else {
        return fault(place, "a search runs one workload", "leave the others out");
    };
    let settings = |it: &Variant| (it.cmdline.clone(), it.settings.clone(), it.modules.clone());
    if experiment.variants.iter().any(|it| settings(it) != settings(&experiment.variants[0])) {
        let hint = "keep those of one variant: a search has the settings of the first";
        return fault(place, "the variants have different settings", hint);
    }
    let first = experiment.variants[0].clone();
    let Some(build) = builds.remove(&first.name) else {
        let hint = "make it a commit, such as kernel = \"git:v6.12\", or leave variants out";
        return fault(place, "the kernel of the first variant is not built from source", hint);
    };
    if !(build.revert.is_empty() && build.pick.is_empty() && build.patches.is_empty()) {
        let hint = "leave them out; with_patch in [culprit] has patches that commits need to build";
        return fault(place, "a search takes no revert, pick or patches of a variant", hint);
    }
    let boots = if experiment.sequential.is_some() { BOOTS } else { experiment.boots };
    let config = |name: Option<String>| name.map(|name| build::config(directory, &name));
    let with_patch = wanted.with_patch.iter().map(|patch| build::patch(directory, patch)).collect();
    let figures = [
        ("metric", wanted.metric.is_some()),
        ("counter", wanted.counter.is_some()),
        ("phase", wanted.phase.is_some()),
        ("function", wanted.function.is_some()),
        ("cost", wanted.cost.is_some()),
    ];
    let figures: Vec<&str> =
        figures.into_iter().filter_map(|(key, is_given)| is_given.then_some(key)).collect();
    let is_row = wanted.metric.is_some() || wanted.counter.is_some();
    if figures.len() > 1 && is_row {
        let problem = format!("a search has one figure, and {} are given", figures.join(" and "));
        return fault(place, problem, "leave the others out");
    }
    let is_measured = experiment.mode.is_measured();
    let counted = [&wanted.phase, &wanted.function, &wanted.cost].into_iter().flatten().next();
    if let Some(figure) = counted.filter(|_| is_measured) {
        let hint = "add mode = \"exact\" or --mode exact, or use metric";
        return fault(figure.span(), "phase, function and cost need exact mode", hint);
    }
    if let Some(cost) = &wanted.cost {
        let misses = experiment.profile.memory_model.is_some();
        let counted = exact_cost::Counted { transfers: true, misses, ..Default::default() };
        let table = exact_cost::table_with_classes(experiment.machine.arch, counted);
        let costs: Vec<&str> = table.costs().iter().map(|it| &*it.name).collect();
        if !costs.contains(&&**cost.get_ref()) {
            if Class::named(cost.get_ref()).is_some_and(Class::is_miss) {
                let problem = format!("`{}` needs a memory model", cost.get_ref());
                let hint =
                    "add --memory-model skylake-2s, or profile = { memory_model = \"skylake-2s\" }";
                return fault(cost.span(), problem, hint);
            }
            let problem = format!("there is no cost `{}` in a search", cost.get_ref());
            return fault(cost.span(), problem, format!("there are: {}", costs.join(", ")));
        }
    }
    let confidence = match &wanted.confidence {
        Some(given) if !is_measured => {
            return fault(given.span(), "confidence is for measured mode", "leave it out");
        }
        Some(given) if !is_confidence(*given.get_ref()) => {
            let hint = "use 50 % or more and less than 100 %, such as \"95%\"";
            return fault(given.span(), "`confidence` is out of range", hint);
        }
        given => given.as_ref().map_or(CONFIDENCE, |given| *given.get_ref()),
    };
    Ok(Search {
        experiment: Experiment {
            name: name(&experiment.workloads[0].manifest.name),
            variants: Vec::new(),
            sequential: None,
            boots,
            ..experiment
        },
        reading: Reading { variants: BTreeMap::new(), ..reading },
        variant: first,
        bad_config: config(wanted.bad_config).or_else(|| build.config.clone()),
        build: model::Build {
            config: config(wanted.good_config).or_else(|| build.config.clone()),
            tree: Some(tree.clone()),
            patches: with_patch,
            ..build
        },
        tree,
        good,
        bad,
        reference: wanted.reference,
        asked: Asked {
            metric: wanted.metric,
            counter: wanted.counter,
            phase: wanted.phase.map(Spanned::into_inner),
            function: wanted.function.map(Spanned::into_inner),
            cost: wanted.cost.map(Spanned::into_inner),
        },
        all: wanted.all,
        first_parent: wanted.first_parent,
        confidence: confidence.0,
        budget: wanted.budget.map(|budget| Duration::from_millis(budget.0)),
        prove: true,
    })
}

#[cfg(test)]
mod tests {
    use model::Architecture::Arm64;

    use super::super::Input;
    use super::*;

    const REST: &str =
        "machine = { cpus = 1, memory = '512M' }\nworkload = [{ name = 'mprotect' }]\n";

    fn parse(text: &str, ends: [Option<&str>; 2]) -> Result<Search, String> {
        let read = Input::file(Path::new("/x/a.toml"), text.to_owned());
        let (input, mut form) = read.map_err(|error| error.to_string())?;
        if let Some(wanted) = form.culprit.as_mut().map(Spanned::get_mut) {
            let [good, bad] = ends.map(|end| end.map(str::to_owned));
            (wanted.good, wanted.bad) = (good.or(wanted.good.take()), bad.or(wanted.bad.take()));
        }
        input.search(form).map_err(|error| error.to_string())
    }

    #[test]
    fn a_search_is_for_one_architecture() {
        let read = |arch: &str| {
            let rest = REST.replace("cpus", &format!("arch = {arch}, cpus"));
            let ends = "culprit = { good = 'a', bad = 'b' }";
            let text = format!("name = 'a'\nmode = 'exact'\ntree = 'x'\n{rest}{ends}\n");
            parse(&text, [None, None])
        };
        let search = read("'arm64'").unwrap();
        assert_eq!((search.build.arch, search.experiment.machine.arch), (Arm64, Arm64));
        let told = read("['arm64', 'x86_64']").unwrap_err();
        assert_eq!(told, "an experiment is for one architecture");
    }

    #[test]
    fn what_the_mode_does_not_have_is_refused() {
        let told = |mode: &str, more: &str| {
            let ends = "good = 'v1', bad = 'v2'";
            let text = format!(
                "name = 'a'\n{mode}\ntree = 'linux'\n{REST}culprit = {{ {ends}, {more} }}\n"
            );
            parse(&text, [None, None]).unwrap_err()
        };
        let exact = "mode = 'exact'";
        for counted in ["phase = 'p'", "cost = 'entries'"] {
            assert_eq!(told("", counted), "phase, function and cost need exact mode");
        }
        for cost in ["Transfers", "loads", "tlbi-all", ""] {
            let wrong = format!("there is no cost `{cost}` in a search");
            assert_eq!(told(exact, &format!("cost = '{cost}'")), wrong);
        }
        assert_eq!(told(exact, "confidence = '90%'"), "confidence is for measured mode");
        let two = "a search has one figure, and metric and phase are given";
        assert_eq!(told(exact, "metric = 'm', phase = 'p'"), two);
        let two = "a search has one figure, and counter and cost are given";
        assert_eq!(told(exact, "counter = 'c', cost = 'entries'"), two);
    }

    #[test]
    fn boots_of_a_search_count_what_its_figure_needs() {
        let search = |mode: &str, machine: &str, figure: &str| {
            let text = format!(
                "name = 'a'\n{mode}\ntree = '.'\nmachine = {{ cpus = {machine}, memory = '512M' }}\n\
                 workload = [{{ name = 'mprotect' }}]\n\
                 culprit = {{ good = 'a', bad = 'b', {figure} }}\n"
            );
            let search = parse(&text, [None; 2])?;
            let Search { experiment, asked, .. } = search;
            Ok::<_, String>((experiment.profile.transfers, asked.cost, asked.phase))
        };
        let exact = "mode = 'exact'";
        let of =
            |cost: &str, phase: Option<&str>| Ok((true, Some(cost.into()), phase.map(Into::into)));
        assert_eq!(search(exact, "2", "metric = 'transfers'"), of("transfers", None));
        let both = "cost = 'false-sharing', phase = 'protect'";
        assert_eq!(search(exact, "2", both), of("false-sharing", Some("protect")));
        assert_eq!(
            search(exact, "2", "cost = 'entries'"),
            Ok((false, Some("entries".into()), None))
        );
        let told =
            |mode: &str, machine: &str, figure: &str| search(mode, machine, figure).unwrap_err();
        assert!(told(exact, "1", "cost = 'l2-misses'").contains("needs a memory model"));
        let alone = "transfers of lines are counted on 2 to 64 CPUs";
        assert_eq!(told(exact, "1", "cost = 'upgrades'"), alone);
        for figure in ["cost = 'transfers'", "metric = 'transfers'"] {
            assert!(told("", "2", figure).contains("exact mode"), "{figure}");
        }
    }

    #[test]
    fn a_search_has_machine_workload_and_settings_of_the_file() {
        let text = format!(
            "name = 'a'\nmode = 'exact'\nseeds = 6\ntree = 'linux'\n{REST}\
             variant = [{{ kernel = 'git:v1', cmdline = 'x=1', build = {{ set = {{ CONFIG_A = 'y' }} }} }}]\n\
             culprit = {{ good = 'v1', bad = 'v2', phase = 'protect', with_patch = ['fix.patch'], all = true, \
             good_config = '.config', bad_config = 'debian:6.12' }}\n"
        );
        let search = parse(&text, [None, Some("HEAD")]).unwrap();
        assert_eq!((search.good.as_str(), search.bad.as_str()), ("v1", "HEAD"));
        assert_eq!(search.tree, Path::new("/x/linux"));
        assert_eq!((search.experiment.boots, search.all), (6, true));
        assert_eq!(search.variant.cmdline, "x=1");
        assert_eq!(search.build.set["CONFIG_A"], "y");
        assert_eq!(search.ends(), ["v1 with /x/.config", "HEAD with debian:6.12"]);
        assert_eq!(search.build.patches, [Path::new("/x/fix.patch")]);
        let plain =
            format!("name = 'a'\ntree = '.'\n{REST}culprit = {{ good = 'a', bad = 'b' }}\n");
        let plain = parse(&plain, [None; 2]).unwrap();
        assert_eq!((plain.experiment.boots, plain.ends()), (BOOTS, ["a".into(), "b".into()]));
    }

    #[test]
    fn what_a_search_lacks_is_named() {
        let wrong = |text: &str| parse(text, [None, Some("b")]).unwrap_err();
        let with = |more: &str| format!("name = 'a'\ntree = '.'\n{REST}{more}");
        assert_eq!(wrong(&with("")), "a search needs the good end");
        let control = with("culprit = { good = \"v1\\u001b\" }\n");
        assert_eq!(wrong(&control), "the good end `v1\\u{1b}` is no commit");
        let packaged = with("variant = [{ kernel = '6.1' }]\nculprit = { good = 'a' }\n");
        assert!(wrong(&packaged).contains("is not built from source"));
        let of_source = |more: &str| {
            with(&format!(
                "variant = [{{ kernel = 'git:v1', {more} }}]\nculprit = {{ good = 'a' }}\n"
            ))
        };
        for more in ["revert = ['main']", "pick = ['main']", "patches = ['a.patch']"] {
            assert!(wrong(&of_source(more)).contains("takes no revert, pick or patches"), "{more}");
        }
        let matrix =
            "[matrix]\nkernel = ['git:v1']\nthp = ['always', 'never']\n[culprit]\ngood = 'a'\n";
        assert_eq!(wrong(&with(matrix)), "the variants have different settings");
        let unsure = with("culprit = { good = 'a', confidence = '30%' }\n");
        assert_eq!(wrong(&unsure), "`confidence` is out of range");
        let no_tree = format!("name = 'a'\n{REST}culprit = {{ good = 'a' }}\n");
        assert!(wrong(&no_tree).contains("needs the git repository"));
        assert!(wrong(&with("culprit = { god = 'a' }\n")).contains("god"));
    }
}
