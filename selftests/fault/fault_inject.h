/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes the kernel fail at a place that a test chooses.
 *
 * The kernel's fault injection has three sources of faults: failslab, fail_page_alloc and
 * fail_usercopy. Each has a filter of its own, a range of addresses of which one must be on
 * the stack; if a number n is written to a thread's fail-nth, the n-th fault that passes these
 * filters happens, in this thread, once. The number then shows how many faults were still to
 * pass. So a whole system call can be made to fail at one place after the other, and a range
 * of a single byte, a return address, is one call in the code of the module.
 *
 * The relocations of the module's file list the calls that leave the module. So a test knows which
 * of them it has not made fail. If the module allocates by a function of its own, the calls of that
 * function count: each has one purpose, and all attempts within the function can fail at once.
 */
#ifndef TWHEEL_FAULT_INJECT_H
#define TWHEEL_FAULT_INJECT_H

#include "twheel_outside.h"

#include <elf.h>

#define FI_DEBUGFS	"/sys/kernel/debug"

enum fi_kind {
	FI_SLAB,
	FI_PAGE,
	FI_COPY,
	FI_KINDS,
};

#define FI_ALLOCATIONS	(1U << FI_SLAB | 1U << FI_PAGE)
#define FI_COPIES	(1U << FI_COPY)
#define FI_ALL		(FI_ALLOCATIONS | FI_COPIES)

/* More faults than any call has. */
#define FI_NEVER	1000000000U

/* Code from the first byte up to the byte behind the last. */
struct fi_range {
	__u64 start;
	__u64 end;
};

static const char * const fi_names[FI_KINDS] = {
	[FI_SLAB] = "failslab",
	[FI_PAGE] = "fail_page_alloc",
	[FI_COPY] = "fail_usercopy",
};

/* These files stay open: they are written a hundred thousand times. */
static struct {
	int start[FI_KINDS];
	int end[FI_KINDS];
	int nth;
} fi;

/* ---- attributes ---------------------------------------------------------- */

static inline void fi_path(char *path, size_t size, enum fi_kind kind, const char *attribute)
{
	snprintf(path, size, FI_DEBUGFS "/%s/%s", fi_names[kind], attribute);
}

static inline int fi_set(enum fi_kind kind, const char *attribute, const char *value)
{
	char path[128];

	fi_path(path, sizeof(path), kind, attribute);
	return tw_write_text(path, value);
}

static inline int fi_open_attribute(enum fi_kind kind, const char *attribute)
{
	char path[128];
	int fd;

	fi_path(path, sizeof(path), kind, attribute);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return the number in a file; 0 if it cannot be read. */
static inline unsigned long long fi_number(const char *path)
{
	FILE *file = fopen(path, "re");
	char text[64] = "";

	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	return strtoull(text, NULL, 0);
}

static inline unsigned long long fi_get(enum fi_kind kind, const char *attribute)
{
	char path[128];

	fi_path(path, sizeof(path), kind, attribute);
	return fi_number(path);
}

static inline int fi_write_number(int fd, unsigned long long number)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%llu", number);

	return write(fd, text, len) == len ? 0 : -errno;
}

/*
 * If one of the return addresses on the stack is in the range, faults of these kinds count. Faults
 * of other kinds do not count.
 */
static inline int fi_filter(unsigned int kinds, struct fi_range range)
{
	int i, ret = 0;

	for (i = 0; i < FI_KINDS && !ret; i++) {
		bool on = kinds & 1U << i;

		/* Do not write 0: a range from 0 means that there is no filter. */
		ret = fi_write_number(fi.start[i], on ? range.start : 1);
		if (!ret)
			ret = fi_write_number(fi.end[i], on ? range.end : 1);
	}
	return ret;
}

/* ---- addresses of functions of the kernel -------------------------------- */

/* All symbols of /proc/kallsyms, not in the order of addresses. */
static struct {
	int nr;
	struct fi_symbol {
		__u64 address;
		char *name;
	} *symbol;
} fi_kernel;

/*
 * Call this before the first test, each of which is a child of ours: if the kernel is emulated,
 * reading tens of thousands of symbols takes seconds.
 */
static __attribute__((constructor)) void fi_read_kernel(void)
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], symbol[256];
	unsigned long long address;
	int room = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %*c %255s", &address, symbol) != 2)
			continue;
		if (fi_kernel.nr == room) {
			room += 1 << 14;
			fi_kernel.symbol = realloc(fi_kernel.symbol,
						   room * sizeof(*fi_kernel.symbol));
		}
		fi_kernel.symbol[fi_kernel.nr++] = (struct fi_symbol){
			.address = address, .name = strdup(symbol),
		};
	}
	if (file)
		fclose(file);
}

/*
 * Return the code from the first of these functions of the kernel to behind the last. If there are
 * none, start is 0.
 */
static inline struct fi_range fi_functions(const char * const *names, int nr)
{
	struct fi_range range = {};
	__u64 last = 0;
	int i, k;

	for (k = 0; k < fi_kernel.nr; k++)
		for (i = 0; i < nr; i++) {
			__u64 address = fi_kernel.symbol[k].address;

			if (strcmp(fi_kernel.symbol[k].name, names[i]))
				continue;
			if (!range.start || address < range.start)
				range.start = address;
			if (address > last)
				last = address;
		}
	for (k = 0; range.start && k < fi_kernel.nr; k++) {
		__u64 address = fi_kernel.symbol[k].address;

		if (address > last && (!range.end || address < range.end))
			range.end = address;
	}
	return range;
}

static inline struct fi_range fi_function(const char *name)
{
	return fi_functions(&name, 1);
}

/* If one of these addresses is on the stack, a fault does not count. */
static inline int fi_reject(struct fi_range range)
{
	char text[32];
	int i, ret = 0;

	for (i = 0; i < FI_KINDS && !ret; i++) {
		snprintf(text, sizeof(text), "%llu", range.start);
		ret = fi_set(i, "reject-start", text);
		snprintf(text, sizeof(text), "%llu", range.end);
		if (!ret)
			ret = fi_set(i, "reject-end", text);
	}
	return ret;
}

/*
 * Allocations of kmemleak for its own records do not count: they are not the module's, and if one
 * fails, kmemleak is blind from then on.
 */
static inline int fi_spare_kmemleak(void)
{
	static const char * const names[] = {
		"kmemleak_alloc", "kmemleak_alloc_percpu", "kmemleak_vmalloc",
		"kmemleak_scan_area", "kmemleak_no_scan", "kmemleak_free",
	};

	return fi_reject(fi_functions(names, ARRAY_SIZE(names)));
}

/*
 * Set everything to the state that this header needs. If the kernel lacks it or the user is not
 * root, return -errno, otherwise 0. Call this in the thread that is to fail.
 */
static inline int fi_open(void)
{
	static const struct {
		const char *attribute;
		const char *value;
		unsigned int kinds;
	} settings[] = {
		{ "probability", "0", FI_ALL },
		{ "interval", "1", FI_ALL },
		{ "times", "-1", FI_ALL },
		{ "space", "0", FI_ALL },
		/* Do not log forced faults: a stack in the log would fail the test. */
		{ "verbose", "0", FI_ALL },
		{ "task-filter", "Y", FI_ALL },
		{ "stacktrace-depth", "32", FI_ALL },
		{ "ignore-gfp-wait", "N", FI_ALLOCATIONS },
		{ "cache-filter", "N", 1U << FI_SLAB },
		{ "ignore-gfp-highmem", "N", 1U << FI_PAGE },
		{ "min-order", "0", 1U << FI_PAGE },
	};
	int i, j, ret = 0;

	for (i = 0; i < FI_KINDS; i++)
		for (j = 0; j < (int)ARRAY_SIZE(settings) && !ret; j++)
			if (settings[j].kinds & 1U << i)
				ret = fi_set(i, settings[j].attribute, settings[j].value);
	for (i = 0; i < FI_KINDS && ret >= 0; i++) {
		fi.start[i] = fi_open_attribute(i, "require-start");
		fi.end[i] = fi_open_attribute(i, "require-end");
		ret = fi.end[i];
	}
	if (ret < 0)
		return ret;
	fi.nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return fi.nth < 0 ? -errno : fi_filter(0, (struct fi_range){});
}

/* ---- one fault ----------------------------------------------------------- */

/* Let the n-th fault from now on happen, in this thread. */
static inline int fi_arm(unsigned int n)
{
	return fi_write_number(fi.nth, n);
}

/* From now on no fault happens. Return the rest of n: 0 if one has happened. */
static inline unsigned int fi_disarm(void)
{
	char text[32] = "";

	if (pread(fi.nth, text, sizeof(text) - 1, 0) < 0)
		return -1;
	if (fi_arm(0))
		return -1;
	return strtoul(text, NULL, 0);
}

/* ---- all faults at once -------------------------------------------------- */

/* Mark a thread as one of those that fail again and again, or not. */
static inline int fi_mark(const char *pid, bool on)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/make-it-fail", pid);
	return tw_write_text(path, on ? "1" : "0");
}

/*
 * From now on each fault that passes the filters happens, if the thread is marked.
 * fi_fail_no_more() ends this, and returns how many faults there were.
 */
static inline int fi_fail_always(void)
{
	char times[16];
	int i, ret = 0;

	snprintf(times, sizeof(times), "%u", FI_NEVER);
	for (i = 0; i < FI_KINDS && !ret; i++) {
		ret = fi_set(i, "times", times);
		if (!ret)
			ret = fi_set(i, "probability", "100");
	}
	return ret;
}

static inline unsigned int fi_fail_no_more(void)
{
	unsigned int nr = 0;
	int i;

	for (i = 0; i < FI_KINDS; i++) {
		fi_set(i, "probability", "0");
		nr += FI_NEVER - fi_get(i, "times");
		fi_set(i, "times", "-1");
	}
	return nr;
}

/* ---- calls in the code of the module ------------------------------------- */

/**
 * struct fi_site - a call out of the module, or of a function by which it allocates
 * @address: its return address
 * @callee: the function called
 * @function: the function of the source that it stands in, whatever was inlined where
 */
struct fi_site {
	__u64 address;
	const char *callee;
	const char *function;
};

/**
 * struct fi_module - the code of the module, without that which loads it
 * @code: all of it
 * @nr: calls
 * @site: in the order of addresses
 */
struct fi_module {
	struct fi_range code;
	int nr;
	struct fi_site site[2048];
};

struct fi_elf {
	const char *file;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;
	const char *names;
};

static inline const char *fi_map(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *map;

	if (fd < 0 || fstat(fd, &st))
		return NULL;
	map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

/*
 * Functions by which the module allocates: calls within these are no sites, calls of them are.
 * @function: a function of the module, or a part that the compiler has split off from it
 */
static inline const char *fi_allocator(const char *function)
{
	static const char * const names[] = {
		"twheel_page_get", "twheel_area_get", "twheel_area_alloc",
	};
	size_t i, len = strcspn(function, ".");

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (len == strlen(names[i]) && !strncmp(function, names[i], len))
			return names[i];
	return NULL;
}

/* The name of the call if it can fail; NULL otherwise. */
static inline const char *fi_callee_name(const char *callee)
{
	static const struct {
		const char *start;
		const char *name;
	} names[] = {
		{ "twheel_page_get", "pages" },
		{ "twheel_area_get", "pages" },
		{ "twheel_area_alloc", "pages" },
		{ "__vmalloc", "pages" },
		{ "vmalloc", "pages" },
		{ "vzalloc", "pages" },
		{ "__kvmalloc", "kvmalloc" },
		{ "kvmalloc", "kvmalloc" },
		{ "__kmalloc", "kmalloc" },
		{ "kmalloc", "kmalloc" },
		{ "kmem_cache_alloc", "kmem_cache_alloc" },
		{ "get_zeroed_page", "pages" },
		{ "__get_free_pages", "pages" },
		{ "get_free_pages", "pages" },
		{ "alloc_pages", "pages" },
		{ "__alloc_pages", "pages" },
		{ "dentry_open", "open file" },
		{ "_copy_from_user", "copy_from_user" },
		{ "_copy_to_user", "copy_to_user" },
		{ "_copy_to_iter", "copy_to_iter" },
		{ "_copy_from_iter", "copy_from_iter" },
		{ "should_fail_usercopy", "copied inline" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strncmp(callee, names[i].start, strlen(names[i].start)))
			return names[i].name;
	return NULL;
}

/* Calls of the compiler's instrumentation are not the module's. */
static inline bool fi_is_instrument(const char *callee)
{
	static const char * const starts[] = {
		"__sanitizer_", "__asan_", "__ubsan_", "__gcov_", "__kcsan_", "__tsan_",
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(callee, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static inline const char *fi_function_at(const struct fi_elf *elf, const Elf64_Shdr *symtab,
					 unsigned int section, __u64 offset)
{
	const Elf64_Sym *sym = (const void *)(elf->file + symtab->sh_offset);
	size_t i, nr = symtab->sh_size / sizeof(*sym);
	const char *strings = elf->file + elf->sections[symtab->sh_link].sh_offset;

	for (i = 0; i < nr; i++)
		if (ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC && sym[i].st_shndx == section &&
		    offset >= sym[i].st_value && offset < sym[i].st_value + sym[i].st_size)
			return strings + sym[i].st_name;
	return "?";
}

static inline void fi_add_site(struct fi_module *module, const struct fi_site *site)
{
	if (fi_is_instrument(site->callee) || fi_allocator(site->function))
		return;
	if (module->nr < (int)ARRAY_SIZE(module->site))
		module->site[module->nr++] = *site;
}

/* The calls in one section of code: relocations of `call' to another section or file. */
static inline void fi_read_calls(struct fi_module *module, const struct fi_elf *elf,
				 const Elf64_Shdr *rela_section, __u64 base)
{
	const Elf64_Rela *rela = (const void *)(elf->file + rela_section->sh_offset);
	const Elf64_Shdr *symtab = &elf->sections[rela_section->sh_link];
	const Elf64_Sym *sym = (const void *)(elf->file + symtab->sh_offset);
	const char *strings = elf->file + elf->sections[symtab->sh_link].sh_offset;
	const Elf64_Shdr *text = &elf->sections[rela_section->sh_info];
	size_t i, nr = rela_section->sh_size / sizeof(*rela);

	for (i = 0; i < nr; i++) {
		const Elf64_Sym *to = &sym[ELF64_R_SYM(rela[i].r_info)];
		__u64 offset = rela[i].r_offset;
		const __u8 *operand = (const void *)(elf->file + text->sh_offset + offset);

		const char *callee = strings + to->st_name;

		/* A call from one file of the module to another has a relocation, too. */
		if (to->st_shndx != SHN_UNDEF)
			callee = fi_allocator(callee);
		if (!callee || !offset || operand[-1] != 0xe8)
			continue;
		fi_add_site(module, &(struct fi_site){
			.address = base + offset + 4,
			.callee = callee,
			.function = fi_function_at(elf, symtab, rela_section->sh_info, offset),
		});
	}
}

/*
 * Calls of one function of the same section, which begins at @to. They have no relocation: the
 * assembler has written the distance into the code.
 */
static inline void fi_read_calls_to(struct fi_module *module, const struct fi_elf *elf,
				    const Elf64_Shdr *rela_section, __u64 base, __u64 to,
				    const char *callee)
{
	const Elf64_Shdr *symtab = &elf->sections[rela_section->sh_link];
	const Elf64_Shdr *text = &elf->sections[rela_section->sh_info];
	const char *code = elf->file + text->sh_offset;
	__u64 offset;

	for (offset = 0; offset + 5 <= text->sh_size; offset++) {
		__s32 distance;

		memcpy(&distance, code + offset + 1, sizeof(distance));
		/* If a distance is 0, a relocation fills it in. */
		if ((__u8)code[offset] != 0xe8 || !distance || offset + 5 + distance != to)
			continue;
		fi_add_site(module, &(struct fi_site){
			.address = base + offset + 5,
			.callee = callee,
			.function = fi_function_at(elf, symtab, rela_section->sh_info, offset),
		});
	}
}

/* Add the calls of the functions by which the module allocates. */
static inline void fi_read_own_calls(struct fi_module *module, const struct fi_elf *elf,
				     const Elf64_Shdr *rela_section, __u64 base)
{
	const Elf64_Shdr *symtab = &elf->sections[rela_section->sh_link];
	const Elf64_Sym *sym = (const void *)(elf->file + symtab->sh_offset);
	const char *strings = elf->file + elf->sections[symtab->sh_link].sh_offset;
	size_t i, nr = symtab->sh_size / sizeof(*sym);

	for (i = 0; i < nr; i++) {
		const char *callee = fi_allocator(strings + sym[i].st_name);

		if (callee && ELF64_ST_TYPE(sym[i].st_info) == STT_FUNC &&
		    sym[i].st_shndx == rela_section->sh_info)
			fi_read_calls_to(module, elf, rela_section, base, sym[i].st_value, callee);
	}
}

static inline int fi_compare_sites(const void *a, const void *b)
{
	const struct fi_site *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static inline __u64 fi_section_base(const char *section)
{
	char path[160];

	snprintf(path, sizeof(path), "/sys/module/twheel/sections/%s", section);
	return fi_number(path);
}

/*
 * The symbols of the file show which functions the compiler has left. The debug information shows
 * in which function of the source a call is; tools/vm/lib/build.sh makes a file of lines "SECTION
 * OFFSET FUNCTION..." from it: the offset that the call returns to, and the function before those
 * that it was inlined into. One of these may be a function by which the module allocates. Return 0,
 * or -errno.
 */
static inline int fi_name_functions(struct fi_module *module, const char *path)
{
	char name[256], line[1024], section[128], function[128], last[128] = "";
	unsigned long long offset;
	int at, end, named = 0;
	__u64 base = 0;
	FILE *file;

	snprintf(name, sizeof(name), "%.*s.calls", (int)strlen(path) - 3, path);
	file = fopen(name, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		struct fi_site *site, key;

		if (sscanf(line, "%127s %llx%n", section, &offset, &at) != 2)
			continue;
		if (strcmp(section, last))
			base = fi_section_base(section);
		memcpy(last, section, sizeof(last));
		key.address = base + offset;
		site = bsearch(&key, module->site, module->nr, sizeof(key), fi_compare_sites);
		if (!site)
			continue;
		for (; sscanf(line + at, "%127s%n", function, &end) == 1; at += end)
			if (!fi_allocator(function))
				break;
		site->function = strdup(function);
		named++;
	}
	fclose(file);
	return named == module->nr ? 0 : -ENODATA;
}

/*
 * Find the code of the loaded module and its calls. @path is the file it was loaded from. Return
 * 0, or -errno.
 */
static inline int fi_read_module(struct fi_module *module, const char *path)
{
	struct fi_elf elf = { .file = fi_map(path) };
	int i;

	if (!elf.file)
		return -errno;
	elf.header = (const void *)elf.file;
	elf.sections = (const void *)(elf.file + elf.header->e_shoff);
	elf.names = elf.file + elf.sections[elf.header->e_shstrndx].sh_offset;
	if (elf.header->e_machine != EM_X86_64)
		return -EOPNOTSUPP;

	memset(module, 0, sizeof(*module));
	for (i = 0; i < elf.header->e_shnum; i++) {
		const Elf64_Shdr *rela = &elf.sections[i];
		const Elf64_Shdr *text = &elf.sections[rela->sh_info];
		const char *name;
		__u64 base;

		/* In other sections, this value is not the number of a section. */
		if (rela->sh_type != SHT_RELA)
			continue;
		name = elf.names + text->sh_name;
		if (strncmp(name, ".text", 5))
			continue;
		base = fi_section_base(name);
		if (!base)
			continue;
		fi_read_calls(module, &elf, rela, base);
		fi_read_own_calls(module, &elf, rela, base);
		if (!module->code.start || base < module->code.start)
			module->code.start = base;
		if (base + text->sh_size > module->code.end)
			module->code.end = base + text->sh_size;
	}
	qsort(module->site, module->nr, sizeof(module->site[0]), fi_compare_sites);
	return module->nr ? fi_name_functions(module, path) : -ENOENT;
}

#endif /* TWHEEL_FAULT_INJECT_H */
