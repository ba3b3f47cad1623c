//! Checks that a program which forges Faultline's own figures or the profile's marks changes no count.

use model::{Boot, Note, Outcome, Sample};

use crate::common::{Bench, experiment};

/// A program that touches memory in a phase, and does what its argument says.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words) {
    int lines = atoi(getenv("FAULTLINE_FD"));
    FILE *acks = fdopen(atoi(getenv("FAULTLINE_ACK_FD")), "r");
    setbuf(acks, NULL);
    dprintf(lines, "phase touch\n");
    fgetc(acks);
    memset(malloc(4 << 20), count, 4 << 20);
    if (!strcmp(words[1], "sample"))
        dprintf(lines, "sample instructions kernel 100000000\n");
    if (!strcmp(words[1], "mark"))
        __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 'F', 'L', 'c', 't'\n"
                         ".byte 0x0f, 0x1f, 0x84, 0x00, 'F', 'L', 't', 'k'");
    dprintf(lines, "phase\n");
    fgetc(acks);
}
"#;

/// The kernel's instructions of a workload in its phase.
fn counted(boot: &Boot, workload: &str) -> Vec<f64> {
    let is_wanted = |sample: &&Sample| {
        let of = [&sample.workload, &sample.phase, &sample.metric, &sample.label];
        of.map(|it| &**it) == [workload, "touch", "instructions", "kernel"]
    };
    boot.samples.iter().filter(is_wanted).map(|sample| sample.value).collect()
}

#[test]
fn a_workload_adds_nothing_to_what_is_counted() {
    let bench = Bench::new();
    bench.compile("forge", PROGRAM, &["-O2", "-static"]);
    let mut text = "[[variant]]\nname = \"k\"\nkernel = \"6.12\"\n".to_owned();
    for name in ["nothing", "mark", "sample"] {
        let manifest = format!(
            "name = \"{name}\"\ndescription = \"\"\ncommand = [\"{{program}}\", \"{name}\"]\n\
             program = \"forge\"\nmetrics = []\n"
        );
        bench.write(&format!("{name}.toml"), &manifest);
        text += &format!("[[workload]]\nmanifest = \"{name}.toml\"\n");
    }
    let said = bench.run(&experiment("forged", &text).replace("boots", "mode = \"exact\"\nseeds"));
    let said = said.expect(3);
    let [boot] = &bench.boots()[..] else { panic!("not one boot") };
    let Outcome::Partial(why) = &boot.outcome else { panic!("{}", boot.outcome) };
    assert!(why.contains("`sample instructions`: Faultline fills the rows of this name"), "{why}");
    assert!(said.err.contains(why), "{}", said.err);
    assert!(counted(boot, "sample").is_empty());
    let ([nothing], [marked]) = (&counted(boot, "nothing")[..], &counted(boot, "mark")[..]) else {
        panic!("{:?}", boot.samples)
    };
    // The draws of a seed differ between workloads. A forged cut would leave only a part of the phase.
    assert!((marked / nothing - 1.0).abs() < 0.25, "{nothing} {marked}");
    let is_told = |note: &&Note| note.text.contains("(`forge`) executed a mark");
    assert_eq!(boot.notes.iter().filter(is_told).count(), 1, "{:?}", boot.notes);
}
