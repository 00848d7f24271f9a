# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the tests set and use what is not set and used here
# Sourced by tests in selftests/host, after common.sh: a stand-in for a kernel's headers, with
# which a module builds at once, and make in a copy of the tree with a DESTDIR. The test sets
# $work, the folder.

PATH=$PATH:/usr/sbin:/sbin
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' "$top/dkms.conf")
# dkms insists on being root. If there were a sign-file, dkms would make a key in /var/lib/dkms.
as_root=(env sign_file=/nonexistent)
[ "$(id -u)" = 0 ] || as_root+=(unshare --map-root-user)
# The library and twheelctl are installed, but not run: compile fast.
export CFLAGS=-O0
tree=$work/tree
root=$work/root
dkms=$root/var/lib/dkms/twheel

# stub_kernel FOLDER RELEASE: make headers of a kernel. Its modules have what dkms compares:
# version, and a sum of the sources. If the folder has a file `broken' or `broken_install', the
# build or modules_install fails. `compiler' records the compiler, and `signs' whether
# modules_install would sign, and its depmod.
stub_kernel()
{
	mkdir -p "$1/include/config" "$1/include/generated"
	# Debian 12 has such a name there.
	echo "${2%-*}.123" >"$1/include/config/kernel.release"
	echo "#define UTS_RELEASE \"$2\"" >"$1/include/generated/utsrelease.h"
	echo CONFIG_64BIT=y >"$1/.config"
	cat >"$1/Makefile" <<-'EOT'
	.RECIPEPREFIX := >
	release := $(shell cut -d '"' -f 2 include/generated/utsrelease.h)
	version := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(M)/dkms.conf)
	sum := $(shell cat $(M)/twheel_*.c $(M)/engine/*.[ch] | md5sum | cut -c 1-24)
	CONFIG_MODULE_SIG_ALL = y
	modules:
	> echo CC=$(CC) LD=$(LD) LLVM=$(LLVM) LLVM_IAS=$(LLVM_IAS) >compiler
	> $(if $(wildcard broken),false)
	> printf '.section .modinfo,"a"\n.asciz "%s"\n.asciz "%s"\n.asciz "%s"\n' \
		version=$(version) srcversion=$(sum) 'vermagic=$(release) SMP' | \
		gcc -c -x assembler -o $(M)/twheel.ko -
	modules_install:
	> echo CC=$(CC) LD=$(LD) LLVM=$(LLVM) LLVM_IAS=$(LLVM_IAS) >compiler.install
	> echo $(CONFIG_MODULE_SIG_ALL),$(cmd_depmod) >signs
	> $(if $(wildcard broken_install),false)
	> install -D -m 644 $(M)/twheel.ko \
		$(INSTALL_MOD_PATH)/lib/modules/$(release)/updates/twheel.ko
	EOT
}

# copy_tree FOLDER: copy all files that are built or installed.
copy_tree()
{
	mkdir -p "$1"
	(cd "$top" && cp -pr Kbuild Makefile dkms.conf twheel_*.c engine include uapi COPYING \
		LICENSES lib tools "$1/")
	rm -f "$1"/twheel.ko "$1"/lib/*.so* "$1"/lib/*.[oa]
}

# fresh_stage: make a copy of the tree, three kernels, and a staged root in which two of them are
# installed. The fourth, `narrow', is a 32-bit one.
fresh_stage()
{
	[ ! -e "$work" ] || chmod -R u+w "$work"
	rm -rf "$work"
	mkdir -p "$root/lib/modules"/{6.99.0-new,6.98.0-other,5.10.0-old}
	copy_tree "$tree"
	for kernel in 6.99.0-new 6.98.0-other 5.10.0-old; do
		stub_kernel "$work/${kernel#*-}" $kernel
	done
	ln -s "$work/other" "$root/lib/modules/6.98.0-other/build"
	ln -s "$work/new" "$root/lib/modules/6.99.0-new/build"
	stub_kernel "$work/narrow" 6.99.0-new
	sed -i d "$work/narrow/.config"
}

# twheel TARGET [KERNEL [VARIABLE...]]: call make in the copy of the tree, as for an image.
twheel()
{
	"${as_root[@]}" make -C "$tree" DESTDIR="$root" KDIR="$work/${2:-new}" "$1" "${@:3}"
}

# fails COMMAND...: succeed if the command fails. Its output is in $work/said.
fails()
{
	local status=0

	"$@" >"$work/said" 2>&1 || status=$?
	cat "$work/said"
	[ $status != 0 ]
}

# lacks PATTERN FILE: the file has no such line. In a case, `! grep' would not end the shell.
lacks()
{
	! grep -E "$1" "$2"
}

# modules [KERNEL]: print the installed modules, by their paths below the kernel's folder.
modules()
{
	local dir=$root/lib

	[ -d "$dir" ] || dir=$root/usr/lib
	(cd "$dir/modules/${1:-6.99.0-new}" && find . -name 'twheel.ko*' -printf '%P\n')
}

# sum_of MODULE: print the sum of the sources that it was built from.
sum_of()
{
	modinfo -F srcversion "$1"
}

sum_of_sources()
{
	cat "$tree"/twheel_*.c "$tree"/engine/*.[ch] | md5sum | cut -c 1-24
}

# of_sources SUM [KERNEL]: the kernel has one module, which was built from these sources.
of_sources()
{
	[ "$(modules "${2:-6.99.0-new}" | wc -l)" = 1 ]
	[ "$(sum_of "$root/lib/modules/${2:-6.99.0-new}/$(modules "${2:-6.99.0-new}")")" = "$1" ]
}

# Change the sources, but not the version.
change()
{
	echo '/* a change */' >>"$tree/twheel_main.c"
}

# new_version [VERSION]: change the sources and, if given, the version.
new_version()
{
	change
	[ $# = 0 ] || sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$1\"/" "$tree/dkms.conf"
}

# all_files FOLDER: list all files and sums of their contents.
all_files()
{
	(cd "$1" && find . -printf '%y %m %p %l\n' -type f -exec cksum {} + | sort)
}

nothing_is_left()
{
	! find "$root" -name '*twheel*' | grep -vE '/(dkms|src)$'
}

# in_dkms ACTION ARGUMENT...: call dkms with all its trees below $root.
in_dkms()
{
	mkdir -p "$root/var/lib/dkms"
	"${as_root[@]}" dkms "$@" --sourcetree "$root/usr/src" --dkmstree "$root/var/lib/dkms" \
		--installtree "$root/lib/modules" --no-depmod
}

# at_step NAME NUMBER DO: replace the NUMBERth start of the program NAME: "fail" exits with 1,
# "kill" kills the calling script.
at_step()
{
	local real

	rm -rf "${work:?}/bin"
	hash -r
	real=$(command -v "$1")
	mkdir -p "$work/bin"
	printf '%s\n' "$2" >"$work/steps"
	cat >"$work/bin/$1" <<-EOT
	#!/usr/bin/env bash
	left=\$((\$(<"$work/steps") - 1))
	echo \$left >"$work/steps"
	[ \$left = 0 ] || exec "$real" "\$@"
	[ $3 = fail ] || kill -KILL \$PPID
	exit 1
	EOT
	chmod +x "$work/bin/$1"
	export PATH="$work/bin:$PATH"
}

# Stop replacing. Fail if that step was never reached.
no_step()
{
	[ "$(<"$work/steps")" -le 0 ] || { echo "the step was not reached"; return 1; }
	rm -rf "${work:?}/bin"
	hash -r
}
