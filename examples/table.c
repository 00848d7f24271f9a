// SPDX-License-Identifier: 0BSD
/*
 * Timeouts by number: requests that get an answer in time, and requests that do not.
 *
 *	table			the table is in the process
 *	table --processes	the requests are made by a process that ends before they expire
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <twheel/table.h>

#define REQUESTS	10
#define TIMEOUT_NS	300000000ULL

/* All requests are made in one call. */
static int make_requests(struct twheel_table *table)
{
	struct twheel_table_change changes[REQUESTS];
	uint32_t i;

	for (i = 0; i < REQUESTS; i++)
		changes[i] = (struct twheel_table_change){ .number = i, .deadline_ns = TIMEOUT_NS };
	return twheel_table_apply(table, changes, REQUESTS, TWHEEL_TABLE_AFTER) != REQUESTS;
}

static int in_another_process(int (*make)(struct twheel_table *), struct twheel_table *table)
{
	pid_t pid = fork();
	int status;

	if (!pid)
		_exit(make(table));
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

int main(int argc, char **argv)
{
	const bool processes = argc > 1 && !strcmp(argv[1], "--processes");
	const struct twheel_table_options options = {
		.size = sizeof(options),
		.flags = processes ? TWHEEL_TABLE_PROCESSES : 0,
	};
	uint32_t numbers[REQUESTS], answered = 0, i;
	struct twheel_table *table;
	int nr, expired = 0;

	nr = twheel_table_open(&table, REQUESTS, &options);
	if (nr < 0) {
		fprintf(stderr, "table: open: %s\n", strerror(-nr));
		return 1;
	}
	if (processes ? in_another_process(make_requests, table) : make_requests(table)) {
		fprintf(stderr, "table: some requests have no timeout\n");
		return 1;
	}
	/* If the timeout has expired and was not fetched, the answer comes in time as well. */
	for (i = 0; i < REQUESTS; i += 2)
		answered += twheel_table_stop(table, i) > TWHEEL_TABLE_IDLE;
	while (answered + expired < REQUESTS) {
		nr = twheel_table_expired(table, numbers, REQUESTS, TWHEEL_TABLE_NEVER);
		for (i = 0; nr > 0 && i < (uint32_t)nr; i++)
			printf("request %u has expired\n", numbers[i]);
		if (nr <= 0) {
			fprintf(stderr, "table: %s\n", strerror(-nr));
			return 1;
		}
		expired += nr;
	}
	printf("%u requests got an answer, %d expired\n", answered, expired);
	twheel_table_close(table);
	return 0;
}
