// SPDX-License-Identifier: MIT
/*
 * addon.c - a table of timeouts in the event loop of Node
 *
 * JavaScript writes its changes into memory that both sides see: "head" has their number, and the
 * number of timeouts for which the loop has to stay.  They are made by one call of the library
 * before the loop sleeps, or when the memory is full.  What has expired is fetched when the
 * descriptor of the table is readable, and called one by one.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAPI_VERSION	8
#include <node_api.h>
#include <uv.h>

#include <twheel/table.h>

/* Changes that are made by one call, and numbers that are fetched by one. */
#define CHANGES	256
#define FETCHED	1024

/* In the head. */
enum { NR_CHANGES, NR_REFS, HEAD };

/* The memory that JavaScript sees. */
struct shared {
	double delay_ms[CHANGES];	/* from the call on; Infinity stops */
	uint32_t number[CHANGES];
	uint32_t head[HEAD];
	uint32_t expired[FETCHED];
};

struct wheel {
	napi_env env;
	struct twheel_table *table;
	struct shared *shared;
	napi_ref memory;		/* that it is in */
	napi_ref object;		/* in JavaScript, whose functions are called */
	napi_ref take, run;
	napi_async_context context;
	napi_async_cleanup_hook_handle cleanup;
	uv_prepare_t prepare;
	uv_poll_t poll;
	int nr_open;			/* handles of the loop */
	bool closed;
	bool referenced;		/* the loop stays for the poll handle */
	struct twheel_table_change changes[CHANGES];
};

/* ---- errors ----------------------------------------------------------------- */

/* Throws an error with a code, as those of Node have it. */
static void throw_errno(napi_env env, const char *what, int error)
{
	char message[128];

	snprintf(message, sizeof(message), "%s: %s", what, uv_strerror(error));
	napi_throw_error(env, uv_err_name(error), message);
}

/* The same in a function of the loop's, where nobody catches it: it is an uncaught exception. */
static void report_errno(struct wheel *w, const char *what, int error)
{
	napi_handle_scope handles;
	napi_callback_scope callback;
	napi_value thrown;

	napi_open_handle_scope(w->env, &handles);
	napi_open_callback_scope(w->env, NULL, w->context, &callback);
	throw_errno(w->env, what, error);
	napi_get_and_clear_last_exception(w->env, &thrown);
	napi_fatal_exception(w->env, thrown);
	napi_close_callback_scope(w->env, callback);
	napi_close_handle_scope(w->env, handles);
}

/* ---- changes ---------------------------------------------------------------- */

/* Rounded up: no timeout is early. */
static uint64_t nanoseconds(double ms)
{
	if (!(ms < INT64_MAX / 1e6 - 1))
		return TWHEEL_TABLE_NEVER;
	return ms > 0 ? (uint64_t)ceil(ms * 1e6) : 0;
}

/* Makes the changes that wait; returns 0, or the first error. */
static int flush(struct wheel *w)
{
	uint32_t nr = w->shared->head[NR_CHANGES], i;
	int ret;

	if (!nr)
		return 0;
	if (nr > CHANGES)
		nr = CHANGES;
	for (i = 0; i < nr; i++) {
		w->changes[i].number = w->shared->number[i];
		w->changes[i].deadline_ns = nanoseconds(w->shared->delay_ms[i]);
	}
	w->shared->head[NR_CHANGES] = 0;
	ret = twheel_table_apply(w->table, w->changes, nr, TWHEEL_TABLE_AFTER);
	if (ret < 0 || (uint32_t)ret == nr)
		return ret < 0 ? ret : 0;
	for (i = 0; w->changes[i].result >= 0;)
		i++;
	return w->changes[i].result;
}

/* The loop stays as long as a timeout wants it. */
static void set_reference(struct wheel *w, bool referenced)
{
	if (w->referenced == referenced)
		return;
	w->referenced = referenced;
	if (referenced)
		uv_ref((uv_handle_t *)&w->poll);
	else
		uv_unref((uv_handle_t *)&w->poll);
}

/* ---- in the loop ------------------------------------------------------------- */

static void before_sleep(uv_prepare_t *prepare)
{
	struct wheel *w = prepare->data;
	int ret = flush(w);

	set_reference(w, w->shared->head[NR_REFS]);
	if (ret)
		report_errno(w, "twheel_table_apply", ret);
}

static napi_value value_of(struct wheel *w, napi_ref reference)
{
	napi_value value = NULL;

	napi_get_reference_value(w->env, reference, &value);
	return value;
}

/*
 * Calls a function of the object's as the loop does: what promises and process.nextTick() have
 * left is done then.
 */
static void call(struct wheel *w, napi_ref function, uint32_t argument)
{
	napi_handle_scope scope;
	napi_value value;

	napi_open_handle_scope(w->env, &scope);
	napi_create_uint32(w->env, argument, &value);
	if (napi_make_callback(w->env, w->context, value_of(w, w->object), value_of(w, function), 1, &value,
			       NULL) == napi_pending_exception &&
	    napi_get_and_clear_last_exception(w->env, &value) == napi_ok)
		napi_fatal_exception(w->env, value);
	napi_close_handle_scope(w->env, scope);
}

/* What has expired is idle; from "take" on JavaScript may use the numbers again. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
	struct wheel *w = poll->data;
	int32_t nr, i;

	(void)status;
	(void)events;
	/* What was stopped is not fetched. */
	nr = flush(w);
	if (!nr)
		nr = twheel_table_expired(w->table, w->shared->expired, FETCHED, 0);
	if (nr < 0) {
		/* The descriptor stays readable. */
		uv_poll_stop(&w->poll);
		report_errno(w, "twheel_table_expired", nr);
	} else if (nr > 0) {
		call(w, w->take, (uint32_t)nr);
		for (i = 0; i < nr && !w->closed; i++)
			call(w, w->run, (uint32_t)i);
	}
}

/* ---- open and close ----------------------------------------------------------- */

static void delete_references(struct wheel *w)
{
	napi_delete_reference(w->env, w->memory);
	napi_delete_reference(w->env, w->object);
	napi_delete_reference(w->env, w->take);
	napi_delete_reference(w->env, w->run);
	napi_async_destroy(w->env, w->context);
}

/* The memory is used by the loop until its handles are closed. */
static void on_closed(uv_handle_t *handle)
{
	struct wheel *w = handle->data;

	if (--w->nr_open)
		return;
	twheel_table_close(w->table);
	delete_references(w);
	napi_remove_async_cleanup_hook(w->cleanup);
	free(w);
}

static void close_wheel(struct wheel *w)
{
	if (w->closed)
		return;
	w->closed = true;
	uv_close((uv_handle_t *)&w->prepare, on_closed);
	uv_close((uv_handle_t *)&w->poll, on_closed);
}

/* The thread ends: Node waits until its handles are closed. */
static void at_end(napi_async_cleanup_hook_handle handle, void *data)
{
	(void)handle;
	close_wheel(data);
}

/* Makes the typed array NAME of the object, of this part of the memory. */
static void give(napi_env env, napi_value object, const char *name, napi_typedarray_type type,
		 size_t nr, napi_value memory, size_t offset)
{
	napi_value array;

	napi_create_typedarray(env, type, nr, memory, offset, &array);
	napi_set_named_property(env, object, name, array);
}

static int open_handles(struct wheel *w)
{
	int fd = twheel_table_fd(w->table), ret;
	uv_loop_t *loop;

	if (fd < 0)
		return fd;
	napi_get_uv_event_loop(w->env, &loop);
	ret = uv_poll_init(loop, &w->poll, fd);
	if (ret)
		return ret;
	w->poll.data = w;
	uv_prepare_init(loop, &w->prepare);
	w->prepare.data = w;
	w->nr_open = 2;
	uv_poll_start(&w->poll, UV_READABLE, on_readable);
	uv_prepare_start(&w->prepare, before_sleep);
	uv_unref((uv_handle_t *)&w->poll);
	uv_unref((uv_handle_t *)&w->prepare);
	return 0;
}

static void reference(napi_env env, napi_value object, const char *name, napi_ref *to)
{
	napi_value value = object;

	if (name)
		napi_get_named_property(env, object, name, &value);
	napi_create_reference(env, value, 1, to);
}

/* The arguments of a function, and the wheel if the first one is that. */
static struct wheel *get_arguments(napi_env env, napi_callback_info info, size_t nr, napi_value *arguments)
{
	struct wheel *w = NULL;
	napi_valuetype type;

	napi_get_cb_info(env, info, &nr, arguments, NULL, NULL);
	napi_typeof(env, arguments[0], &type);
	if (type == napi_external)
		napi_get_value_external(env, arguments[0], (void **)&w);
	return w;
}

/*
 * open(object, size, tickNs, device): the native wheel.  The object gets the arrays, and has
 * the functions _take and _run.
 */
static napi_value js_open(napi_env env, napi_callback_info info)
{
	struct twheel_table_options options = { .size = sizeof(options) };
	napi_value arguments[4], memory, value;
	struct wheel *w = calloc(1, sizeof(*w));
	uint32_t size;
	int64_t tick_ns;
	bool device;
	int ret;

	get_arguments(env, info, 4, arguments);
	napi_get_value_uint32(env, arguments[1], &size);
	napi_get_value_int64(env, arguments[2], &tick_ns);
	napi_get_value_bool(env, arguments[3], &device);
	options.tick_ns = (uint64_t)tick_ns;
	options.backend = device ? TWHEEL_TABLE_DEVICE : TWHEEL_TABLE_PROCESS;
	ret = w ? twheel_table_open(&w->table, size, &options) : -ENOMEM;
	if (ret < 0) {
		free(w);
		throw_errno(env, "twheel_table_open", ret);
		return NULL;
	}
	w->env = env;
	ret = open_handles(w);
	if (ret < 0) {
		twheel_table_close(w->table);
		free(w);
		throw_errno(env, "twheel_table_fd", ret);
		return NULL;
	}
	napi_create_arraybuffer(env, sizeof(*w->shared), (void **)&w->shared, &memory);
	memset(w->shared, 0, sizeof(*w->shared));
	give(env, arguments[0], "_delays", napi_float64_array, CHANGES, memory, offsetof(struct shared, delay_ms));
	give(env, arguments[0], "_numbers", napi_uint32_array, CHANGES, memory, offsetof(struct shared, number));
	give(env, arguments[0], "_head", napi_uint32_array, HEAD, memory, offsetof(struct shared, head));
	give(env, arguments[0], "_expired", napi_uint32_array, FETCHED, memory, offsetof(struct shared, expired));
	reference(env, memory, NULL, &w->memory);
	reference(env, arguments[0], NULL, &w->object);
	reference(env, arguments[0], "_take", &w->take);
	reference(env, arguments[0], "_run", &w->run);
	napi_create_string_utf8(env, "twheel", NAPI_AUTO_LENGTH, &value);
	napi_async_init(env, arguments[0], value, &w->context);
	napi_add_async_cleanup_hook(env, at_end, w, &w->cleanup);
	napi_create_external(env, w, NULL, NULL, &value);
	return value;
}

/* flush(wheel): the changes are made now. */
static napi_value js_flush(napi_env env, napi_callback_info info)
{
	napi_value argument;
	int ret = flush(get_arguments(env, info, 1, &argument));

	if (ret)
		throw_errno(env, "twheel_table_apply", ret);
	return NULL;
}

/* ref(wheel): the loop stays from now on; it ceases to before it sleeps. */
static napi_value js_ref(napi_env env, napi_callback_info info)
{
	napi_value argument;

	set_reference(get_arguments(env, info, 1, &argument), true);
	return NULL;
}

static napi_value js_close(napi_env env, napi_callback_info info)
{
	napi_value argument;

	close_wheel(get_arguments(env, info, 1, &argument));
	return NULL;
}

/* fd(wheel): the descriptor of the table. */
static napi_value js_fd(napi_env env, napi_callback_info info)
{
	napi_value argument, value;

	napi_create_int32(env, twheel_table_fd(get_arguments(env, info, 1, &argument)->table), &value);
	return value;
}

static napi_value init(napi_env env, napi_value exports)
{
	static const struct {
		const char *name;
		napi_callback function;
	} functions[] = {
		{ "open", js_open }, { "flush", js_flush }, { "ref", js_ref }, { "close", js_close },
		{ "fd", js_fd },
	};
	napi_value value;
	size_t i;

	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		napi_create_function(env, functions[i].name, NAPI_AUTO_LENGTH, functions[i].function, NULL, &value);
		napi_set_named_property(env, exports, functions[i].name, value);
	}
	napi_create_uint32(env, CHANGES, &value);
	napi_set_named_property(env, exports, "CHANGES", value);
	return exports;
}

NAPI_MODULE(NODE_GYP_MODULE_NAME, init)
