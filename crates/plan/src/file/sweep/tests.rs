//! Tests of what a sweep makes of an experiment.

use std::path::Path;

use model::{Bytes, Experiment};

use super::super::tests::rendered;
use super::super::{parse, write};

const VARIANTS: &str = "variant = [{ kernel = \"debian:6.1\" }, { kernel = \"6.12\", cmdline = \"quiet\" }]\n\
                        workload = [{ name = \"mprotect\" }]";

fn file(machine: &str, sweep: &str) -> String {
    format!("name = \"x\"\nboots = 3\nmachine = {{ {machine} }}\n{VARIANTS}\n[sweep]\n{sweep}\n")
}

fn read(machine: &str, sweep: &str) -> Experiment {
    let read = parse(Path::new("x.toml"), &file(machine, sweep), None);
    let request = read.unwrap_or_else(|error| panic!("{error:?}"));
    // What is written is read back.
    let written = write(&request.experiment, &request.reading).text;
    let again = parse(Path::new("x.toml"), &written, None);
    assert_eq!(again.unwrap_or_else(|error| panic!("{written}{error:?}")), request, "{written}");
    request.experiment
}

fn names(experiment: &Experiment) -> Vec<&str> {
    experiment.variants.iter().map(|variant| &*variant.name).collect()
}

/// The memory of each node and the number of CPUs at each point.
fn machines(experiment: &Experiment) -> Vec<(String, u32)> {
    let points = experiment.points().into_iter();
    let machines = points.map(|point| experiment.at_point(&point).unwrap().machine.topology);
    let nodes = machines.map(|topology| {
        let sizes: Vec<String> =
            topology.nodes.iter().map(|node| node.memory.to_string()).collect();
        (sizes.join(":"), topology.cpus())
    });
    nodes.collect()
}

#[test]
fn all_variants_run_at_each_point() {
    let experiment = read("cpus = 1", "memory = [\"512M\", \"1024M\"]");
    let expected = ["6.1 memory=512M", "6.12 memory=512M", "6.1 memory=1G", "6.12 memory=1G"];
    assert_eq!(names(&experiment), expected);
    assert_eq!(machines(&experiment), [("512M".to_owned(), 1), ("1G".to_owned(), 1)]);
    assert_eq!(experiment.machine.topology.memory(), Bytes::mib(512));
    let point = experiment.at_point("memory=1G").unwrap();
    assert_eq!(names(&point), ["6.1", "6.12"]);
}

#[test]
fn a_sweep_is_over_the_shape_of_the_machine() {
    let of = |machine: &str, sweep: &str| {
        let shapes = machines(&read(machine, sweep)).into_iter();
        shapes.map(|(memory, cpus)| format!("{memory} {cpus}")).collect::<Vec<_>>()
    };
    assert_eq!(
        of("cpus = 4, memory = \"1G\"", "nodes = [1, 4]"),
        ["1G 4", "256M:256M:256M:256M 4"]
    );
    assert_eq!(of("memory = \"1G\", nodes = 2", "cpus = [2, 6]"), ["512M:512M 2", "512M:512M 6"]);
    // A value replaces the machine's.
    assert_eq!(of("memory = \"1G\", cpus = 9", "cpus = [1, 2]"), ["1G 1", "1G 2"]);
    let ratios = "node_memory = [\"512M:512M\", \"768M:256M\"]";
    assert_eq!(of("cpus = 2", ratios), ["512M:512M 2", "768M:256M 2"]);
    let nodes = "node = [{ cpus = \"0\", memory = \"1G\", distances = [10, 40] }, \
                 { memory = \"1G\", distances = [40, 10] }]";
    assert_eq!(of(nodes, ratios), ["512M:512M 1", "768M:256M 1"]);
    let far = read(nodes, ratios).at_point("node_memory=768M:256M").unwrap().machine.topology;
    assert_eq!(far.distance(0, 1), 40);
}

#[test]
fn a_sweep_is_over_words_of_the_command_line() {
    let machine = "cpus = 1, memory = \"1G\"";
    let cmdlines = |sweep: &str| {
        let experiment = read(machine, sweep);
        let all = experiment.variants.iter().map(|it| format!("{}: {}", it.name, it.cmdline));
        all.collect::<Vec<_>>()
    };
    assert_eq!(
        cmdlines("movablecore = [\"25%\", \"50%\"]"),
        [
            "6.1 movablecore=25%: movablecore=25%",
            "6.12 movablecore=25%: quiet movablecore=25%",
            "6.1 movablecore=50%: movablecore=50%",
            "6.12 movablecore=50%: quiet movablecore=50%",
        ]
    );
    let words = cmdlines("cmdline = [\"\", \"movable_node\"]");
    assert_eq!(words[1..3], ["6.12 no cmdline: quiet", "6.1 cmdline=movable_node: movable_node"]);
}

#[test]
fn a_sweep_is_over_a_parameter() {
    let machine = "cpus = 1, memory = \"1G\"";
    let experiment = read(machine, "parameters = { rounds = [1, 4] }");
    let values: Vec<String> = experiment
        .points()
        .iter()
        .map(|point| {
            let point = experiment.at_point(point).unwrap();
            point.workloads[0].manifest.parameters["rounds"].value.clone()
        })
        .collect();
    assert_eq!(
        (values, experiment.points()[1].as_str()),
        (vec!["1".into(), "4".into()], "rounds=4")
    );
}

#[test]
fn wrong_sweeps_are_named() {
    let machine = "cpus = 2, memory = \"1G\"";
    let told = |machine: &str, sweep: &str| {
        let file = match sweep.starts_with("kernelcore") {
            true => file(machine, sweep).replace("quiet", "quiet kernelcore=1G"),
            false => file(machine, sweep),
        };
        let error = parse(Path::new("x.toml"), &file, None).unwrap_err();
        rendered(&error)
    };
    let cases = [
        "memry = [\"1G\"]",
        "",
        "memory = [\"1G\"]",
        "memory = [\"1G\", \"1024M\"]",
        "memory = [\"1G\", \"100M\"]",
        "memory = [\"1G\", 4]",
        "memory = \"1G\"",
        "cpus = [1, 2]\nmemory = [\"1G\", \"2G\"]",
        "cpus = [1, 0]",
        "cpus = [1, 256]",
        "nodes = [1, 4]",
        "node_memory = [\"512M:512M\", \"1G\"]",
        "node_memory = [\"512M:512M\", \"512M:100M\"]",
        "node_memory = [\"512M/512M\", \"1G:1G\"]",
        "parameters = { ronds = [1, 2] }",
        "parameters = { rounds = [1, \"many\"] }",
        "workload = \"autonuma\"\nparameters = { rounds = [1, 2] }",
        "workload = \"mprotect\"\nmemory = [\"1G\", \"2G\"]",
        "cmdline = [\"\", \"a\\nb\"]",
        "kernelcore = [\"25%\", \"50%\"]",
        "movablecore = [\"25%\", \"-1\"]",
    ];
    let all = cases.map(|sweep| format!("{sweep}\n{}\n", told(machine, sweep)));
    insta::assert_snapshot!(all.join("\n"));
    let alone = file(machine, "nodes = [1, 2]").replace("boots = 3", "boots = \"auto\"");
    let alone = alone.replace(", { kernel = \"6.12\", cmdline = \"quiet\" }", "");
    let error = parse(Path::new("x.toml"), &alone, None).unwrap_err().to_string();
    assert_eq!(error, "boots = \"auto\" needs two variants");
    assert!(told("memory = \"1G\"", "node_memory = [\"1G\", \"2G\"]").contains("has no CPUs"));
}
