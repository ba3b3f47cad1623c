//! Tests of `boots = "auto"` and of `selftest`.

use std::fs;
use std::io::{BufRead, BufReader};

use kernels::Cache;

use crate::common::{Bench, quoted};

/// A workload that takes longer if the command line has the word `slow`, on a kernel with and without that word.
fn experiment(bench: &Bench) -> String {
    fs::copy(Cache::open().unwrap().shell(&|_| {}).unwrap(), bench.path("busybox")).unwrap();
    let script = "read -r line </proc/cmdline; \
                  case \"$line\" in *slow*) time=12.5 ;; *) time=10 ;; esac; \
                  echo sample Time $time >&$FAULTLINE_FD";
    let manifest = format!(
        "name = \"timed\"\ndescription = \"as slow as it is told\"\n\
         command = [\"busybox\", \"sh\", \"-c\", {script:?}]\n\
         [[metrics]]\nname = \"Time\"\nunit = \"s\"\nbetter = \"lower\"\nmean = \"amean\"\n"
    );
    let manifest = bench.write("timed.toml", &manifest);
    format!(
        "name = \"until\"\nboots = \"auto\"\nat_most = 8\n[machine]\ncpus = 1\nmemory = \"512M\"\n\
         nodes = 1\n[[variant]]\nname = \"fast\"\nkernel = \"6.1\"\n[[variant]]\nname = \"slow\"\n\
         kernel = \"6.1\"\ncmdline = \"slow\"\n[[workload]]\nmanifest = {}\nprogram = \"busybox\"\n",
        quoted(&manifest)
    )
}

#[test]
fn boots_end_when_every_verdict_is_decided_even_after_a_kill() {
    let bench = Bench::new();
    let file = bench.write("x.toml", &experiment(&bench));
    let file = file.to_str().unwrap();

    let mut child = bench.start(&["run", file]);
    let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> = lines
        .inspect(|line| {
            if line.starts_with("boot 3 of 16") {
                child.kill().unwrap();
            }
        })
        .collect();
    child.wait().unwrap();
    assert!(said.iter().any(|line| line.starts_with("boot 2 of 16: slow: complete")), "{said:?}");
    bench.await_no_qemu();

    // The third boot may have been complete when the run was killed.
    let said = bench.faultline(&["run", file]).expect(0);
    let before = [2, 3]
        .into_iter()
        .find(|done| said.err.contains(&format!("16 boots, {done} already done")));
    let left = 8 - before.unwrap_or_else(|| panic!("{}", said.err));
    assert!(said.err.contains("look 1 of 3, at 4 boots of each variant"), "{}", said.err);
    assert!(said.err.contains("slow: timed Time: regression (-25.00%)"), "{}", said.err);
    let done = format!("{left} boots done; all verdicts are decided");
    assert!(said.out.contains(&done), "{}", said.out);
    let complete = bench.boots().iter().filter(|boot| boot.outcome.is_complete()).count();
    assert_eq!(complete, 8);

    let again = bench.faultline(&["run", file]).expect(0);
    assert!(again.out.contains("no boots done; all verdicts are decided"), "{}", again.out);
    let compared = bench.faultline(&["compare", "--full"]).expect(0);
    let text = compared.out.replace('\n', " ");
    assert!(text.contains("sequential, look 1 of 3, level 0.5 %"), "{text}");
    let few = bench.faultline(&["selftest", "--from", "until", "fast"]).expect(2);
    assert!(few.err.contains("fewer than 6 complete boots"), "{}", few.err);
}

#[test]
fn a_kernel_is_tested_against_itself() {
    let bench = Bench::new();
    let machine = ["--cpus", "2", "--memory", "512M", "--nodes", "2"];
    let workload = ["--set", "programs=NUMA02", "--set", "scale=0.01", "--boots", "3"];
    let args = [&["selftest"], &machine[..], &workload[..]].concat();
    let said = bench.faultline(&args).expect(0);
    assert_eq!(bench.boots().len(), 6);
    for expected in
        ["3 and 3 boots", "autonuma Elapsed-NUMA02", "counters: ", "all 4 ways to split", "Host: "]
    {
        assert!(said.out.contains(expected), "{expected}\n{}", said.out);
    }
    // All boots are stored, so a second self-test boots nothing.
    let found = bench.json(&args);
    assert_eq!(bench.boots().len(), 6);
    assert_eq!(found["boots"], serde_json::json!([3, 3]));
    let drawn = found["metrics"].as_array().unwrap().iter().filter(|it| it["primary"] == true);
    assert_eq!(drawn.count(), 1);
}

/// A workload with forty samples. Each of the first five starts twenty processes, each of the others one.
fn cold(bench: &Bench) -> String {
    fs::copy(Cache::open().unwrap().shell(&|_| {}).unwrap(), bench.path("busybox")).unwrap();
    let script = "i=0; while [ $i -lt 40 ]; do n=1; [ $i -lt 5 ] && n=20; \
                  j=0; while [ $j -lt $n ]; do \"$0\" true; j=$((j+1)); done; \
                  read -r up rest </proc/uptime; \
                  echo sample Processes $n.$((7*i%10)) @$up >&$FAULTLINE_FD; \
                  \"$0\" usleep 20000; i=$((i+1)); done";
    let manifest = format!(
        "name = \"cold\"\ndescription = \"starts cold\"\n\
         command = [\"{{program}}\", \"sh\", \"-c\", {script:?}, \"{{program}}\"]\n\
         [[metrics]]\nname = \"Processes\"\nunit = \"\"\nbetter = \"lower\"\nmean = \"amean\"\n"
    );
    let manifest = bench.write("cold.toml", &manifest);
    format!(
        "name = \"cold\"\nboots = 3\n[machine]\ncpus = 1\nmemory = \"512M\"\nnodes = 1\n\
         [sampler]\ninterval = \"10ms\"\n[[variant]]\nkernel = \"6.1\"\n\
         [[workload]]\nmanifest = {}\nprogram = \"busybox\"\n",
        quoted(&manifest)
    )
}

/// Compares page faults, as the kernel counts them. Each new process causes some.
#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn counters_cover_the_steady_part() {
    let bench = Bench::new();
    bench.run(&cold(&bench)).expect(0);
    let faults = |arguments: &[&str]| {
        let document = bench.json(&[&["compare"], arguments].concat());
        let tables = document["tables"].as_array().unwrap();
        let counters = tables.iter().find(|table| table["kind"] == "counters").unwrap();
        let mut rows = counters["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| row["metric"] == "Minor Faults").unwrap();
        (counters["part"].clone(), row["values"][0].as_f64().unwrap())
    };
    let (part, steady) = faults(&[]);
    assert_eq!(part, "steady");
    let (part, all) = faults(&["--warmup", "include"]);
    assert!(part.is_null());
    // The steady part has 35 x 2 of 5 x 21 + 35 x 2 processes. The two clocks have a resolution of 10 ms.
    let share = steady / all;
    println!("{steady} of {all} page faults are of the steady part: {:.1} %", 100.0 * share);
    assert!((0.3..0.5).contains(&share), "{steady} of {all}");
}
