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
	local options=arch=amd64 log=$apt_state/update.log

	[ "$(dpkg --print-architecture)" = amd64 ] || die "this needs Debian on amd64"
	[ ! -e $keyring ] || options+=" signed-by=$keyring"
	mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
	cat >"$apt_state/sources.list" <<-EOF
	deb [$options] $mirror/debian $suite main
	deb [$options] $mirror/debian-security $suite-security main
	EOF
	say "reading Debian's package lists into .cache/apt, from $mirror"
	strict_update "$log" apt_own && return
	say "reading them failed; trying again in 5 seconds"
	sleep 5
	strict_update "$log" apt_own && return
	cat "$log" >&2
	die "cannot read Debian's package lists from $mirror. Is there a network?
  Try again when there is one. DEBIAN_MIRROR=http://... chooses another mirror."
}

# strict_update LOG [COMMAND...]: apt-get succeeds even if no mirror answers, unless
# it is told otherwise. Nothing is shown of what it says.
strict_update()
{
	local log=$1
	shift

	"$@" apt-get -o APT::Update::Error-Mode=any update >"$log" 2>&1
}

# Have they been read? A folder alone says little.
have_lists()
{
	compgen -G "$apt_state/lists/*_Packages*" >/dev/null
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
	have_lists || apt_own_update
	{ [ -s "$file" ] || resolve "$file" "$@"; } && download "$file" && return
	say "the mirror may have newer versions by now: reading its package lists again"
	apt_own_update
	resolve "$file" "$@" || die "nothing works without these packages"
	download "$file" || die "cannot download from $mirror: $(tr '\n' ' ' <"$file")
  Complete downloads are kept: try again. DEBIAN_MIRROR=http://... chooses another mirror."
}

# Says what there is not, and fails.
resolve()
{
	local file=$1 package version
	shift
	"$@" >"$file.names" || return
	while read -r package; do
		version=$(apt_own apt-cache policy "$package" | sed -n 's/^ *Candidate: //p')
		[[ $version = [0-9]* ]] || {
			say "Debian $suite has no package $package"
			return 1
		}
		echo "$package=$version"
	done <"$file.names" >"$file.tmp"
	rm "$file.names"
	mv "$file.tmp" "$file"
}

# megabytes BYTES
megabytes()
{
	local tenths=$((($1 + 50000) / 100000))

	echo "$((tenths / 10)).$((tenths % 10)) MB"
}

# What comes first is how far a download is; the rest of what apt tells its front
# ends is no news. Every few seconds: a terminal is not taken for granted.
tell_progress()
{
	local kind percent what told=$SECONDS every=${PROGRESS_SECONDS:-5}

	while IFS=: read -r kind _ percent what; do
		[ $((SECONDS - told)) -ge "$every" ] || continue
		told=$SECONDS
		case $kind in
		dlstatus) say "  ${percent%.*} % downloaded" ;;
		pmstatus) say "  ${percent%.*} % installed: $what" ;;
		esac
	done
}

# with_progress LOG COMMAND...: `quietly' for an apt-get that takes its time. It is
# not waited for who reads: a daemon that was installed might keep the line open.
with_progress()
{
	quietly "$@" -o APT::Status-Fd=5 5> >(tell_progress 9>&-)
}

# download FILE: the packages in it that are not there yet.
download()
{
	local spec dir size total=0 i=0 missing=() sizes=()

	while read -r spec; do
		[ ! -e "$cache/debs/$spec" ] || continue
		size=$(apt_own apt-cache show "$spec" | sed -n 's/^Size: //p' | head -n 1) || true
		missing+=("$spec")
		sizes+=("${size:-0}")
		total=$((total + ${size:-0}))
	done <"$1"
	for spec in "${missing[@]}"; do
		dir=$cache/debs/$spec
		say "downloading $((i + 1)) of ${#missing[@]}: $spec, $(megabytes "${sizes[i]}") of $(megabytes $total)"
		i=$((i + 1))
		rm -rf "$dir.tmp"
		mkdir -p "$dir.tmp"
		(cd "$dir.tmp" && with_progress "$apt_state/download.log" \
			apt_own apt-get download "$spec") || return 1
		mv "$dir.tmp" "$dir"
	done
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

# Installs tools on the system, or says how to install them.
host_apt_install()
{
	local install=(apt-get install --no-install-recommends -y "$@")
	local log=$cache/apt-host-update.log amount

	[ "$(id -u)" = 0 ] || die "as root, run: apt-get update && ${install[*]}"
	say "reading this system's package lists"
	export DEBIAN_FRONTEND=noninteractive
	# Fresh lists first: old ones name packages that the mirror no longer has. But a
	# source of the system that does not answer need not be one that we need.
	strict_update "$log" || {
		grep '^[EW]:' "$log" >&2 || true
		say "apt-get could not read all package lists; going on with the lists that are there"
	}
	apt-get install -s --no-install-recommends "$@" >"$cache/apt-host-plan.log" 2>&1 || {
		cat "$cache/apt-host-plan.log" >&2
		die "apt-get cannot install these tools. Is there a network? Then try again"
	}
	# The system's kernels and how it boots are none of our business.
	if grep '^Inst linux-\(image\|binary\)' "$cache/apt-host-plan.log"; then
		die "apt-get would install a kernel together with these tools, so it installs nothing"
	fi
	amount=$("${install[@]/#-y/--assume-no}" 2>/dev/null |
		sed -n 's/^Need to get \(.*\) of archives.*/\1/p') || true
	say "installing these tools with apt-get, without recommended packages: ${amount:-nothing} to download"
	with_progress "$cache/apt-host-install.log" "${install[@]}" ||
		die "apt-get could not install these tools. Is there a network? Then try again"
}
