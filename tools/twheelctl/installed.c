// SPDX-License-Identifier: GPL-2.0
/*
 * twheelctl check: the module that is installed for the running kernel
 */
#include <string.h>

#include <libkmod.h>

#include "check.h"

static void info_take(struct installed *installed, const char *key, const char *value)
{
	if (!strcmp(key, "version"))
		snprintf(installed->version, sizeof(installed->version), "%s", value);
	else if (!strcmp(key, "srcversion"))
		snprintf(installed->srcversion, sizeof(installed->srcversion), "%s", value);
	else if (!strcmp(key, "sig_id"))
		installed->is_signed = true;
}

static void module_look(struct installed *installed, const struct kmod_module *module)
{
	struct kmod_list *info = NULL, *entry;

	/* A built-in one has no file. */
	if (!kmod_module_get_path(module) || kmod_module_get_info(module, &info) < 0)
		return;
	installed->found = true;
	kmod_list_foreach(entry, info)
		info_take(installed, kmod_module_info_get_key(entry),
			  kmod_module_info_get_value(entry));
	kmod_module_info_free_list(info);
}

/* As modprobe finds it: by the index that depmod has made. */
void installed_look(struct installed *installed)
{
	struct kmod_ctx *context = kmod_new(NULL, NULL);
	struct kmod_list *list = NULL;
	struct kmod_module *module;

	*installed = (struct installed){};
	if (!context)
		return;
	/* That there is no index is nothing to be said on stderr. */
	kmod_set_log_priority(context, 0);
	if (!kmod_module_new_from_lookup(context, "twheel", &list) && list) {
		module = kmod_module_get_module(list);
		module_look(installed, module);
		kmod_module_unref(module);
		kmod_module_unref_list(list);
	}
	kmod_unref(context);
}
