//! `faultline import perf`: what perf wrote becomes an experiment that `explain` compares.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn faultline(directory: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_faultline"))
        .current_dir(directory)
        .env("FAULTLINE_STORE", directory.join("perf.db"))
        .args(args)
        .output()
        .unwrap()
}

fn text(output: Output, code: i32) -> String {
    let both = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
    assert_eq!(output.status.code(), Some(code), "{both}");
    both
}

/// Samples of two functions, and of idle CPUs.
fn script(slow: usize, other: usize) -> String {
    let sample = |command: &str, function: &str| {
        format!(
            "{command} 12 [000] 1.5: 10101010 cpu-clock:\n\
             \tffffffff81000010 {function}+0x10 ([kernel.kallsyms])\n\
             \tffffffff81000020 do_syscall_64+0x20 ([kernel.kallsyms])\n\n"
        )
    };
    let idle =
        "swapper 0 [000] 1.5: 10101010 cpu-clock:\n\tffffffff81000030 idle+0x1 ([kernel])\n\n";
    sample("a", "slow").repeat(slow) + &sample("b c", "other").repeat(other) + idle
}

#[test]
fn files_of_users_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let mut arguments = vec!["import".to_owned(), "perf".into()];
    for (variant, slow) in [("old", 20), ("new", 60)] {
        for boot in 0..4 {
            let file = format!("{variant}{boot}.txt");
            let head = format!("# os release : 6.{boot}.0-{variant}\n");
            let samples = script(slow + boot, 100 + 2 * boot);
            fs::write(directory.path().join(&file), head + &samples).unwrap();
            arguments.push(format!("{variant}={file}"));
        }
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let said = text(faultline(directory.path(), &arguments), 0);
    assert!(said.contains("old0.txt: 120 samples of cpu-clock"), "{said}");
    assert!(said.contains("left out: 1 sample of idle CPUs"), "{said}");
    assert!(said.contains("added 8 boots to experiment 1, perf: see"), "{said}");
    let again = text(faultline(directory.path(), &arguments), 0);
    assert!(again.contains("already has all of this"), "{again}");

    let explained = text(faultline(directory.path(), &["explain", "old", "new"]), 0);
    let share = explained.lines().skip_while(|line| !line.contains("by their share"));
    let slow = share.take(4).find(|line| line.ends_with("  slow")).unwrap();
    assert!(slow.contains("+20.1") && slow.contains("0.00"), "{explained}");
    assert!(explained.contains("old: 498 samples"), "{explained}");
    let refused = text(faultline(directory.path(), &["compare"]), 2);
    assert!(refused.contains("samples of perf: `faultline"), "{refused}");
    let shown = text(faultline(directory.path(), &["show"]), 0);
    let variant = shown.lines().find(|line| line.starts_with("variant old: ")).unwrap();
    assert!(
        variant.contains("6.0.0-old, imported from ") && variant.contains("old3.txt"),
        "{shown}"
    );
}

#[test]
fn files_that_do_not_go_together_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
    write("a.txt", script(1, 2));
    write("b.txt", script(1, 2));
    write("c.txt", script(1, 2).replace("cpu-clock", "cycles"));
    let refused = |files: [&str; 2]| {
        text(faultline(directory.path(), &[&["import", "perf"], &files[..]].concat()), 2)
    };
    assert!(refused(["old=a.txt", "new=b.txt"]).contains("a.txt and b.txt are the same"));
    let events = "c.txt has samples of cycles, but a.txt of cpu-clock";
    assert!(refused(["old=a.txt", "new=c.txt"]).contains(events));
    let other = refused(["old=a.txt", "--event=cycles"]);
    assert!(other.contains("a.txt: its samples are of cpu-clock: change --event"), "{other}");
    let both = fs::read_to_string(directory.path().join("a.txt")).unwrap()
        + &script(3, 0).replace("cpu-clock", "cycles");
    write("both.txt", both);
    let said =
        text(faultline(directory.path(), &["import", "perf", "old=both.txt", "--event=cycles"]), 0);
    assert!(
        said.contains("both.txt: 3 samples of cycles\n  left out: 4 samples of cpu-clock\n"),
        "{said}"
    );
}

#[test]
fn files_without_samples_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |contents: &[u8], argument: &str| {
        fs::write(directory.path().join("x.txt"), contents).unwrap();
        text(faultline(directory.path(), &["import", "perf", argument]), 2)
    };
    assert!(refused(b"PERFILE2\0\0", "a=x.txt").contains("give the output of `perf script`"));
    let bare = b"usemem  1234 [003]  81.204715:   10101010 cpu-clock:\n";
    assert!(refused(bare, "a=x.txt").contains("x.txt: no sample has a function"));
    let own = script(1, 1) + &report::perf_script(&[]);
    assert!(refused(own.as_bytes(), "a=x.txt").contains("x.txt: faultline wrote it from counts"));
    assert!(refused(b"hello\n", "a=x.txt").contains("x.txt: no sample is in it"));
    assert!(refused(b"", "a=none.txt").contains("none.txt: No such file"));
    assert!(refused(b"", "x.txt").contains("expected VARIANT=FILE"));
}

#[test]
fn json_has_the_samples_of_the_text() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: String| fs::write(directory.path().join(name), text).unwrap();
    let sample = |function: &str| {
        format!(
            "{{\"timestamp\": 1500000000, \"pid\": 12, \"tid\": 12, \"comm\": \"a\", \"callchain\": \
             [{{\"ip\": \"0xffffffff81000010\", \"symbol\": \"{function}\", \"dso\": \"[kernel.kallsyms]\"}}, \
             {{\"ip\": \"0xffffffff81000020\", \"symbol\": \"do_syscall_64\", \"dso\": \"[kernel.kallsyms]\"}}]}}"
        )
    };
    let json = |events: &str| {
        let samples = [vec![sample("slow"); 30], vec![sample("other"); 70]].concat().join(", ");
        format!(
            "{{\"linux-perf-json-version\": 1, \"headers\": {{\"cmdline\": [\"perf\", \"record\", \"-e\", \
             \"{events}\"]}}, \"samples\": [{samples}]}}"
        )
    };
    write("a.json", json("cpu-clock"));
    write("b.txt", script(30, 70).replace(" 1.5:", " 2.5:"));
    write("same.txt", script(30, 70));
    write("several.json", json("cpu-clock,cycles"));
    write("cut.json", json("cpu-clock").replace("]}", ""));
    let said = text(faultline(directory.path(), &["import", "perf", "old=a.json", "new=b.txt"]), 0);
    assert!(said.contains("a.json: 100 samples of cpu-clock\nb.txt: 100 samples"), "{said}");
    let explained = text(faultline(directory.path(), &["explain", "old", "new"]), 0);
    let row = explained.lines().find(|line| line.ends_with("  slow")).unwrap();
    assert!(row.contains("30.00") && row.contains("+0.00"), "{explained}");
    let both = ["import", "perf", "old=a.json", "new=same.txt"];
    let same = text(faultline(directory.path(), &both), 2);
    assert!(same.contains("a.json and same.txt are the same"), "{same}");
    let refused = |file| text(faultline(directory.path(), &["import", "perf", file]), 2);
    assert!(refused("old=several.json").contains("recorded with the events cpu-clock, cycles"));
    assert!(refused("old=cut.json").contains("cut.json: expected"));
}
