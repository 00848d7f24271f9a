#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# Test versions and the tar of a commit. Each commit has a version of its own, in an order that
# dpkg agrees with. `make dist' makes the same tar wherever it runs, and a tree that was unpacked
# from it has the version of the commit.
# shellcheck source-path=SCRIPTDIR

. "$(dirname "$0")/../../tools/vm/lib/common.sh"
. "$(dirname "$0")/../../tools/vm/lib/cases.sh"

work=$build/dist
tree=$work/tree
case_options=-ex
# The cases build on each other.
fresh_tree() { :; }

in_git()
{
	git -C "$tree" -c safe.directory='*' -c user.name=somebody -c user.email=somebody@example.org \
		-c commit.gpgsign=false -c tag.gpgsign=false "$@"
}

# Make a repository whose only commit is this tree.
make_repository()
{
	rm -rf "$work"
	mkdir -p "$tree"
	if [ -e "$top/.git" ]; then
		(cd "$top" && git -c safe.directory='*' ls-files --cached --others --exclude-standard |
			while IFS= read -r file; do [ ! -f "$file" ] || echo "$file"; done |
			tar -c --files-from=-) | tar -x -C "$tree"
	else
		tar -c -C "$top" --exclude=./.cache . | tar -x -C "$tree"
	fi
	in_git init -q
	in_git add -A
	in_git commit -qm 'all of it'
}

version()
{
	sh "$tree/tools/version.sh"
}

base=$(sed -n 's/^PACKAGE_VERSION="\([0-9.]*\).*"$/\1/p' "$top/dkms.conf")

# next [TAG]: make another commit, or a tag for this one. The version must be later than before.
next()
{
	local before

	before=$(version)
	if [ $# = 0 ]; then
		in_git commit -q --allow-empty -m 'a change'
	else
		in_git tag "$1"
	fi
	dpkg --compare-versions "$before" lt "$(version)"
}

each_commit_has_a_later_version()
{
	sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$base\"/" "$tree/dkms.conf"
	in_git commit -q --allow-empty -am 'the version of the next release'
	[ "$(version)" = "$base~rc0+2.g$(in_git rev-parse --short=12 HEAD)" ]
	next
	next "v$base-rc1"
	[ "$(version)" = "$base~rc1" ]
	next
	next
	[ "$(version)" = "$base~rc1+2.g$(in_git rev-parse --short=12 HEAD)" ]
	next "v$base-rc2"
	next
	next "v$base"
	[ "$(version)" = "$base" ]
	next
	[ "$(version)" = "$base+1.g$(in_git rev-parse --short=12 HEAD)" ]
	in_git tag -d "v$base" "v$base-rc1" "v$base-rc2"
}

the_version_shows_a_change_that_is_in_no_commit()
{
	local said

	echo >>"$tree/README.md"
	[[ $(version) = *.dirty ]]
	! said=$(make -C "$tree" dist 2>&1) || return
	grep '^error: there are changes that are in no commit' <<<"$said"
	in_git checkout -q README.md
	touch "$tree/README.md"
	[[ $(version) != *.dirty ]]
}

# Compilers use only these numbers; the rest of the version is derived.
the_header_of_the_library_has_the_version_of_dkms_conf()
{
	[ "$(sed -n 's/^#define TWHEEL_VERSION_[A-Z]*\t//p' "$tree/lib/twheel.h" | paste -sd.)" = "$base" ]
}

dist()
{
	make -C "$1" dist OUTPUT="$2" "${@:3}"
	tar=$2/twheel-$(version).tar.gz
}

the_tar_is_the_same_wherever_it_is_made()
{
	local tar first

	mkdir -p "$work/1" "$work/2"
	(umask 077; git clone -q "$tree" "$work/another clone")
	dist "$tree" "$work/1"
	first=$tar
	(export TZ=Asia/Tokyo LC_ALL=C.UTF-8; umask 002; dist "$work/another clone" "$work/2")
	cmp "$first" "$work/2/${first##*/}"
}

a_tree_from_the_tar_has_the_version_of_the_commit()
{
	local commit unpacked

	commit=$(version)
	tar -xzf "$work/1/twheel-$commit.tar.gz" -C "$work"
	unpacked=$work/twheel-$commit
	[ "$(sh "$unpacked/tools/version.sh")" = "$commit" ]
	grep "^twheel ($commit) " "$unpacked/debian/changelog"
	! grep -r '@VERSION@' "$unpacked/packaging" || return
	make -C "$unpacked" dkms-source DESTDIR="$work/stage"
	grep -x "PACKAGE_VERSION=\"$commit\"" "$work/stage/usr/src/twheel-$commit/dkms.conf"
}

cases=(
	each_commit_has_a_later_version
	the_version_shows_a_change_that_is_in_no_commit
	the_header_of_the_library_has_the_version_of_dkms_conf
	the_tar_is_the_same_wherever_it_is_made
	a_tree_from_the_tar_has_the_version_of_the_commit
)

make_repository
echo "TAP version 13"
echo "1..${#cases[@]}"
for case in "${cases[@]}"; do
	holds "$case" "$case"
done
