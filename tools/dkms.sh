# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # shared with install.sh
# Sourced by install.sh: installation by dkms.
#
# Read the state of dkms from its folders, as dkms does itself: its output is meant for people,
# and differs if something is broken. Below twheel/ there are
#	VERSION/source			a link to the sources
#	VERSION/KERNEL/ARCH/module	the module that was built
#	kernel-KERNEL-ARCH		a link to the KERNEL/ARCH that is installed
#	original_module			modules that were there before
# If sources are missing, a build was killed or a version is half removed, dkms-install repairs it
# and dkms-remove removes it.

dkms_tree=$root/var/lib/dkms/twheel
# outcome[KERNEL] is a sentence about the result. replaced[KERNEL] is set if the new module is
# installed.
declare -A outcome=() replaced=()

# run_dkms SOURCES TREE ARGUMENT...: without make's variables, since dkms builds for several
# kernels. If dkms installs, $install_tree is the folder.
run_dkms()
{
	local trees=(--sourcetree "$1" --dkmstree "$2")

	[ -z "$root" ] && [ -z "${install_tree:-}" ] ||
		trees+=(--installtree "${install_tree:-$modules}" --no-depmod)
	env -u CC -u LD -u LLVM -u LLVM_IAS -u KDIR -u DESTDIR -u TWHEEL_VERSION dkms "${@:3}" -m twheel "${trees[@]}"
}

the_dkms()
{
	run_dkms "$root/usr/src" "$root/var/lib/dkms" "$@"
}

dkms_versions()
{
	local dir

	for dir in "$dkms_tree"/*; do
		[[ -L $dir || ! -d $dir || ${dir##*/} = original_module ]] || printf '%s\n' "${dir##*/}"
	done
}

# dkms_kernels VERSION: print the kernels for which a build of the version has begun.
dkms_kernels()
{
	local dir name

	for dir in "$dkms_tree/$1"/*/*/; do
		name=${dir#"$dkms_tree/$1/"}
		name=${name%%/*}
		[[ ! -d $dir || $name = @(source|build) ]] || printf '%s\n' "$name"
	done
}

# Print "KERNEL LINK" for each kernel for which dkms has installed the module.
dkms_links()
{
	local link

	for link in "$dkms_tree"/kernel-*; do
		[ ! -L "$link" ] || [[ ! ${link##*/} =~ ^kernel-(.*)-[^-]*$ ]] ||
			printf '%s %s\n' "${BASH_REMATCH[1]}" "$link"
	done
}

# Print the kernels to build for: $release first, then all others for which dkms has a module or
# half of one.
kernels_to_build()
{
	local known

	echo "$release"
	{
		dkms_links | cut -d ' ' -f 1
		while IFS= read -r known; do dkms_kernels "$known"; done < <(dkms_versions)
	} | sort -uV | grep -vxF -- "$release" || true
}

kernel_dir()
{
	if [ "$1" = "$release" ]; then
		printf '%s\n' "$KDIR"
	elif [ -n "$root" ] && [ -e "$modules/$1/build" ]; then
		printf '%s\n' "$modules/$1/build"
	else
		printf '%s\n' "/lib/modules/$1/build"
	fi
}

# stays KERNEL: print a sentence about the module that this kernel keeps.
stays()
{
	local file

	file=$(installed_in "$1" | head -n 1)
	if [ -n "$file" ]; then
		printf '%s\n' "twheel $(modinfo -F version "$file") stays"
	else
		echo "there is no twheel"
	fi
}

# build_for KERNEL: build in a temporary tree, so that the installed module is not touched.
build_for()
{
	local log status=0 headers

	headers=$(kernel_dir "$1")
	if [ ! -e "$headers/Makefile" ]; then
		outcome[$1]="there are no kernel headers in $headers; $(stays "$1")"
		return 1
	fi
	echo "building twheel $version for $1; a slow machine takes some minutes"
	run_dkms "$work/usr/src" "$work/dkms" build -v "$version" -k "$1" \
		--kernelsourcedir "$headers" >"$work/log" 2>&1 || status=$?
	[ $status != 0 ] || return 0
	cat "$work/log" >&2
	find "$work/dkms/twheel/$version/build" "$work/dkms/twheel/$version/$1" -name make.log 2>/dev/null |
		while IFS= read -r log; do tail -n 30 -- "$log" >&2; done || true
	rm -rf -- "$work/dkms/twheel/$version"/{build,"$1"}
	outcome[$1]="it does not build"
	# dkms exits with 77 if BUILD_EXCLUSIVE excludes the kernel.
	[ $status != 77 ] || outcome[$1]="not for this kernel: twheel needs Linux 6.1 or later, 64-bit"
	outcome[$1]+="; $(stays "$1")"
	return 1
}

# Make the version known to dkms, with these sources.
register()
{
	local source=$dkms_tree/$version/source

	mkdir -p "$dkms_tree"
	if [ "$(readlink -- "$source")" != "$root/usr/src/twheel-$version" ]; then
		rm -rf -- "$source"
		the_dkms add -v "$version"
	fi
	rm -rf -- "$dkms_tree/$version/build"
}

# save KERNEL ARCH: copy the kernel's present modules and dkms' folders to $old.
save()
{
	local link=$dkms_tree/kernel-$1-$2 built=$dkms_tree/$version/$1/$2

	mkdir -p "$old/modules" &&
		{ [ ! -d "$modules/$1" ] || (cd -- "$modules/$1" &&
			find . ! -type d -name 'twheel.ko*' -exec cp -a --parents -t "$old/modules" {} +); } &&
		{ [ ! -L "$link" ] || cp -a -- "$link" "$old/link"; } &&
		{ [ ! -d "$built" ] || cp -a -- "$built" "$old/built"; }
}

# put_back KERNEL ARCH: restore the copies of save().
put_back()
{
	local link=$dkms_tree/kernel-$1-$2 built=$dkms_tree/$version/$1/$2

	rm -rf -- "$built" "$link"
	[ ! -d "$old/built" ] || { mkdir -p "${built%/*}" && cp -a -- "$old/built" "$built"; }
	[ ! -L "$old/link" ] || cp -a -- "$old/link" "$link"
	[ ! -d "$modules/$1" ] || take_places "$old/modules" "$1"
}

# take_places FOLDER KERNEL: move the modules below FOLDER into the kernel's folder, each by a
# rename, so that there is a module at any time. Then remove all other modules, whether make or
# dkms installed them.
take_places()
{
	local file files dest new

	mapfile -t files < <(find "$1/" ! -type d -name 'twheel.ko*')
	for file in "${files[@]}"; do
		dest=$modules/$2/${file#"$1/"}
		new=$(beside "$dest")
		if ! { mkdir -p -- "${dest%/*}" && cp -a -- "$file" "$new" && sync -- "$new" &&
			mv -fT -- "$new" "$dest"; }; then
			rm -f -- "$new"
			return 1
		fi
	done
	mapfile -t files < <(installed_in "$2")
	for file in "${files[@]}"; do
		[ -e "$1/${file#"$modules/$2/"}" ] || rm -f -- "$file" || return
	done
	run_depmod "$2"
}

# dkms_installs KERNEL ARCH: let dkms install the module that was built. dkms would overwrite the
# old module, and would save any other one that it finds. So let it install into a temporary
# folder, with a modules.dep that shows how the kernel's modules are compressed. If the kernel is
# not there yet, dkms installs the module when the kernel comes.
dkms_installs()
{
	local install_tree=$work/modules

	if [ ! -d "$modules/$1" ]; then
		outcome[$1]="twheel $version is built; dkms installs it when there is $modules/$1"
		return
	fi
	mkdir -p "$install_tree/$1" || return
	[ ! -e "$modules/$1/modules.dep" ] || cp -- "$modules/$1/modules.dep" "$install_tree/$1/" || return
	the_dkms install -v "$version" -k "$1" -a "$2" --force \
		--kernelsourcedir "$(kernel_dir "$1")" || return
	take_places "$install_tree/$1" "$1" || return
	outcome[$1]="twheel $version is installed"
}

# replace KERNEL: install the module that was built for it.
replace()
{
	local kernel=$1 new arch at

	old=$work/old/$kernel
	new=$(echo "$work/dkms/twheel/$version/$kernel"/*)
	arch=${new##*/}
	at=$dkms_tree/$version/$kernel/$arch
	save "$kernel" "$arch" || { outcome[$kernel]="cannot be saved; $(stays "$kernel")"; return 1; }
	saved=$kernel saved_arch=$arch
	if rm -rf -- "$at" "$dkms_tree/original_module" && mkdir -p "${at%/*}" &&
		mv -- "$new" "$at" && rm -f -- "$dkms_tree/kernel-$kernel-$arch" &&
		dkms_installs "$kernel" "$arch"; then
		saved=
		replaced[$kernel]=1
		return
	fi
	put_back "$kernel" "$arch" || echo "cannot put everything back for $kernel" >&2
	saved=
	outcome[$kernel]="dkms cannot install it; $(stays "$kernel")"
	return 1
}

# sweep_orphans [VERSION]: remove copies of the sources that dkms does not know, except that of
# VERSION. They come from a run that was killed, or from dkms-source.
sweep_orphans()
{
	local dir name

	for dir in "$root"/usr/src/twheel-*; do
		name=${dir##*/twheel-}
		[ "$name" = "${1:-}" ] || [ -e "$dkms_tree/$name" ] || ! is_ours "$dir" ||
			remove_sources "$dir"
	done
}

# Remove the builds of other versions for kernels that have the new module or are gone.
forget_others()
{
	local other kernel link

	while read -r kernel link; do
		[ -d "$modules/$kernel" ] || rm -f -- "$link"
	done < <(dkms_links)
	while IFS= read -r other; do
		while IFS= read -r kernel; do
			if [ ! -d "$modules/$kernel" ] && [ "$kernel" != "$release" ] ||
				[[ $other != "$version" && ${replaced[$kernel]:-} ]]; then
				rm -rf -- "${dkms_tree:?}/$other/$kernel"
			fi
		done < <(dkms_kernels "$other")
		[ "$other" = "$version" ] || [ -n "$(dkms_kernels "$other")" ] || forget "$other"
	done < <(dkms_versions)
}

# forget VERSION: remove it by dkms, then by hand. dkms leaves files if the sources are gone or a
# run was killed.
forget()
{
	local kernel link target

	echo "removing twheel $1 from dkms"
	# Remove these first: dkms would put them back.
	rm -rf -- "$dkms_tree/original_module"
	if command -v dkms >/dev/null && [ -r "$dkms_tree/$1/source/dkms.conf" ]; then
		the_dkms remove -v "$1" --all || echo "dkms cannot; it is removed by hand"
	fi
	while read -r kernel link; do
		target=$(readlink -- "$link")
		[[ $target = "$1"/* || $target = */"$1/$kernel"/* ]] || continue
		remove_like "$kernel" "$dkms_tree/$1/$kernel"
		rm -f -- "$link"
	done < <(dkms_links)
	rm -rf -- "${dkms_tree:?}/$1"
	remove_sources "$root/usr/src/twheel-$1"
}

# remove_like KERNEL FOLDER: remove the kernel's modules that are in updates/dkms, or equal to one
# below FOLDER.
remove_like()
{
	local file built

	while IFS= read -r file; do
		while IFS= read -r built; do
			[[ $file = */updates/dkms/* ]] || ! cmp -s -- "$file" "$built" || rm -fv -- "$file"
		done < <(find "$2" -name "${file##*/}" 2>/dev/null)
		[[ $file != */updates/dkms/* ]] || rm -fv -- "$file"
	done < <(installed_in "$1")
	[ ! -d "$modules/$1" ] || run_depmod "$1"
}

# Remove all that dkms has of twheel, and the copies of the sources.
leave_dkms()
{
	local known kernel link file

	while IFS= read -r known; do
		forget "$known"
	done < <(dkms_versions)
	# Remove links that belong to no version.
	while read -r kernel link; do
		rm -f -- "$link"
	done < <(dkms_links)
	while IFS= read -r file; do
		kernel=${file#"$modules/"}
		remove_like "${kernel%%/*}" "$dkms_tree"
	done < <(installed_in | grep '/updates/dkms/[^/]*$')
	if [ -L "$dkms_tree" ]; then
		rm -fv -- "$dkms_tree"
	elif [ -d "$dkms_tree" ]; then
		rm -rf -- "$dkms_tree/original_module"
		rmdir -- "$dkms_tree" || echo "$dkms_tree stays: something of somebody else's is in it" >&2
	fi
}

# Check the conditions of dkms-install before anything is changed.
check_dkms()
{
	local path

	command -v dkms >/dev/null || die "dkms is not installed (Debian: apt install dkms)."
	for path in "$root" "$KDIR"; do
		[[ ! $path =~ [^A-Za-z0-9_./+@~^-] ]] ||
			die "dkms cannot work below a folder whose path has a blank, or another of the" \
				"characters that a shell treats specially: $path"
	done
	check_place "$root/usr/src/twheel-$version"
}

# Print a line for each kernel. Fail if one of them has no new module.
report_outcome()
{
	local kernel status=0

	for kernel; do
		printf '%s: %s\n' "$kernel" "${outcome[$kernel]}"
		[ -n "${replaced[$kernel]:-}" ] || status=1
	done
	return $status
}

# Build even if the version is the same, as the sources may have changed.
do_dkms-install()
{
	local kernel kernels=() built=()

	check_dkms
	sweep_modules
	sweep_copies
	sweep_orphans "$version"
	[ -z "$root" ] || mkdir -p "$root/var/lib/dkms"
	while IFS= read -r kernel; do
		# Skip a kernel that is gone, though dkms still has a module for it.
		[ "$kernel" != "$release" ] && [ ! -d "$modules/$kernel" ] || kernels+=("$kernel")
	done < <(kernels_to_build)
	mkdir "$work/dkms"
	copy_sources "$work/usr/src/twheel-$version"
	for kernel in "${kernels[@]}"; do
		! build_for "$kernel" || built+=("$kernel")
	done
	if [ ${#built[@]} = 0 ]; then
		report_outcome "${kernels[@]}"
		return
	fi
	put_sources
	register
	for kernel in "${built[@]}"; do
		replace "$kernel" || true
	done
	if [ ${#replaced[@]} = 0 ]; then
		[ -n "$(dkms_kernels "$version")" ] || forget "$version"
	else
		forget_others
		install_rest
		kept=()
		update_system
	fi
	sweep_orphans "$version"
	report_outcome "${kernels[@]}"
}

do_dkms-remove()
{
	leave_dkms
	sweep_modules
	sweep_copies
	sweep_orphans
	remove_rest
}
