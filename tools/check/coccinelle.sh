# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # check.sh sets what is not set here
# Sourced by check.sh: apply the rules in the kernel's scripts/coccinelle to the module. `make
# coccicheck MODE=report M=...' does the same, but needs a configured kernel tree.

# Rules that are left out:
other_rules=(
	api/check_bq27xxx_data.cocci	# about one driver's tables; needs an OCaml compiler
	null/badzero.cocci		# needs an OCaml compiler; sparse finds the same
)

# rule NAME: print the reports of spatch. Its messages on stderr are shown only if it fails.
rule()
{
	local name=$1 file=$rules/$1 options requires status=0
	local trouble=$work/coccinelle/${1//\//-}.err

	requires=$(sed -n 's|^// *Requires: *||p' "$file")
	if ! printf '%s\n' "${requires:-0}" "$version" | sort -CV; then
		echo "$name wants coccinelle $requires, this is $version"
		return 1
	fi
	read -ra options < <(sed -n 's|^// *Options: *||p' "$file") || true
	(cd "$work/coccinelle/module" &&
		spatch -D report --no-show-diff --very-quiet --cocci-file "$file" \
			"${options[@]}" --patch "$cache/source" --dir . \
			-I include -I uapi -I "$cache/source/include" \
			-I "$cache/source/arch/x86/include") 2>"$trouble" || status=$?
	[ $status = 0 ] && return
	echo "$name: spatch exits with $status"
	cat "$trouble"
	# Do not return spatch's 255: xargs would stop at it and skip the other rules.
	return 1
}

coccinelle()
{
	local name ours=() dir=$work/coccinelle

	rules=$cache/source/scripts/coccinelle
	mkdir -p "$dir/module"
	cp -pr twheel_*.c engine include uapi "$dir/module/"
	mapfile -t ours < <(cd "$rules" && find . -name '*.cocci' -printf '%P\n' | sort |
		grep -vxFf <(printf '%s\n' "${other_rules[@]}"))
	# With no rules, spatch would find nothing wrong.
	[ ${#ours[@]} -gt 50 ] || { echo "only ${#ours[@]} rules in $rules"; return 1; }
	version=$(spatch --version | sed -n '1s/^spatch version \([^ ]*\).*/\1/p')
	export -f rule
	export rules version work cache
	# shellcheck disable=SC2016 # the other bash expands it
	printf '%s\n' "${ours[@]}" |
		xargs -P "$(nproc)" -I '{}' bash -c 'rule "$1"' rule '{}'
}
