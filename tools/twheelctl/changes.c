// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl late --watch: which findings are new, and which are over
 */
#include <stdlib.h>
#include <string.h>

#include "late.h"

/* Whether two findings have the same cause, and are about the same wheel or the same user. */
static bool is_same(const json_t *finding, const json_t *other)
{
	static const char * const keys[] = { "cause", "wheel", "uid" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *a = json_object_get(finding, keys[i]), *b = json_object_get(other, keys[i]);

		/* If neither finding has the key, both are NULL. */
		if (a != b && !json_equal(a, b))
			return false;
	}
	return true;
}

static bool is_among(const json_t *findings, const json_t *finding)
{
	json_t *other;
	size_t i;

	json_array_foreach(findings, i, other)
		if (is_same(finding, other))
			return true;
	return false;
}

static const char *text(const json_t *finding, const char *key)
{
	return json_string_value(json_object_get(finding, key));
}

static void line_print(const struct changes *changes, bool begins, const json_t *finding)
{
	char date[TEXT_SIZE];
	json_t *line;

	date_text(date, 0);
	if (changes->json) {
		line = json_pack("{s:s,s:s}", "time", date, "change", begins ? "begins" : "ends");
		json_object_update(line, (json_t *)finding);
		json_dumpf(line, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(line);
	} else if (begins) {
		printf("%s %s: %s: %s %s\n", date, text(finding, "status"),
		       text(finding, "cause"), text(finding, "says"), text(finding, "do"));
	} else {
		printf("%s over: %s: It said: %s\n", date, text(finding, "cause"),
		       text(finding, "says"));
	}
}

/*
 * Print a line for each finding that was not there the last time, and for each that is gone.
 * Findings that are no problem now do not count.  The findings of the report are consumed.
 */
void changes_print(struct changes *changes, struct report *report)
{
	json_t *present = json_array(), *finding;
	size_t i;

	json_array_foreach(report->findings, i, finding)
		if (strcmp(text(finding, "status"), "ok"))
			json_array_append(present, finding);
	json_array_foreach(changes->findings, i, finding)
		if (!is_among(present, finding))
			line_print(changes, false, finding);
	json_array_foreach(present, i, finding)
		if (!is_among(changes->findings, finding))
			line_print(changes, true, finding);
	/* A reader of a pipe gets the line at once.  If nobody reads, stop watching. */
	if (fflush(stdout))
		exit(UNKNOWN);
	json_decref(changes->findings);
	json_decref(report->findings);
	changes->findings = present;
}
