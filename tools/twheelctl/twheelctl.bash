# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Completion of twheelctl(8) for bash

_twheelctl()
{
	local word=${COMP_WORDS[COMP_CWORD]} command='' position=0 i
	local -A options=(
		[check]='--json' [late]='--interval= --nap= --watch --json' [ps]='--interval= --json'
		[show]='--nearest= --json' [stat]='--interval= --json'
	)

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -* ]] || continue
		if [ -z "$command" ]; then
			command=${COMP_WORDS[i]}
		else
			position=$((position + 1))
		fi
	done
	if [ -z "$command" ]; then
		mapfile -t COMPREPLY < <(compgen -W "${!options[*]} --help --version" -- "$word")
	elif [[ $word = -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "${options[$command]:-} --help" -- "$word")
		[[ ${COMPREPLY[*]:-} != *= ]] || compopt -o nospace 2>/dev/null
	elif [[ $command = show && $position = 1 ]]; then
		mapfile -t COMPREPLY < <(_twheelctl_holders | sed -n "s/^${COMP_WORDS[COMP_CWORD - 1]}://p" |
			grep -e "^$word")
	elif [[ $command = @(check|late|show) ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_twheelctl_holders | cut -d : -f 1)" -- "$word")
	fi
}

# PID:FD of each descriptor of a wheel, one a line.
_twheelctl_holders()
{
	twheelctl ps 2>/dev/null | grep -oE '[0-9]+:[0-9]+(,[0-9]+)*$|[0-9]+:[0-9]+(,[0-9]+)* ' |
		awk -F '[:, ]' '{ for (i = 2; i <= NF; i++) if ($i != "") print $1 ":" $i }'
}

complete -F _twheelctl twheelctl
