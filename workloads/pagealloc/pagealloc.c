// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times the allocation and the freeing of pages, for the workload `pagealloc`.
 *
 * Whoever writes "ORDER BATCH TIMES" to /sys/module/pagealloc/parameters/run has so many batches of
 * blocks of that order allocated and freed, one batch after the other, by its own process. Read, the
 * file gives "BLOCKS ALLOC FREE": how many blocks were allocated and freed, the nanoseconds that the
 * allocations took, and those of freeing.
 *
 * The clock is read three times a batch; a block takes as long as the loop around it.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

/* The largest batch, and the largest order that every kernel has. */
#define MAX_BATCH 16384U
#define MAX_BLOCK_ORDER 10U

/*
 * As the kernel allocates for itself, but where memory is short a batch fails rather than that
 * something is killed.
 */
#define GFP_BATCH (GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

static struct page **blocks;
static u64 done, alloc_ns, free_ns;

/*
 * One batch. What could be allocated is freed in any case. Preemption stays on: an allocation may
 * sleep.
 */
static int run_batch(unsigned int order, unsigned int batch)
{
	u64 begin, between, end;
	unsigned int count, i;

	begin = ktime_get_ns();
	for (count = 0; count < batch; count++) {
		blocks[count] = alloc_pages(GFP_BATCH, order);
		if (!blocks[count])
			break;
	}
	between = ktime_get_ns();
	for (i = 0; i < count; i++)
		__free_pages(blocks[i], order);
	end = ktime_get_ns();

	done += count;
	alloc_ns += between - begin;
	free_ns += end - between;
	return count == batch ? 0 : -ENOMEM;
}

/* The kernel holds a lock of this module's parameters meanwhile. */
static int run(const char *text, const struct kernel_param *parameter)
{
	unsigned int order, batch, times;
	int error = 0;

	if (sscanf(text, "%u %u %u", &order, &batch, &times) != 3)
		return -EINVAL;
	if (order > MAX_BLOCK_ORDER || batch < 1 || batch > MAX_BATCH)
		return -EINVAL;
	if (!blocks)
		return -ENODEV;

	done = alloc_ns = free_ns = 0;
	while (times-- && !error) {
		error = run_batch(order, batch);
		if (fatal_signal_pending(current))
			error = -EINTR;
		cond_resched();
	}
	return error;
}

static int result(char *text, const struct kernel_param *parameter)
{
	return scnprintf(text, PAGE_SIZE, "%llu %llu %llu\n", done, alloc_ns, free_ns);
}

static const struct kernel_param_ops run_ops = { .set = run, .get = result };
module_param_cb(run, &run_ops, NULL, 0600);
MODULE_PARM_DESC(run, "ORDER BATCH TIMES to be timed; read, BLOCKS ALLOC FREE in nanoseconds");

static int __init pagealloc_init(void)
{
	blocks = kvmalloc_array(MAX_BATCH, sizeof(*blocks), GFP_KERNEL);
	return blocks ? 0 : -ENOMEM;
}

static void __exit pagealloc_exit(void)
{
	kvfree(blocks);
}

module_init(pagealloc_init);
module_exit(pagealloc_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Times the allocation and the freeing of pages");
