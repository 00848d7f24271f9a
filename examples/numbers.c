// SPDX-License-Identifier: 0BSD
/*
 * An allocator of numbers: objects have timeouts, and a number while their timeout pends.
 *
 * Two threads start and stop 10,000 timeouts, and a third one fetches those that expire.  Each
 * number comes back once.
 */
#include <err.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <twheel/table.h>

#define NUMBERS		10000U
#define NO_NUMBER	UINT32_MAX
#define MS		1000000ULL

struct timeout {
	uint32_t number;		/* NO_NUMBER if it does not pend */
	void (*expired)(struct timeout *t);
};

static struct twheel_table *table;
/* The lock guards the list below, and the number in each timeout. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct timeout *owner[NUMBERS];
static uint32_t unused[NUMBERS], nr_unused;

/* Called with the lock held.  If a thread has fetched the number, it finds no owner. */
static bool forget(struct timeout *t)
{
	uint32_t number = t->number;

	if (number == NO_NUMBER)
		return false;
	t->number = NO_NUMBER;
	owner[number] = NULL;
	/* If the number is idle, it was fetched, and timeouts_wait() gives it back. */
	if (twheel_table_stop(table, number) > TWHEEL_TABLE_IDLE)
		unused[nr_unused++] = number;
	return true;
}

/* Returns false if it does not pend: its function was called, or is about to be. */
static bool timeout_stop(struct timeout *t)
{
	bool stopped;

	pthread_mutex_lock(&lock);
	stopped = forget(t);
	pthread_mutex_unlock(&lock);
	return stopped;
}

/* If the timeout pends, it is moved.  Returns false if all numbers are taken. */
static bool timeout_start(struct timeout *t, uint64_t delay_ns)
{
	uint32_t number = NO_NUMBER;

	pthread_mutex_lock(&lock);
	forget(t);
	if (nr_unused) {
		number = unused[--nr_unused];
		if (twheel_table_start_after(table, number, delay_ns) < 0) {
			unused[nr_unused++] = number;
			number = NO_NUMBER;
		} else {
			owner[number] = t;
			t->number = number;
		}
	}
	pthread_mutex_unlock(&lock);
	return number != NO_NUMBER;
}

/* Sleeps for timeout_ns at most, and calls the functions of the timeouts that have expired. */
static int timeouts_wait(uint64_t timeout_ns)
{
	uint32_t numbers[256];
	struct timeout *t;
	int nr, i;

	nr = twheel_table_expired(table, numbers, 256, timeout_ns);
	for (i = 0; i < nr; i++) {
		pthread_mutex_lock(&lock);
		t = owner[numbers[i]];
		if (t) {
			t->number = NO_NUMBER;
			owner[numbers[i]] = NULL;
		}
		unused[nr_unused++] = numbers[i];
		pthread_mutex_unlock(&lock);
		if (t)
			t->expired(t);
	}
	return nr;
}

static uint32_t nr_expired;

static void count(struct timeout *t)
{
	(void)t;
	nr_expired++;
}

/* Starts timeouts of 0 to 3 ms, and stops half of them, of which some have expired. */
static void *start_and_stop(void *nr_stopped)
{
	const uint32_t nr = NUMBERS / 2;
	struct timeout *timeouts = calloc(nr, sizeof(*timeouts));
	uint32_t i;

	if (!timeouts)
		err(1, "calloc");
	for (i = 0; i < nr; i++) {
		timeouts[i] = (struct timeout){ NO_NUMBER, count };
		if (!timeout_start(&timeouts[i], i % 4 * MS))
			errx(1, "all numbers are taken");
		if (i % 2)
			*(uint32_t *)nr_stopped += timeout_stop(&timeouts[i / 2]);
	}
	return NULL;
}

int main(void)
{
	uint32_t stopped[2] = { 0, 0 }, i;
	pthread_t thread[2];
	int ret;

	ret = twheel_table_open(&table, NUMBERS, NULL);
	if (ret < 0)
		errx(1, "open: %s", strerror(-ret));
	while (nr_unused < NUMBERS) {
		unused[nr_unused] = nr_unused;
		nr_unused++;
	}
	for (i = 0; i < 2; i++)
		if (pthread_create(&thread[i], NULL, start_and_stop, &stopped[i]))
			errx(1, "pthread_create");
	/* A number that was fetched is given back before the next fetch. */
	while (timeouts_wait(100 * MS) > 0)
		;
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	while (timeouts_wait(100 * MS) > 0)
		;
	printf("%u stopped, %u expired, %u numbers are back\n", stopped[0] + stopped[1],
	       nr_expired, nr_unused);
	twheel_table_close(table);
	return stopped[0] + stopped[1] + nr_expired != NUMBERS || nr_unused != NUMBERS;
}
