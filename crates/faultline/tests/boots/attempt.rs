//! `faultline try` with programs of many kinds.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::{Boot, Outcome};

use crate::common::{Bench, Said, values};

/// Uses memory, and prints figures.
const PROGRAM: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    char *memory = malloc(8 << 20);
    memset(memory, count, 8 << 20);
    printf("cosine: %f units\nwords %d words\n%s\n", cos(memory[0] - count), count, words[1]);
}
"#;

/// Writes an executable file.
fn program(bench: &Bench, name: &str, text: &str) {
    let path = bench.write(name, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Tries a command in the bench's directory, in exact mode.
fn attempt(bench: &Bench, kernels: &str, options: &[&str], command: &[&str]) -> Said {
    let arguments = [&["try", kernels, "--exact", "--memory", "512M"], options, &["--"], command];
    let mut faultline = bench.command(&arguments.concat());
    faultline.current_dir(bench.directory.path());
    bench.said(faultline)
}

fn failure(boot: &Boot) -> &str {
    match &boot.outcome {
        Outcome::Failed(why) => why,
        other => panic!("{other}"),
    }
}

#[test]
fn a_script_runs_a_dynamic_program_with_its_files() {
    let bench = Bench::new();
    bench.compile("program", PROGRAM, &["-lm"]);
    bench.write("data", "from a file\n");
    let script = "#!/bin/sh\nset -e\n./program \"$(cat \"$1\")\" '{cpus}' | tee out\n\
                  echo lines $(wc -l <out) lines\n";
    program(&bench, "test.sh", script);
    let said = attempt(&bench, "6.1", &[], &["./test.sh", "data"]).expect(0);
    for part in ["Amean minor-faults ", "Amean figure-words-words", "needs two kernels"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    // Times of exact mode are those of the guest's clock.
    assert!(!said.out.contains("Amean wall "), "{}", said.out);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    assert_eq!(values(boot, "figure", "cosine-units"), [1.0]);
    assert_eq!(values(boot, "figure", "words-words"), [3.0]);
    assert_eq!(values(boot, "figure", "lines-lines"), [3.0]);
    // The program writes 8 MiB in base pages.
    let [faults] = values(boot, "minor-faults", "")[..] else { panic!("not one value") };
    let [resident] = values(boot, "max-resident", "")[..] else { panic!("not one value") };
    assert!(faults > 100.0 && resident > 8192.0, "{faults} faults, {resident} KiB");
    assert!(boot.notes.iter().any(|note| note.text == "printed: from a file"), "{:?}", boot.notes);
    let shown = bench.faultline(&["show", "b1"]).expect(0).out;
    assert!(shown.contains("printed: from a file"), "{shown}");
    // The saved experiment is the same as the one that ran.
    let home = bench.path("saved");
    let options = ["--save", home.to_str().unwrap()];
    attempt(&bench, "6.1", &options, &["./test.sh", "data"]).expect(0);
    let file = home.join("run-test.sh-6.1-exact.toml");
    let again = bench.faultline(&["run", file.to_str().unwrap(), "--dry-run"]).expect(0).out;
    assert!(again.contains("test.sh"), "{again}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn two_kernels_are_compared() {
    let bench = Bench::new();
    bench.compile("program", PROGRAM, &["-lm"]);
    let said = attempt(&bench, "6.1,6.12", &["--seeds", "4"], &["./program", "x"]).expect(0);
    for part in [
        "First answer, from 3 seeds of each kernel, before 1 seed more:\n",
        "Verdicts on 6.12 against 6.1: margin 1 %:\n",
        "instructions-kernel-run",
        "compare 1 --full\n",
        "explain 6.1 6.12 1\n",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    bench.faultline(&["explain", "6.1", "6.12"]).expect(0);
    let exported = bench.faultline(&["export", "--format", "csv"]).expect(0).out;
    assert!(exported.contains("max-resident"), "{exported}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn python_runs_with_its_standard_library() {
    let bench = Bench::new();
    let script = "#!/usr/bin/env python3\nimport json, mmap, os\n\
                  assert json.loads('[1]') == [1] and os.getcwd() == os.path.dirname(os.path.abspath(__file__))\n\
                  memory = mmap.mmap(-1, 1 << 20)\nprint('pages', len(memory) // 4096, 'pages')\n";
    program(&bench, "test.py", script);
    attempt(&bench, "6.1", &[], &["./test.py"]).expect(0);
    assert_eq!(values(&bench.boots()[0], "figure", "pages-pages"), [256.0]);
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn programs_that_fail_are_told_with_their_output() {
    let bench = Bench::new();
    let tried = |name: &str, text: &str, options: &[&str]| {
        program(&bench, name, text);
        // After one failed boot of each kernel there are no more boots.
        let kernels = if name == "status" { "6.1,6.12" } else { "6.1" };
        let said = attempt(&bench, kernels, options, &[&*format!("./{name}")]).expect(3);
        let boot = bench.boots().pop().unwrap();
        assert!(said.out.contains(failure(&boot)), "{}", said.out);
        failure(&boot).to_owned() + &said.out
    };
    let status = tried("status", "#!/bin/sh\necho bad input; exit 3\n", &[]);
    assert!(status.contains("it exited with status 3; its last output was: bad input"), "{status}");
    assert_eq!(bench.boots().len(), 2);
    let killed = tried("killed", "#!/bin/sh\necho late; kill -SEGV $$\n", &[]);
    assert!(killed.contains("signal 11 killed it; its last output was: late"), "{killed}");
    let options = ["--timeout", "5s"];
    let hung = tried("hung", "#!/bin/sh\necho asleep; sleep 100000\n", &options);
    assert!(hung.contains("it took longer than 5s; its last output was: asleep"), "{hung}");
    let lacking = tried("lacking", "#!/bin/sh\nno-such-command\n", &[]);
    assert!(lacking.contains("no-such-command: not found"), "{lacking}");
    assert!(lacking.contains("--with FILE takes others"), "{lacking}");
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn garbage_in_the_output_does_no_harm() {
    let bench = Bench::new();
    let script = "#!/bin/sh\nhead -c 3000000 /dev/zero\necho\n\
                  i=0; while [ $i -lt 20000 ]; do echo $i is a line of two megabytes of text, or near; i=$((i+1)); done\n\
                  printf '\\377\\376 5 s\\n'\necho sample Elapsed 1.5\necho phase other\necho good 42 ms\n\
                  head -c 100000 /dev/urandom\n";
    program(&bench, "garbage.sh", script);
    attempt(&bench, "6.1", &[], &["./garbage.sh"]).expect(0);
    let boot = &bench.boots()[0];
    assert_eq!(values(boot, "time", "good-ms"), [42.0]);
    assert!(boot.notes.len() < 50 && values(boot, "Elapsed", "").is_empty());
    let shown = bench.faultline(&["show", "b1"]).expect(0).out;
    assert!(shown.contains("more lines") && !shown.contains('\0'), "{}", shown.len());
}

#[test]
#[ignore = "takes minutes: `make check-long` runs it"]
fn a_program_of_the_path_is_found() {
    let stressor = ["stress-ng", "--vm", "2", "--vm-bytes", "64M", "--timeout", "2"];
    let found =
        |name: &str| ["/usr/bin", "/bin"].iter().any(|it| Path::new(it).join(name).exists());
    let command = if found("stress-ng") { &stressor[..] } else { &["sort", "/etc/services"] };
    let bench = Bench::new();
    attempt(&bench, "6.1", &["--with", "/etc/hostname"], command).expect(0);
    assert!(values(&bench.boots()[0], "minor-faults", "")[0] > 0.0);
}
