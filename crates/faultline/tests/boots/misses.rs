//! Misses in a model of caches and TLBs, where their number follows from arithmetic.

use model::{Boot, Class, Place, Privilege, Profile};

use crate::common::{Bench, quoted};

/// A program reads places in a round, a number of rounds: lines that fit into L1D, lines that do not, pages that exceed the
/// first TLB, pages that exceed both, and as many bytes in large pages. Each round of pages reads another line of each page.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SIZE = 16 << 20, LARGE = 2 << 20 };

static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	if (read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) != 1)
		exit(1);
}

static void rounds(const char *from, long number, long step, long times)
{
	while (times--) {
		const char *at = from;
		long left = number;

		asm volatile("1: mov (%0), %%al\n\tadd %2, %0\n\tdec %1\n\tjnz 1b"
			     : "+r"(at), "+r"(left) : "r"(step) : "rax", "memory");
	}
}

static char *memory(int advice)
{
	char *all = mmap(NULL, SIZE + LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	all += -(unsigned long)all % LARGE;
	if (madvise(all, SIZE, advice))
		exit(1);
	memset(all, 1, SIZE);
	return all;
}

int main(void)
{
	char *small = memory(MADV_NOHUGEPAGE), *large = memory(MADV_HUGEPAGE);

	phase("lines-256");
	rounds(small, 256, 64, 400);
	phase("lines-1024");
	rounds(small, 1024, 64, 400);
	phase("pages-128");
	rounds(small, 128, 4096 + 64, 1000);
	phase("pages-4000");
	rounds(small, 4000, 4096 + 64, 50);
	phase("large-4000");
	rounds(large, 4000, 4096 + 64, 50);
	phase("");
	dprintf(atoi(getenv("FAULTLINE_FD")), "sample Done 1\n");
	return 0;
}
"#;

const MANIFEST: &str = "name = \"rounds\"\ndescription = \"reads memory in rounds\"\n\
                        command = [\"{program}\"]\nprogram = \"rounds\"\n\
                        [[metrics]]\nname = \"Done\"\nunit = \"times\"\nbetter = \"higher\"\nmean = \"amean\"\n";

#[test]
fn rounds_over_memory_miss_what_does_not_fit() {
    let bench = Bench::new();
    bench.compile("rounds", PROGRAM, &["-static"]);
    let manifest = bench.write("rounds.toml", MANIFEST);
    let run = |name: &str, profile: &str| {
        bench
            .run(&format!(
                "name = \"{name}\"\nmode = \"exact\"\nseeds = 1\n{profile}\n\
                 [machine]\ncpus = 1\nmemory = \"768M\"\nnodes = 1\n[[variant]]\nkernel = \"6.12\"\n\
                 [[workload]]\nmanifest = {}\nprogram = {}\n",
                quoted(&manifest),
                quoted(&bench.path("rounds"))
            ))
            .expect(0);
        bench.boots().remove(0)
    };
    let plain = run("plain", "");
    let boot = run("misses", "profile = { memory_model = \"skylake-2s\" }");
    let totals = |boot: &Boot| boot.profiles.iter().map(Profile::totals).collect::<Vec<_>>();
    assert_eq!(totals(&boot), totals(&plain));
    let misses = |class: Class, phase: &str| {
        let profile = boot.profiles.iter().find(|it| it.phase == phase).unwrap();
        profile.costs.sum(class.name(), |place| *place == Place::All(Privilege::User)) as f64
    };
    let kinds = [Class::L1dMiss, Class::L2Miss, Class::DtlbMiss, Class::StlbMiss];
    // L1D has 512 lines, the TLBs have 64 and 1536 pages. The first round over pages misses L2 too. Eight entries of a page
    // table are in a line, so each round over 4,000 small pages loads 500 lines of page tables.
    for (phase, expected) in [
        ("lines-256", [0.0; 4]),
        ("lines-1024", [409_600.0, 0.0, 0.0, 0.0]),
        ("pages-128", [0.0, 0.0, 128_000.0, 0.0]),
        ("pages-4000", [225_000.0, 4_500.0, 200_000.0, 200_000.0]),
        ("large-4000", [200_000.0, 4_000.0, 0.0, 0.0]),
    ] {
        let found = kinds.map(|class| misses(class, phase));
        for (found, expected) in found.into_iter().zip(expected) {
            assert!(
                (found - expected).abs() <= 0.01 * expected + 1500.0,
                "{phase}: {found}, not {expected}"
            );
        }
    }
}
