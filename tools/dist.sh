#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# dist.sh: write twheel-VERSION.tar.gz of the last commit, into the folder OUTPUT or the current
# one. The file is the same wherever and whenever it is made. As the tar has no git history, the
# version is written into dkms.conf, twheel.spec and PKGBUILD, and debian/changelog is made.

set -euo pipefail
unset CDPATH
umask 022
export LC_ALL=C TZ=UTC
output=$(realpath -- "${OUTPUT:-.}")
cd -- "$(dirname -- "$0")/.."

die()
{
	printf 'error: %s\n' "$*" >&2
	exit 1
}

in_git()
{
	git -c safe.directory='*' "$@"
}

[ -e .git ] || die "only a git repository can be made a tar of"
version=${TWHEEL_VERSION:-$(sh tools/version.sh)}
[[ $version != *.dirty ]] || die "there are changes that are in no commit"
time=$(in_git log -1 --format=%ct)
name=twheel-$version

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
in_git archive --prefix="$name/" HEAD | tar -x -C "$work"
cd -- "$work/$name"
sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$version\"/" dkms.conf
sed -i "s/@VERSION@/$version/" packaging/twheel.spec packaging/PKGBUILD
cat >debian/changelog <<EOT
twheel ($version) unstable; urgency=medium

  * See CHANGELOG.md.

 -- $(sed -n 's/^Maintainer: //p' debian/control)  $(date -R -d "@$time")
EOT
cd ..
tar -c --format=ustar --sort=name --mtime="@$time" --owner=root:0 --group=root:0 "$name" |
	gzip -9n >"$name.tar.gz"
mv -- "$name.tar.gz" "$output/"
echo "$name.tar.gz"
