// SPDX-License-Identifier: MIT
/*
 * The native methods of twheel.netty.NativeTable: <twheel/table.h>, with Java's arrays.
 *
 * Arrays are copied from and to the heap.  That costs less than a nanosecond an element, and
 * holds up no garbage collector.
 */
#include <errno.h>
#include <jni.h>
#include <stdint.h>

#include <twheel/table.h>

#define METHOD(type, name)	JNIEXPORT type JNICALL Java_twheel_netty_NativeTable_##name

/* Changes and numbers that are copied at a time. */
#define CHUNK			512

static struct twheel_table *to_table(jlong table)
{
	return (struct twheel_table *)(intptr_t)table;
}

METHOD(jlong, open)(JNIEnv *env, jclass class, jint nr, jlong tick_ns)
{
	const struct twheel_table_options options = {
		.size = sizeof(options),
		.backend = TWHEEL_TABLE_PROCESS,
		.tick_ns = (uint64_t)tick_ns,
	};
	struct twheel_table *table;
	int32_t ret = twheel_table_open(&table, (uint32_t)nr, &options);

	(void)env;
	(void)class;
	return ret < 0 ? ret : (jlong)(intptr_t)table;
}

/* STOP of Java is -1, which is TWHEEL_TABLE_NEVER. */
METHOD(jint, apply)(JNIEnv *env, jclass class, jlong table, jintArray numbers, jlongArray delays_ns,
		    jintArray results, jint nr)
{
	struct twheel_table_change changes[CHUNK];
	jlong delay_ns[CHUNK];
	jint number[CHUNK], from, part, i;
	int32_t ret = 0;

	(void)class;
	for (from = 0; from < nr; from += part) {
		part = nr - from < CHUNK ? nr - from : CHUNK;
		(*env)->GetIntArrayRegion(env, numbers, from, part, number);
		(*env)->GetLongArrayRegion(env, delays_ns, from, part, delay_ns);
		for (i = 0; i < part; i++)
			changes[i] = (struct twheel_table_change){
				.number = (uint32_t)number[i],
				.deadline_ns = (uint64_t)delay_ns[i],
			};
		ret = twheel_table_apply(to_table(table), changes, (uint32_t)part,
					 TWHEEL_TABLE_AFTER);
		if (ret < 0)
			break;
		for (i = 0; i < part; i++)
			number[i] = changes[i].result;
		(*env)->SetIntArrayRegion(env, results, from, part, number);
	}
	return ret;
}

METHOD(jint, start)(JNIEnv *env, jclass class, jlong table, jint number, jlong delay_ns)
{
	(void)env;
	(void)class;
	return twheel_table_start_after(to_table(table), (uint32_t)number, (uint64_t)delay_ns);
}

METHOD(jint, expired)(JNIEnv *env, jclass class, jlong table, jintArray numbers)
{
	jint number[CHUNK], nr = (*env)->GetArrayLength(env, numbers);
	int32_t ret;

	(void)class;
	if (nr > CHUNK)
		nr = CHUNK;
	do {
		ret = twheel_table_expired(to_table(table), (uint32_t *)number, (uint32_t)nr,
					   TWHEEL_TABLE_NEVER);
	} while (ret == -EINTR);
	if (ret > 0)
		(*env)->SetIntArrayRegion(env, numbers, 0, ret, number);
	return ret;
}

METHOD(void, close)(JNIEnv *env, jclass class, jlong table)
{
	(void)env;
	(void)class;
	twheel_table_close(to_table(table));
}
