# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced by setup.sh: everything that has to do with apt.
#
# Packages that are only unpacked come through an apt state of our own, in
# .cache/apt: that needs no root, leaves the system's lists alone, and finds the
# 6.12 kernel (in bookworm-security) whatever the system's sources are.

suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
apt_state=$cache/apt

apt_own()
{
	local tool=$1
	shift
	"$tool" -q \
		-o Dir::Etc::sourcelist="$apt_state/sources.list" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$apt_state/lists" \
		-o Dir::Cache="$apt_state/cache" \
		-o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 \
		"$@"
}

apt_own_update()
{
	local options=arch=amd64

	[ "$(dpkg --print-architecture)" = amd64 ] || die "this needs Debian on amd64"
	[ ! -e $keyring ] || options+=" signed-by=$keyring"
	mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
	cat >"$apt_state/sources.list" <<-EOF
	deb [$options] $mirror/debian $suite main
	deb [$options] $mirror/debian-security $suite-security main
	EOF
	say "reading Debian's package lists into .cache/apt"
	quietly "$apt_state/update.log" apt_own apt-get update
	touch "$apt_state/updated"
}

# What a package depends on, one name a line.
depends()
{
	apt_own apt-cache depends "$1" 2>/dev/null |
		sed -n 's/^ *|*Depends: //p'
}

# get_packages FILE COMMAND...: downloads what the command names. FILE keeps the
# names with their versions, so that a later update does not change what was
# begun; if the mirror has dropped these meanwhile, new ones are looked up.
get_packages()
{
	local file=$1
	shift
	[ -e "$apt_state/updated" ] || apt_own_update
	[ -s "$file" ] || resolve "$file" "$@"
	download "$file" && return
	say "that failed; perhaps the mirror has newer versions by now: looking again"
	apt_own_update
	resolve "$file" "$@"
	download "$file" || die "cannot download: $(tr '\n' ' ' <"$file")"
}

resolve()
{
	local file=$1 package version
	shift
	"$@" >"$file.names"
	while read -r package; do
		version=$(apt_own apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
		[[ $version = [0-9]* ]] || die "Debian $suite has no package $package"
		echo "$package=$version"
	done <"$file.names" >"$file.tmp"
	rm "$file.names"
	mv "$file.tmp" "$file"
}

download()
{
	local file=$1 spec dir

	while read -r spec; do
		dir=$cache/debs/$spec
		[ ! -e "$dir" ] || continue
		say "downloading $spec"
		rm -rf "$dir.tmp"
		mkdir -p "$dir.tmp"
		(cd "$dir.tmp" && quietly "$apt_state/download.log" \
			apt_own apt-get download "$spec") || return 1
		mv "$dir.tmp" "$dir"
	done <"$file"
}

deb_files()
{
	local spec
	while read -r spec; do
		echo "$cache/debs/$spec"/*.deb
	done <"$1"
}

# Unpacked is enough; the packages would double the cache.
drop_packages()
{
	local spec
	while read -r spec; do
		rm -rf "$cache/debs/$spec"
	done <"$1"
}

# Installs tools on the system, or says how to.
host_apt_install()
{
	local install=(apt-get install --no-install-recommends -y "$@")

	[ "$(id -u)" = 0 ] || die "as root, run: apt-get update && ${install[*]}"
	say "installing them with apt-get, without what they only recommend"
	export DEBIAN_FRONTEND=noninteractive
	# Fresh lists first: old ones name packages that the mirror no longer has.
	quietly "$cache/apt-host-update.log" apt-get update
	# The system's kernels and how it boots are none of our business.
	if apt-get install -s --no-install-recommends "$@" | grep '^Inst linux-image'; then
		die "not installing these: apt wants to install a kernel with them"
	fi
	quietly "$cache/apt-host-install.log" "${install[@]}"
}
