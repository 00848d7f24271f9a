# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # common.sh sets what is not set here
# Sourced by setup.sh: downloads from Debian with apt.
#
# Packages that are only unpacked come through an apt state of this tree, in .cache/apt. That
# needs no root, leaves the system's lists alone, and finds the kernels (6.12 in
# bookworm-security, the newest in trixie-backports) whatever the system and its sources are.

mirror=${DEBIAN_MIRROR:-http://deb.debian.org}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# use_suite bookworm|trixie: take all further packages from that Debian.
use_suite()
{
	suite=$1
	apt_state=$cache/apt
	[ "$suite" = bookworm ] || apt_state+=-$suite
}
use_suite bookworm
# The first architecture is this machine's.
architectures=amd64

apt_own()
{
	local tool=$1
	shift
	"$tool" -q \
		-o Dir::Etc::sourcelist="$apt_state/sources.list" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$apt_state/lists" \
		-o Dir::State::status=/dev/null \
		-o Dir::Cache="$apt_state/cache" \
		-o APT::Architectures="$architectures" \
		-o APT::Sandbox::User="$(id -un)" \
		-o Acquire::Languages=none \
		-o Acquire::Retries=3 \
		"$@"
}

# expect_debian PURPOSE: fail early if this system cannot get Debian's packages: apt would name
# another reason. PURPOSE is that of setup.sh.
expect_debian()
{
	local needs="this needs Debian 12 or 13 on amd64; this system" architecture

	[ -n "$(type -P dpkg)" ] || die "$needs has no dpkg"
	# A model needs only packages from the system's own sources.
	[ "$1" != model ] || return 0
	architecture=$(dpkg --print-architecture)
	[ "$architecture" = amd64 ] || die "$needs is for $architecture"
	[ -e "$keyring" ] || die "this system lacks the keys of Debian's packages, $keyring; \
as root, run: apt-get install debian-archive-keyring"
}

apt_own_update()
{
	local log=$apt_state/update.log more=debian-security\ $suite-security
	local options="arch=$architectures signed-by=$keyring"

	[ "$suite" = bookworm ] || more="debian $suite-backports"
	mkdir -p "$apt_state/lists/partial" "$apt_state/cache/archives/partial"
	cat >"$apt_state/sources.list" <<-EOF
	deb [$options] $mirror/debian $suite main
	deb [$options] $mirror/$more main
	EOF
	say "reading Debian's package lists into ${apt_state#"$top"/}, from $mirror"
	strict_update "$log" apt_own && return
	if grep -q 'is not signed' "$log"; then
		cat "$log" >&2
		die "the keys in $keyring are not those of Debian $suite; \
install a newer debian-archive-keyring"
	fi
	say "reading them failed; trying again in 5 seconds"
	sleep 5
	strict_update "$log" apt_own && return
	cat "$log" >&2
	die "cannot read Debian's package lists from $mirror. Is there a network?
  Try again when there is one. DEBIAN_MIRROR=http://... chooses another mirror."
}

# strict_update LOG [COMMAND...]: update the lists, and fail if no mirror answers, which apt-get
# does only with this option. The output goes to LOG.
strict_update()
{
	local log=$1
	shift

	"$@" apt-get -o APT::Update::Error-Mode=any update >"$log" 2>&1
}

# Have the lists been read? The folder may exist without them.
have_lists()
{
	compgen -G "$apt_state/lists/*_Packages*" >/dev/null
}

# Print the dependencies of a package, one name a line, without the architecture.
depends()
{
	apt_own apt-cache depends "$1" 2>/dev/null |
		sed -n 's/^ *|*Depends: <*\([^:>]*\).*/\1/p'
}

# get_packages FILE COMMAND...: download the packages that the command prints. FILE keeps their
# names and versions, so that an interrupted download continues with the same ones. If the mirror
# no longer has them, look for new versions.
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

# Write the names with their versions to FILE. If a package is missing, print its name and fail.
# apt reads its lists each time, so ask for all packages at once.
resolve()
{
	local file=$1 package version names
	local -A candidates=()
	shift
	"$@" >"$file.names" || return
	mapfile -t names <"$file.names"
	while read -r package version; do
		candidates[$package]=$version
		# If a package is there for another architecture only, apt adds that to its name.
		: "${candidates[${package%%:*}]:=$version}"
	done < <(apt_own apt-cache policy "${names[@]}" |
		sed -n 's/^\([^ ]*\):$/\1/p; s/^ *Candidate: //p' | paste -d ' ' - -)
	while read -r package; do
		version=${candidates[$package]:-}
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

# Print the progress of a download, but none of apt's other messages. A line every few seconds
# also suits a log.
report_progress()
{
	local kind percent what reported=$SECONDS every=${PROGRESS_SECONDS:-5}

	while IFS=: read -r kind _ percent what; do
		[ $((SECONDS - reported)) -ge "$every" ] || continue
		reported=$SECONDS
		case $kind in
		dlstatus) say "  ${percent%.*} % downloaded" ;;
		pmstatus) say "  ${percent%.*} % installed: $what" ;;
		esac
	done
}

# with_progress LOG COMMAND...: `quietly' for an apt-get that takes long. Do not wait for the
# reader: a daemon that was installed might keep the pipe open.
with_progress()
{
	quietly "$@" -o APT::Status-Fd=5 5> >(report_progress 9>&-)
}

# download FILE: fetch its packages that are not there yet. If the run is interrupted, the next
# one continues.
download()
{
	local spec bytes dir=$cache/debs/incoming missing=()

	while read -r spec; do
		[ -e "$cache/debs/$spec" ] || missing+=("$spec")
	done <"$1"
	[ ${#missing[@]} != 0 ] || return 0
	bytes=$(apt_own apt-cache show "${missing[@]}" |
		awk '/^Package: / { name = $2 }
			/^Size: / && !seen[name]++ { total += $2 }
			END { print total + 0 }') || true
	say "downloading $(megabytes "$bytes"): ${missing[*]%%=*}"
	mkdir -p "$dir"
	(cd "$dir" && with_progress "$apt_state/download.log" \
		apt_own apt-get download "${missing[@]}") || return 1
	for spec in "${missing[@]}"; do
		rm -rf "$cache/debs/$spec.tmp"
		mkdir "$cache/debs/$spec.tmp"
		# A name may have an architecture: NAME:ARCHITECTURE.
		mv "$dir/${spec%%[:=]*}"_*.deb "$cache/debs/$spec.tmp/" || return 1
		mv "$cache/debs/$spec.tmp" "$cache/debs/$spec"
	done
}

deb_files()
{
	local spec
	while read -r spec; do
		echo "$cache/debs/$spec"/*.deb
	done <"$1"
}

# unpack FILE FOLDER [TAR-ARGUMENT...]: unpack a package, or some of its files. As in a system,
# /lib and the like are links into /usr: packages use both paths, and a library must be found
# beside those that need it.
unpack()
{
	local file=$1 dir=$2 name
	shift 2

	for name in bin sbin lib lib64; do
		mkdir -p "$dir/usr/$name"
		ln -sfn "usr/$name" "$dir/$name"
	done
	dpkg-deb --fsys-tarfile "$file" | tar -xp --keep-directory-symlink -C "$dir" "$@"
}

# Remove the packages after unpacking: they would double the cache.
drop_packages()
{
	local spec
	while read -r spec; do
		rm -rf "$cache/debs/$spec"
	done <"$1"
}

# Install tools on the system, or say how to install them. Never remove a package for them.
host_apt_install()
{
	local install=(apt-get install --no-install-recommends --no-remove -y "$@")
	local log=$cache/apt-host-update.log amount

	[ "$(id -u)" = 0 ] || die "as root, run: apt-get update && ${install[*]}"
	say "reading this system's package lists"
	export DEBIAN_FRONTEND=noninteractive
	# Update the lists first: old ones name packages that the mirror no longer has. If a
	# source of the system fails, continue: it may not be needed.
	strict_update "$log" || {
		grep '^[EW]:' "$log" >&2 || true
		say "apt-get could not read all package lists; going on with the lists that are there"
	}
	"${install[@]/#-y/-s}" >"$cache/apt-host-plan.log" 2>&1 || {
		cat "$cache/apt-host-plan.log" >&2
		die "apt-get cannot install these tools; it says why above"
	}
	# Never change the system's kernels or its boot.
	if grep '^Inst linux-\(image\|binary\)' "$cache/apt-host-plan.log"; then
		die "apt-get would install a kernel together with these tools, so it installs nothing"
	fi
	amount=$("${install[@]/#-y/--assume-no}" 2>/dev/null |
		sed -n 's/^Need to get \(.*\) of archives.*/\1/p') || true
	say "installing these tools with apt-get, without recommended packages: ${amount:-nothing} to download"
	with_progress "$cache/apt-host-install.log" "${install[@]}" ||
		die "apt-get could not install these tools. Is there a network? Then try again"
}
