#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# setup.sh demo|shell|languages|test-bindings|test|check|arm64|build|fuzz|model|bench: fetch what
# the make target of that name needs; `build' is for targets that build a kernel. Each step
# leaves a file when it is complete. So an interrupted set-up continues where it stopped, and a
# complete one takes no time.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/apt.sh"
. "$(dirname "$0")/lib/newer.sh"
. "$(dirname "$0")/lib/source.sh"
. "$(dirname "$0")/lib/cross.sh"
. "$(dirname "$0")/lib/arm64.sh"
. "$(dirname "$0")/lib/udev.sh"

purpose=$1

case $top in
*[[:space:]]*) die "kbuild cannot work in a path with blanks: $top" ;;
esac
expect_debian "$purpose"
mkdir -p "$cache"

# package, and its purpose. The kernel's own tools (modpost, objtool, ...) are binaries in
# linux-kbuild, and need libelf1 and libssl3; kbuild runs pahole. If a package has another name in
# another Debian, both names are given: apt finds the right one by the first.
tools_demo='
gcc              builds the test programs
gcc-12           is the compiler of the Debian kernels and their modules
libc6-dev        has the headers and the static C library
libelf1|libelf1t64  is used by the build tools of the kernel
libssl3|libssl3t64  is used by the build tools of the kernel
pahole           adds type information (BTF) to the module
kmod             has modinfo and depmod
cpio             packs the guest
qemu-system-x86  is the virtual machine
'
# Do not install gcc-multilib itself: it conflicts with compilers for other machines.
tools_shell="
gcc-$(. /etc/os-release && [ "${VERSION_ID:-}" != 13 ] && echo 12 || echo 14)-multilib  compiles a test program for 32 bits
liburing-dev     drives io_uring in another
libjansson-dev   writes what twheelctl shows as JSON
xz-utils         unpacks the kernel source, for its test harness
"
tools_test='
g++              compiles the uapi header as C++
clang            builds the module a second time
sparse           checks the annotations of the module
dkms             is tested with the module
musl-tools       has another C library for libtwheel
pkgconf|pkg-config  tells programs where libtwheel is
systemtap-sdt-dev  has what makes the probes of libtwheel
bpftrace         runs the script that tells who is late,
linux-perf       shows tracepoints,
trace-cmd        as does this
'
tools_check='
coccinelle       runs the rules that the kernel has for it,
libpython3-dev   some of which are in Python
shellcheck       reads the shell scripts
codespell        reads everything else
python3-sphinx   makes pages of the documents
mandoc           reads the man pages
rpm              reads twheel.spec
perl             runs checkpatch and kernel-doc
spin             searches what a machine that reorders may do
qemu-user        runs programs of a big-endian machine
'
tools_fuzz='
clang            has libFuzzer,
libclang-rt-dev  and its runtime
'
tools_model='
gcc              compiles what spin makes
libc6-dev        has the headers for that
spin             proves the model of the states
'
tools_bench='
libev-dev        is a peer
libuv1-dev       is a peer
libevent-dev     is a peer
liburing-dev     drives a peer, io_uring
libbpf-dev       drives a peer, the timers of BPF,
clang            which are a program
gnuplot-nox      draws the plots
'
tools_build='
bc               is used where a kernel is built
bison            is used where a kernel is built
flex             is used where a kernel is built
libelf-dev       is used where a kernel is built
'

# installed NAME|NAME...: is one of these packages installed?
installed()
{
	local package status

	for package in ${1//|/ }; do
		status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
		[ "$status" != installed ] || return 0
	done
	return 1
}

install_tools()
{
	local list=$tools_demo package why missing=()

	[[ $purpose = @(demo|languages|test-bindings) ]] || list+=$tools_shell
	[[ $purpose != @(test|check) ]] || list+=$tools_test
	[ "$purpose" != check ] || list+=$tools_check
	[ "$purpose" != arm64 ] || list+=$tools_arm64
	[[ $purpose != @(build|fuzz) ]] || list+=$tools_build
	[ "$purpose" != fuzz ] || list+=$tools_fuzz
	[ "$purpose" != bench ] || list=$tools_demo$tools_bench
	[ "$purpose" != model ] || list=$tools_model
	while read -r package why; do
		[ -n "$package" ] || continue
		! installed "$package" || continue
		package=${package%%|*}
		[ ${#missing[@]} -gt 0 ] || say "missing from this system:"
		printf '     %-16s %s\n' "$package" "$why" >&2
		missing+=("$package")
	done <<<"$list"
	[ ${#missing[@]} -eq 0 ] || host_apt_install "${missing[@]}"
}

# get_kernel SERIES: fetch or build a kernel.
get_kernel()
{
	local series=$1 bzimage=arch/x86/boot/bzImage

	case $series in
	*-uml)
		build_kernel "$series" um linux uml.config ;;
	*-umldebug)
		build_kernel "$series" um linux uml.config umldebug.config ;;
	*-debug | *-race)
		build_kernel "$series" x86_64 $bzimage guest.config "${series#*-}.config" ;;
	*-arm64*)
		with_arm64 get_debian_kernel "$series" ;;
	*)
		get_debian_kernel "$series" ;;
	esac
}

# Unpack the packages of a kernel, without installing them.
get_debian_kernel()
{
	local series=$1 dir=$cache/kernels/$1 tmp

	if is_newer "$series"; then
		get_newer_tools
	fi
	[ -e "$dir/complete" ] && return
	mkdir -p "$dir"
	if is_newer "$series"; then
		use_suite $newer
	fi
	get_packages "$dir/packages" resolve_kernel "$series"
	say "unpacking the Debian kernel $(cat "$dir/packages.release")"
	tmp=$dir/root.tmp
	rm -rf "$tmp" "$dir/root"
	mkdir -p "$tmp"
	while read -r deb; do
		case $deb in
		*/linux-image-*) unpack "$deb" "$tmp" ./boot ;;
		*) unpack "$deb" "$tmp" ;;
		esac
	done < <(deb_files "$dir/packages")
	# The headers' Makefile has the absolute path /usr/src; make it relative.
	# shellcheck disable=SC2016 # the text is for make
	sed -i 's|^include /usr/src/|include $(dir $(lastword $(MAKEFILE_LIST)))../|
		s|^KBUILD_OUTPUT=/.*|KBUILD_OUTPUT := $(realpath $(dir $(lastword $(MAKEFILE_LIST))))|' \
		"$tmp/usr/src/linux-headers-$(cat "$dir/packages.release")/Makefile"
	if is_newer "$series"; then
		use_newer_tools "$tmp"
	fi
	mv "$tmp" "$dir/root"
	cp "$dir/packages.release" "$dir/release"
	find "$dir/root" -name 'vmlinuz*' -exec mv {} "$dir/vmlinuz" \;
	touch "$dir/complete"
	drop_packages "$dir/packages"
	use_suite bookworm
}

# Print the packages of a kernel. 6.12-rt is the PREEMPT_RT kernel of series 6.12.
resolve_kernel()
{
	local series flavour=amd64 image release

	[[ $1 != *-arm64* ]] || flavour=arm64${1#*-arm64}
	series=${1%-"$flavour"}
	if [ "$suite" = bookworm ]; then
		# The default kernel of a Debian release has no package with the series in its
		# name.
		image=$( { depends "linux-image-$series-$flavour"; depends "linux-image-$flavour"; } |
			grep -m 1 "^linux-image-${series%-rt}\\.") || true
	else
		image=$(newer_image "$series")
	fi
	[ -n "$image" ] || { say "Debian ${suite} has no kernel $series"; return 1; }
	release=${image#linux-*-}
	echo "$release" >"$cache/kernels/$1/packages.release"
	echo "$image"
	echo "linux-headers-$release"
	depends "linux-headers-$release" |
		grep -E '^linux-(headers-.*-common(-rt)?|kbuild-[^ ]*)$'
}

# Unpack busybox: if it were installed, the package would replace the system's.
get_busybox()
{
	local dir=$cache/busybox tmp=$cache/busybox.tmp

	[ -e "$dir" ] && return
	get_packages "$cache/busybox.packages" echo busybox-static
	rm -rf "$tmp"
	unpack "$(deb_files "$cache/busybox.packages")" "$tmp"
	mv "$tmp" "$dir"
	drop_packages "$cache/busybox.packages"
}

# Get the event loops for examples/loops. Unpack them: if they were installed, those of sd-event
# would replace the system's init by another version. If there is no network, print a message and
# continue.
get_loops()
{
	local dir=$cache/loops tmp=$cache/loops.tmp deb

	# Older versions put some of the libraries into another folder.
	[ -L "$dir/lib" ] && return
	(get_packages "$cache/loops.packages" printf '%s\n' libuv1-dev libuv1 libev-dev libev4 \
		libevent-dev libevent-core-2.1-7 libglib2.0-dev libglib2.0-0 libpcre2-8-0 \
		libsystemd-dev libsystemd0 libcap2 libgcrypt20 libgpg-error0 liblz4-1 \
		liblzma5 libzstd1) || {
		say "examples/loops is built with the loops that this system has"
		return 0
	}
	rm -rf "$tmp" "$dir"
	while read -r deb; do
		unpack "$deb" "$tmp"
	done < <(deb_files "$cache/loops.packages")
	mv "$tmp" "$dir"
	drop_packages "$cache/loops.packages"
}

# Get SQLite for examples/jobs. If there is no network, continue without it.
get_jobs()
{
	local dir=$cache/jobs tmp=$cache/jobs.tmp deb

	[ -e "$dir" ] && return
	(get_packages "$cache/jobs.packages" printf '%s\n' libsqlite3-dev libsqlite3-0 \
		redis-server redis-tools libatomic1 libjemalloc2 liblzf1 libssl3 libsystemd0 \
		libcap2 libgcrypt20 libgpg-error0 liblz4-1 liblzma5 libzstd1) || {
		say "examples/jobs is built with the SQLite that this system has"
		return 0
	}
	rm -rf "$tmp"
	while read -r deb; do
		unpack "$deb" "$tmp"
	done < <(deb_files "$cache/jobs.packages")
	mv "$tmp" "$dir"
	drop_packages "$cache/jobs.packages"
}

# get_python NAME USE PACKAGE...: unpack a Python of Debian 12 with these packages into
# .cache/NAME. If there is no network, continue and say that USE is not run.
get_python()
{
	local dir=$cache/$1 packages=$cache/$1.packages tmp=$cache/$1.tmp use=$2 deb
	shift 2

	[ -e "$dir" ] && return
	(get_packages "$packages" printf '%s\n' "$@" python3.11-minimal libpython3.11-minimal \
		libc6 libexpat1 zlib1g) || {
		say "$use is not run"
		return 0
	}
	rm -rf "$tmp"
	while read -r deb; do
		unpack "$deb" "$tmp" --exclude='./usr/share' --exclude='*/gconv/*' --exclude='*.a'
	done < <(deb_files "$packages")
	ln -s python3.11 "$tmp/usr/bin/python3"
	mv "$tmp" "$dir"
	drop_packages "$packages"
}

# Get bindgen, which a test runs on libtwheel's headers, with the clang of this system. Unpack it.
# If there is no network, continue without it.
get_bindgen()
{
	local dir=$cache/bindgen tmp=$cache/bindgen.tmp

	[ -e "$dir" ] && return
	(. /etc/os-release
	[ "${VERSION_ID:-}" != 13 ] || use_suite trixie
	get_packages "$cache/bindgen.packages" echo bindgen) || {
		say "the test of bindings to libtwheel does without bindgen"
		return 0
	}
	rm -rf "$tmp"
	unpack "$(deb_files "$cache/bindgen.packages")" "$tmp"
	mv "$tmp" "$dir"
	drop_packages "$cache/bindgen.packages"
}

install_tools
[ "$purpose" != model ] || exit 0
[ "$purpose" = arm64 ] || get_busybox
[ "$purpose" != arm64 ] || get_arm64_files
for series in "${kernels[@]}"; do
	get_kernel "$series"
done
[[ $purpose = @(demo|bench|languages|test-bindings) ]] || get_kselftest
[ "$purpose" != check ] || get_cross s390x
[ "$purpose" != test ] || get_loops
[ "$purpose" != test ] || get_jobs
[[ $purpose != @(test|check) ]] || get_newer_tools
# Debian's smallest package of Python is enough for the example in the guest.
[[ $purpose != @(test|languages) ]] || get_python python "the example in Python"
# The binding needs this Python here and in the guest, with the packages that build it.
[[ $purpose != test-bindings ]] || get_python python-cffi "the binding for Python" \
	libpython3.11-stdlib libpython3.11-dev libffi8 python3-cffi python3-cffi-backend \
	python3-pycparser python3-ply python3-setuptools python3-pkg-resources \
	python3-distutils python3-lib2to3
if [ "$purpose" = test ]; then
	get_bindgen
	get_udev bookworm
	get_udev trixie
fi
