//! Counts of classes of instructions that follow from what a program asks for.

use model::{Class, Place};

use crate::common::{Bench, quoted};

/// Takes a right from single pages that are mapped, one call each, and asks the kernel for nothing but a number.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	if (read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) != 1)
		exit(1);
}

int main(void)
{
	char *pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memset(pages, 1, 64 * 4096);
	phase("protect");
	for (int i = 0; i < 64; i++)
		mprotect(pages + i * 4096, 4096, PROT_READ);
	phase("getppid");
	for (int i = 0; i < 1000; i++)
		syscall(SYS_getppid);
	phase("");
	dprintf(atoi(getenv("FAULTLINE_FD")), "sample Done 1\n");
	return 0;
}
"#;

const MANIFEST: &str = "name = \"protect\"\ndescription = \"takes a right from pages\"\n\
                        command = [\"{program}\"]\nprogram = \"protect\"\n\
                        [[metrics]]\nname = \"Done\"\nunit = \"times\"\nbetter = \"higher\"\nmean = \"amean\"\n";

#[test]
fn a_page_whose_right_is_taken_is_flushed_once() {
    let bench = Bench::new();
    bench.compile("protect", PROGRAM, &["-static"]);
    let manifest = bench.write("protect.toml", MANIFEST);
    bench
        .run(&format!(
            "name = \"classes\"\nmode = \"exact\"\nseeds = 1\n\
             [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 1\n[[variant]]\nkernel = \"6.12\"\n\
             [[workload]]\nmanifest = {}\nprogram = {}\n",
            quoted(&manifest),
            quoted(&bench.path("protect"))
        ))
        .expect(0);
    let boots = bench.boots();
    let sum = |class: Class, phase: &str| {
        let profile = boots[0].profiles.iter().find(|it| it.phase == phase).unwrap();
        let is_function = |place: &Place| matches!(place, Place::Function { .. });
        profile.costs.sum(class.name(), is_function)
    };
    assert_eq!((sum(Class::Invlpg, "protect"), sum(Class::Invlpg, "getppid")), (64, 0));
    // Each split of a mapping locks.
    assert!(sum(Class::Locked, "protect") > 64, "{}", sum(Class::Locked, "protect"));
    let text = bench.faultline(&["compare", "--full"]).expect(0).out;
    let row = text.lines().find(|line| line.starts_with("INVLPG in protect"));
    assert_eq!(row.and_then(|row| row.split_whitespace().last()), Some("64"), "{text}");
}
