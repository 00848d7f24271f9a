// SPDX-License-Identifier: 0BSD
/* The wheel in a loop of sd-event, by the files that a program can copy. */
#include <err.h>
#include <string.h>

#include "loops.h"
#include "twheel-sd-event.h"

void loop_sd_event(struct twheel *w, const bool *done)
{
	sd_event *loop = NULL;
	sd_event_source *source;
	int ret = sd_event_new(&loop);

	if (ret >= 0)
		ret = twheel_sd_event_add(loop, &source, w);
	while (ret >= 0 && !*done)
		ret = sd_event_run(loop, UINT64_MAX);
	if (ret < 0)
		errx(1, "sd-event: %s", strerror(-ret));
	sd_event_source_disable_unref(source);
	sd_event_unref(loop);
}
