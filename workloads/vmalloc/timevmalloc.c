// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times vmalloc() and vfree(), for the workload `vmalloc`.
 *
 * Whoever writes "TEST PAGES COUNT SEED" to /sys/module/timevmalloc/parameters/run has so many areas allocated
 * and freed by its own process. Read, the file gives "AREAS NANOSECONDS". The tests:
 *
 *   0  each area is allocated and freed before the next one
 *   1  the same with areas of 1 to PAGES pages, at random
 *   2  all areas are allocated, then all are freed
 *   3  like 0 while other areas are there, between which there are holes for one area each
 *   4  like 0, with huge pages for areas that are large enough (vmalloc_huge(), Linux 5.18)
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#define MAX_AREAS 100000U
#define MAX_PAGES 65536U

enum { FIX_SIZE, RANDOM_SIZE, LONG_BUSY_LIST, FULL_FIT, HUGE_FIX_SIZE, TESTS };

static void **areas;
static u64 done, spent_ns;

/* SplitMix64 (Steele, Lea and Flood, OOPSLA 2014). */
static u64 next_random(u64 *state)
{
	u64 mixed = *state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
	return mixed ^ (mixed >> 31);
}

static int rest(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

/* Allocates so many areas, writes to each, and keeps them. */
static int hold(unsigned int count, unsigned long bytes, unsigned int step)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < count && !error; i += step) {
		if (areas[i])
			continue;
		areas[i] = vmalloc(bytes);
		if (!areas[i])
			return -ENOMEM;
		*(char *)areas[i] = 1;
		error = rest();
	}
	return error;
}

static void release(unsigned int first, unsigned int count, unsigned int step)
{
	unsigned int i;

	for (i = first; i < count; i += step) {
		vfree(areas[i]);
		areas[i] = NULL;
		cond_resched();
	}
}

static void *allocate(unsigned long bytes, bool huge)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 18, 0)
	if (huge)
		return vmalloc_huge(bytes, GFP_KERNEL);
#endif
	return vmalloc(bytes);
}

/* Each area is freed before the next one is allocated. */
static int one_by_one(unsigned int count, unsigned int pages, u64 *state, bool huge)
{
	unsigned int i;
	int error = 0;

	for (i = 0; i < count && !error; i++) {
		unsigned long bytes = pages;
		char *area;

		if (state)
			bytes = 1 + next_random(state) % pages;
		area = allocate(bytes << PAGE_SHIFT, huge);
		if (!area)
			return -ENOMEM;
		*area = 1;
		vfree(area);
		done++;
		error = rest();
	}
	return error;
}

static int run_test(unsigned int test, unsigned int pages, unsigned int count, u64 seed)
{
	unsigned long bytes = (unsigned long)pages << PAGE_SHIFT;
	int error = 0;
	u64 begin;

	if (test == FULL_FIT) {
		error = hold(count, bytes, 1);
		if (!error)
			release(1, count, 2);
	}
	begin = ktime_get_ns();
	switch (test) {
	case FIX_SIZE:
		error = one_by_one(count, pages, NULL, false);
		break;
	case RANDOM_SIZE:
		error = one_by_one(count, pages, &seed, false);
		break;
	case LONG_BUSY_LIST:
		error = hold(count, bytes, 1);
		release(0, count, 1);
		done = count;
		break;
	case FULL_FIT:
		if (!error)
			error = one_by_one(count, pages, NULL, false);
		break;
	case HUGE_FIX_SIZE:
		error = one_by_one(count, pages, NULL, true);
		break;
	}
	spent_ns = ktime_get_ns() - begin;
	release(0, count, 1);
	return error;
}

/* The kernel holds a lock of this module's parameters meanwhile. */
static int run(const char *text, const struct kernel_param *parameter)
{
	unsigned int test, pages, count;
	u64 seed;

	if (sscanf(text, "%u %u %u %llu", &test, &pages, &count, &seed) != 4)
		return -EINVAL;
	if (test >= TESTS || pages < 1 || pages > MAX_PAGES || count < 1 || count > MAX_AREAS)
		return -EINVAL;
	if (!areas)
		return -ENODEV;
	if (test == HUGE_FIX_SIZE && LINUX_VERSION_CODE < KERNEL_VERSION(5, 18, 0))
		return -EOPNOTSUPP;
	done = spent_ns = 0;
	return run_test(test, pages, count, seed);
}

static int result(char *text, const struct kernel_param *parameter)
{
	return scnprintf(text, PAGE_SIZE, "%llu %llu\n", done, spent_ns);
}

static const struct kernel_param_ops run_ops = { .set = run, .get = result };
module_param_cb(run, &run_ops, NULL, 0600);
MODULE_PARM_DESC(run, "TEST PAGES COUNT SEED to be timed; read, AREAS NANOSECONDS");

static int __init timevmalloc_init(void)
{
	areas = vzalloc(MAX_AREAS * sizeof(*areas));
	return areas ? 0 : -ENOMEM;
}

static void __exit timevmalloc_exit(void)
{
	vfree(areas);
}

module_init(timevmalloc_init);
module_exit(timevmalloc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Times vmalloc() and vfree()");
