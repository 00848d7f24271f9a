#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# make bench-native: measure nanoseconds on this machine's processor. The module's objects, as
# kbuild makes them, are linked into a process, see bench/native, beside the kernel's own timer_list
# and hrtimer. Needs x86-64.
#
# SIZES='1000 1000000'   how many timeouts are pending; VECTORS='256' elements a call
# BASE=commit            measure the module of this commit too, in turn with this one
# ROUNDS=3               each row is the least of the medians of so many rounds
# RECORD=1               write the rows of vectors of 256 to the record, bench/recorded-native.csv
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/build.sh"
. "$(dirname "$0")/lib/source.sh"

read -ra sizes <<<"${SIZES:-1000 100000 1000000}"
read -ra vectors <<<"${VECTORS:-256}"
rounds=${ROUNDS:-3}
native=$build/native
rows=$run/native.csv

# Kernel functions that become stubs which return 0.
nothing=(
	kvfree vfree __free_pages is_vmalloc_addr
	__rcu_read_lock __rcu_read_unlock synchronize_rcu rcu_barrier call_rcu call_rcu_hurry
	mutex_lock mutex_unlock mutex_lock_interruptible mutex_lock_killable
	__SCT__preempt_schedule __SCT__preempt_schedule_notrace __SCT__might_resched
	__local_bh_enable_ip cpus_read_lock __fentry__
	delayed_work_timer_fn queue_delayed_work_on mod_delayed_work_on
	cancel_delayed_work_sync cancel_work_sync kthread_cancel_work_sync kthread_flush_work
	__init_swait_queue_head __wake_up wake_up_nohz_cpu get_nohz_timer_target
	address_space_init_once from_kuid from_kuid_munged __put_user_ns __check_object_size
)

# These functions or data get the address of another one of the same kind.
aliases=(
	const_pcpu_hot=pcpu_hot _copy_to_user=_copy_from_user
	_raw_spin_lock_bh=_raw_spin_lock _raw_spin_lock_irq=_raw_spin_lock
	_raw_spin_unlock_bh=_raw_spin_unlock _raw_spin_unlock_irq=_raw_spin_unlock
	_raw_spin_unlock_irqrestore=_raw_spin_unlock
)

# Make a stub for each symbol that the linker misses: data, a function that returns 0, or one that
# prints its name.
link_native()
{
	local dir=$1 name objects
	local flags=(-no-pie -static -z noexecstack "${aliases[@]/#/-Wl,--defsym=}"
		'-Wl,--wrap=snprintf')

	gcc -O2 -mstackrealign -mincoming-stack-boundary=3 -fno-builtin -Wall -Wextra -Wno-unused-parameter \
		-Wno-builtin-declaration-mismatch -c "$top/bench/native/process.c" -o "$dir/process.o"
	gcc -c "$top/bench/native/process.S" -o "$dir/registers.o"
	objects=("$dir/process.o" "$dir/registers.o" "$dir/twheel.o")
	! gcc "${flags[@]}" -o "$dir/native" "${objects[@]}" 2>"$dir/missing.log" || return 0
	sed -n "s/.*undefined reference to \`\(.*\)'/\1/p" "$dir/missing.log" | sort -u |
		while read -r name; do
			case $name in
			*_ops | *_key | *_wq | *_mask | __this_module | tick_nohz_*)
				echo ".data; .balign 64; .globl $name; $name: .fill 512"
				;;
			__list_*_valid_or_report)
				echo ".text; .globl $name; $name: mov \$1, %eax; ret"
				;;
			*)
				if [[ " ${nothing[*]} " = *" $name "* ]]; then
					echo ".text; .globl $name; $name: xor %eax, %eax; ret"
					continue
				fi
				echo ".text; .globl $name; $name: lea 1f(%rip), %rdi"
				echo "jmp unimplemented; 1: .asciz \"$name\""
				;;
			esac
		done >"$dir/stubs.s"
	gcc -c "$dir/stubs.s" -o "$dir/stubs.o"
	gcc "${flags[@]}" -o "$dir/native" "${objects[@]}" "$dir/stubs.o"
}

# Copy the kernel's timers, whose initialisation is static there.
copy_timers()
{
	local dir=$1

	mkdir -p "$dir/timers"
	cp "$source_dir"/kernel/time/{*.h,timer.c,hrtimer.c} \
		"$source_dir"/lib/{rbtree,timerqueue,rhashtable}.c "$dir/timers"
	sed -i '/^[a-z_]*_initcall(/d' "$dir"/timers/*.c
	cat >>"$dir/timers/timer.c" <<-'C'
		void native_timers_init(void);
		void native_timers_init(void)
		{
			init_timer_cpu(0);
			timers_prepare_cpu(0);
			hrtimers_prepare_cpu(0);
			hrtimers_cpu_starting(0);
		}
	C
}

# build_native NAME COMMAND...: build from the sources that the command packs.
build_native()
{
	local dir=$native/$1
	shift

	rm -rf "$dir"
	mkdir -p "$dir"
	"$@" | tar -x -C "$dir"
	cp "$top"/bench/native/*.[ch] "$dir"
	rm "$dir/process.c"
	copy_timers "$dir"
	cat >>"$dir/Kbuild" <<-'KBUILD'
		twheel-y += workload.o kernel.o timers/timer.o timers/hrtimer.o timers/rbtree.o
		twheel-y += timers/timerqueue.o timers/rhashtable.o
		# The kernel removes these calls when it loads a module.
		ccflags-remove-y += $(CC_FLAGS_FTRACE)
		ccflags-y += -I$(src) -mfunction-return=keep -mindirect-branch=keep
	KBUILD
	quietly "$dir/build.log" make -C "$(kernel_headers 6.12)" M="$dir" \
		KBUILD_MODPOST_WARN=1 twheel.o
	quietly "$dir/link.log" link_native "$dir"
}

sources=(Kbuild dkms.conf include uapi engine twheel_chardev.c twheel_ioctl.c twheel_main.c
	twheel_stat.c twheel_wheel.c)

pack_tree()
{
	tar -c -C "$top" "${sources[@]}"
}

# measure NAME SIZE VECTOR
measure()
{
	local who arguments=()

	for who in twheel twheel-keyed twheel-mapped timer_list hrtimer; do
		arguments+=("$who" "$2" "$3")
	done
	"$native/$1/native" "${arguments[@]}" | sed "s/^/$1,/"
}

[ "$(uname -m)" = x86_64 ] || die "make bench-native measures x86-64 code, and this is $(uname -m)"
lock_cache
KERNELS=6.12 bash "$top/tools/vm/setup.sh" build
get_source
mkdir -p "$run"
variants=(this)
say "building the module into a process"
build_native this pack_tree
if [ -n "${BASE:-}" ]; then
	variants=(base this)
	build_native base git -C "$top" archive "$BASE" "${sources[@]}"
fi
: >"$rows"
for size in "${sizes[@]}"; do
	for vector in "${vectors[@]}"; do
		say "measuring $size timeouts, $vector a call"
		for ((round = 0; round < rounds; round++)); do
			for variant in "${variants[@]}"; do
				measure "$variant" "$size" "$vector" >>"$rows"
			done
		done
	done
done
# least FILE: print the least value of all rounds, a line each: WHO,WHAT,PENDING,A CALL,NS OF
# THIS[,NS OF BASE]
least()
{
	awk -F, '
	{
		key = $2 "," $3 "," $4 "," $5
		if (!(key in seen)) {
			seen[key] = 1
			keys[++nr] = key
		}
		if (!(($1, key) in ns) || $6 < ns[$1, key])
			ns[$1, key] = $6
	}
	END {
		for (i = 1; i <= nr; i++)
			print keys[i] "," ns["this", keys[i]] \
				(("base", keys[i]) in ns ? "," ns["base", keys[i]] : "")
	}' "$1"
}

least "$rows" | awk -F, '
NR == 1 {
	printf "%-24s %10s %6s %10s", "ns each", "pending", "a call", NF > 5 ? "base" : "this"
	print NF > 5 ? "       this  ratio" : ""
}
{
	printf "%-24s %10d %6d", $1 " " $2, $3, $4
	if (NF > 5)
		printf " %10.1f %10.1f  %.2f\n", $6, $5, $5 / $6
	else
		printf " %10.1f\n", $5
}'
say "all figures are in ${rows#"$top/"}"
if [ -n "${RECORD:-}" ]; then
	{
		echo "# processor: $(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
		echo "# kernel: $(cat "$cache/kernels/6.12/release")"
		echo "# compiler: $(gcc --version | head -n 1)"
		echo "# date: $(date -u +%F)"
		echo mode,peer,workload,n,metric,value
		least "$rows" | awk -F, '$4 == 256 { print "native," $1 "," $2 "," $3 ",cost," $5 }'
	} >"$top/bench/recorded-native.csv"
	say "the figures are in the record, bench/recorded-native.csv"
fi
