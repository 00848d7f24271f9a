// SPDX-License-Identifier: 0BSD
#include <stdio.h>
#include <twheel.h>

struct conn {
	const char *name;
	struct twheel_timer idle;
};

static void on_idle(struct twheel *w, struct twheel_timer *t)
{
	struct conn *conn = twheel_container_of(t, struct conn, idle);

	(void)w;
	printf("%s is idle\n", conn->name);
}

int main(void)
{
	struct conn conn = { "a connection", TWHEEL_TIMER_INIT(on_idle) };
	struct twheel *w;

	if (twheel_open(&w, NULL) < 0)
		return 1;
	twheel_start(w, &conn.idle, TWHEEL_SEC / 10);	/* restarts it as well */
	return twheel_wait(w, TWHEEL_NEVER) != 1;
}
