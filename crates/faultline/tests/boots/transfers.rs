//! Lines of memory that CPUs take from each other, where their number follows from arithmetic.

use model::{Class, Place, Privilege};

use crate::common::{Bench, quoted};

/// Two threads on two CPUs add to one word, to two words of a line, to two words in the two lines of an aligned pair, and
/// to two words that are 128 bytes apart. Then they open one file.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct { long word[64]; } shared __attribute__((aligned(4096)));
static pthread_barrier_t begin, end;
static const int places[4][2] = { { 0, 0 }, { 0, 1 }, { 0, 8 }, { 0, 16 } };

static void phase(const char *name)
{
	char byte;

	dprintf(atoi(getenv("FAULTLINE_FD")), "phase %s\n", name);
	if (read(atoi(getenv("FAULTLINE_ACK_FD")), &byte, 1) != 1)
		exit(1);
}

static void *work(void *number)
{
	long cpu = (long)number;
	cpu_set_t own;

	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	sched_setaffinity(0, sizeof own, &own);
	for (int kind = 0; kind < 4; kind++) {
		long *word = &shared.word[places[kind][cpu]], left = 200000;

		pthread_barrier_wait(&begin);
		asm volatile("1: lock incq (%0)\n\tdec %1\n\tjnz 1b" : "+r"(word), "+r"(left) : : "memory");
		pthread_barrier_wait(&end);
	}
	pthread_barrier_wait(&begin);
	for (int i = 0; i < 300; i++)
		close(open("/proc/self/stat", O_RDONLY));
	pthread_barrier_wait(&end);
	return NULL;
}

int main(void)
{
	const char *names[] = { "one-word", "one-line", "one-pair", "apart", "open" };
	pthread_t threads[2];

	pthread_barrier_init(&begin, NULL, 3);
	pthread_barrier_init(&end, NULL, 3);
	for (long cpu = 0; cpu < 2; cpu++)
		pthread_create(&threads[cpu], NULL, work, (void *)cpu);
	for (int kind = 0; kind < 5; kind++) {
		phase(names[kind]);
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
	}
	phase("");
	dprintf(atoi(getenv("FAULTLINE_FD")), "sample Done 1\n");
	return 0;
}
"#;

const MANIFEST: &str = "name = \"lines\"\ndescription = \"two threads share lines\"\n\
                        command = [\"{program}\"]\nprogram = \"lines\"\n\
                        [[metrics]]\nname = \"Done\"\nunit = \"times\"\nbetter = \"higher\"\nmean = \"amean\"\n";

#[test]
fn cpus_take_a_line_once_a_turn() {
    let bench = Bench::new();
    bench.compile("lines", PROGRAM, &["-static", "-pthread"]);
    let manifest = bench.write("lines.toml", MANIFEST);
    bench
        .run(&format!(
            "name = \"lines\"\nmode = \"exact\"\nseeds = 1\nprofile = {{ transfers = true }}\n\
             [machine]\ncpus = 2\nmemory = \"512M\"\nnodes = 2\n[[variant]]\nkernel = \"6.12\"\n\
             [[workload]]\nmanifest = {}\nprogram = {}\n",
            quoted(&manifest),
            quoted(&bench.path("lines"))
        ))
        .expect(0);
    let boots = bench.boots();
    let sum = |class: Class, phase: &str, wanted: &dyn Fn(&Place) -> bool| {
        let profile = boots[0].profiles.iter().find(|it| it.phase == phase).unwrap();
        profile.costs.sum(class.name(), wanted) as f64
    };
    let program = |class: Class, phase: &str| {
        sum(class, phase, &|place| *place == Place::All(Privilege::User))
    };
    // A turn ends at the first branch after 1,000 instructions: 334 rounds of three. Ticks take a part of some turns.
    let turns = 2.0 * 200_000.0 / 334.0;
    for (phase, disjoint) in [("one-word", 0.0), ("one-line", 1.0)] {
        let all = program(Class::Transfer, phase);
        assert!((all / turns - 1.0).abs() < 0.05, "{phase}: {all}, not {turns}");
        assert!((program(Class::FalseSharing, phase) / all - disjoint).abs() < 0.05, "{phase}");
        assert!(program(Class::RemoteTransfer, phase) / all > 0.95, "{phase}");
    }
    for phase in ["one-word", "one-line", "one-pair", "apart"] {
        let (lines, pairs) = (program(Class::Transfer, phase), program(Class::PairTransfer, phase));
        if phase == "one-pair" {
            assert!((pairs / turns - 1.0).abs() < 0.05, "{phase}: {pairs}, not {turns}");
        } else {
            assert!(pairs < 50.0, "{phase}: {pairs}");
        }
        assert!(
            phase.starts_with("one-") && phase != "one-pair" || lines < 50.0,
            "{phase}: {lines}"
        );
    }
    // What functions and fields take adds up to what the kernel takes.
    let kernel = sum(Class::Transfer, "open", &|it| *it == Place::All(Privilege::Kernel));
    let functions = sum(Class::Transfer, "open", &|it| matches!(it, Place::Function { .. }));
    let fields = sum(Class::Transfer, "open", &|it| matches!(it, Place::Field { .. }));
    assert_eq!((functions, fields), (kernel, kernel));
    let named = |name: &str| {
        let is_named = |field: &str| match name {
            "" => !field.starts_with('['),
            name => field.starts_with(name),
        };
        sum(
            Class::Transfer,
            "open",
            &|it| matches!(it, Place::Field { field, .. } if is_named(field)),
        )
    };
    assert!(named("") / kernel > 0.9, "{} of {kernel}", named(""));
    assert!(named("[unknown]") / kernel < 0.02, "{}", named("[unknown]"));
    // Both open a file of one process, by the same name, and allocate what describes an open file.
    for field in ["files_struct.", "dentry.", "kmalloc+"] {
        assert!(named(field) > 0.0, "{field}");
    }
}
