// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl check: the library that programs get, if there is more than one
 *
 * ld.so takes the first one in its cache, and /usr/local/lib usually comes before the folders of
 * packages.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define LIBRARY	"libtwheel.so.1"

/* The PATH of users without root lacks the folder of ldconfig. */
#define LIST_CACHE	"PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null"

/* The name of the file itself has the version; the links to it may lack it. */
static const char *file_of(char file[PATH_MAX], const char *path)
{
	if (!realpath(path, file))
		snprintf(file, PATH_MAX, "%s", path);
	return file;
}

static bool same_version(const char *file, const char *other)
{
	return !strcmp(strrchr(file, '/'), strrchr(other, '/'));
}

/* Libraries of another kind, such as 32-bit ones, are for other programs. */
void libraries_check(struct report *report)
{
	char line[PATH_MAX + 128], kind[64], first_kind[64] = "";
	char path[PATH_MAX], file[PATH_MAX], first[PATH_MAX] = "";
	FILE *cache = popen(LIST_CACHE, "re");

	while (cache && fgets(line, sizeof(line), cache)) {
		if (sscanf(line, " " LIBRARY " (%63[^)]) => %4095s", kind, path) != 2 ||
		    *path != '/')
			continue;
		if (!*first) {
			snprintf(first_kind, sizeof(first_kind), "%s", kind);
			file_of(first, path);
		} else if (!strcmp(kind, first_kind) &&
			   !same_version(first, file_of(file, path))) {
			report_add(report, PROBLEM, "two-libraries", NULL,
				   "Remove the one that is not wanted: `make uninstall-lib' in its sources, with the PREFIX that it was installed with, or the package libtwheel1; then run ldconfig as root.",
				   "Programs get the library %s, which hides %s: two versions are installed.",
				   first, file);
			break;
		}
	}
	if (cache)
		pclose(cache);
}
