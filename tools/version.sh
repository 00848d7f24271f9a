#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# version.sh: print the version of this tree.
#
# PACKAGE_VERSION in dkms.conf is the last release or, between releases, the next one. In a git
# repository, the tag decides: v1.0.0 is 1.0.0, v1.0.0-rc1 is 1.0.0~rc1. For a commit after the
# tag, the number of commits since and the hash are added: 1.0.0~rc1+7.g0123456789ab. If there is
# no such tag yet, count from the first commit, as if that were rc0. So dpkg and rpm see a later
# commit as newer. A tree without git, from `make dist' or dkms, has the whole version in
# dkms.conf.
unset CDPATH
cd -- "$(dirname -- "$0")/.." || exit
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"$/\1/p' dkms.conf)

# git must allow root to install from another user's tree.
in_git()
{
	git -c safe.directory='*' "$@" 2>/dev/null
}

if [ ! -e .git ] || ! commit=$(in_git rev-parse --short=12 HEAD); then
	echo "$version"
	exit
fi
described=$(in_git describe --tags --long --abbrev=12 --match "v$version" --match "v$version-rc*") ||
	described=v$version-rc0-$(in_git rev-list --count HEAD)-g$commit
tag=${described%-*-g*}
since=${described#"$tag"-}
version=$(echo "${tag#v}" | tr - '~')
in_git diff --quiet HEAD && dirty='' || dirty=.dirty
[ "$since$dirty" = "0-g$commit" ] || version=$version+$(echo "$since" | tr - .)$dirty
echo "$version"
