# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # files.sh sets what is not set here
# Sourced by check.sh: what is not C.

shell_scripts()
{
	[ ${#scripts[@]} -gt 0 ] && shellcheck -x "${scripts[@]}"
}

# The n of \n is no part of the word after it; nempty() is spin's, inout syzkaller's, and crate
# Rust's.
spelling()
{
	codespell --ignore-regex='\\[nt]' --ignore-words-list=nempty,filp,inout,crate "${files[@]}"
}

man_pages()
{
	mandoc -Tlint -Wstyle lib/man/*.[347] tools/twheelctl/*.8
}

# As `make dist' leaves them. makepkg reads its own in make test-packages.
recipes()
{
	sed 's/@VERSION@/1.0.0~rc1+7.g0123456789ab/' packaging/twheel.spec >"$work/twheel.spec"
	rpmspec -P "$work/twheel.spec" >/dev/null
	bash -n packaging/PKGBUILD
	shellcheck packaging/PKGBUILD
	contact
}

# The address of the maintainer stands in the module, and again where dpkg wants it.
contact()
{
	local author

	author=$(sed -n 's/^MODULE_AUTHOR("\(.*\)");$/\1/p' twheel_main.c)
	grep -qxF "Maintainer: $author" debian/control ||
		echo "twheel_main.c and debian/control name different maintainers"
	printf '%s\n' "${files[@]}" | grep -vxE 'twheel_main\.c|debian/(control|changelog.*)' |
		xargs -d '\n' grep -lF -- "${author##* }" || true
}

# The description for syzkaller has what the header has.
syzkaller()
{
	perl tools/check/syzkaller.pl
}

# The man page of the device is complete.
device_page()
{
	perl tools/check/device_page.pl
}

# All of them are pages: those in other folders are included by one in Documentation. The one for
# a kernel's tree is a page there.
documents()
{
	local file

	sphinx-build -W --keep-going -q -b html Documentation "$work/documents" || return
	for file in "${documents[@]}"; do
		[[ $file = Documentation/* || $file = tools/upstream/* ]] || grep -qxF ".. include:: ../$file" Documentation/*.rst ||
			echo "$file is not among the documents"
	done
}

# The functions that these two documents name are there, with or without the prefix twheel_. If
# any document names a function with a file, the function is in that file. names_of_files() sees
# to the files. A test that a document names, "PROGRAM.TEST", is in that program.
# shellcheck disable=SC2016 # nothing is to be expanded
design_names()
{
	local name program

	while IFS= read -r name; do
		grep -qE "\b(twheel_)?${name%??}\(" "${module_code[@]}" "${lib_code[@]}" ||
			echo "a document names $name, which is not there"
	done < <(grep -ohE '``[a-z0-9_]+\(\)``' Documentation/{design,interface}.rst |
		tr -d '`' | sort -u)
	printf '%s\n' "${files[@]}" | tools/check/named_in.pl "${documents[@]}" README.md
	while IFS=. read -r program name; do
		has_test "$program" "$name" ||
			echo "a document names $program.$name, which is not there"
	done < <(grep -ohE '``twheel_[a-z0-9_]+\.[a-z0-9_]{4,}``' "${documents[@]}" |
		tr -d '`' | sort -u)
}

# The counters in sysfs, and the fields and events of tracepoints, are in the document for those
# who read them. The counters are in that for a kernel's tree, too.
operating()
{
	local name

	while IFS= read -r name; do
		grep -qE "^\s+$name  +" tools/upstream/sysfs-class-misc-twheel ||
			echo "tools/upstream/sysfs-class-misc-twheel does not describe $name"
	done < <(sed -nE 's/^ATTRIBUTE_RO\((\w+),.*/\1/p' twheel_stat.c)
	while IFS= read -r name; do
		grep -qF "\`\`$name\`\`" Documentation/operating.rst ||
			echo "Documentation/operating.rst does not describe $name"
	done < <(sed -nE 's/^ATTRIBUTE_RO\((\w+),.*/\1/p' twheel_stat.c
		sed -nE 's/^TRACE_EVENT\((\w+),$/\1/p; s/^\t+__field\(\w+, (\w+)\).*/\1/p
			s/^\t+__array\(\w+, (\w+),.*/\1/p' engine/trace.h)
	while IFS= read -r name; do
		grep -q "^ATTRIBUTE_RO($name," twheel_stat.c ||
			echo "packaging/prometheus/twheel.rules.yml: there is no counter $name"
	done < <(grep -oP '\btwheel_\K[a-z_]+(?=[[)])' packaging/prometheus/twheel.rules.yml)
}

# What the documents show of the examples is as it stands there.
shown()
{
	perl tools/check/shown.pl README.md "${documents[@]}"
}

# `make -C bench tables' puts them there. Of the figures in sentences it names those that the
# record has no more.
tables()
{
	local document

	while IFS= read -r document; do
		perl bench/tables.pl "$document" bench | diff "$document" -
	done < <(grep -lE '^(\.\.|<!--|\.\\") (counted|figures): ' README.md Documentation/*.rst lib/man/*)
}

# Each command in the documents is run by a test, or is one that cannot be. The documents about the
# code, and how it is tested, show those of tests.
commands()
{
	local documents

	mapfile -t documents < <(printf '%s\n' README.md Documentation/*.rst |
		grep -vE '/(design|interface|testing|testing-details|performance|performance-tables|peers|fault-sites|contributing)\.rst$')
	perl tools/check/commands.pl "${documents[@]}"
}

# For bindings that are made by hand.
layouts()
{
	perl tools/check/layouts.pl
}

# Each drawing is made from its source.
drawings()
{
	bash tools/drawings.sh check
}

# licence_of FILE: which one it has to say. What a program copies or links is free for
# programs of any licence.
licence_of()
{
	case $1 in
	selftests/releases/*/linux/*.h) licence_of uapi/ ;;
	selftests/releases/*/*.h) licence_of lib/ ;;
	lib/* | bindings/*) echo MIT ;;
	examples/*) echo 0BSD ;;
	uapi/*) echo GPL-2.0 WITH Linux-syscall-note ;;
	*) echo GPL-2.0 ;;
	esac
}

# Each file of code, make, shell and text says in its first lines which licence it has,
# and the text of each licence is there: COPYING is GPL-2.0.
licences()
{
	local file said name

	for file in "${files[@]}"; do
		case $file in
		*.gitignore | *.md) continue ;;
		*.[ch] | *.rst | *Makefile | *Kbuild | lib/* | examples/*) ;;
		*) [[ " ${scripts[*]} " = *" $file "* ]] || continue ;;
		esac
		said=$(sed -nE '1,3s/.*SPDX-License-Identifier: ([^*]*[^* ]).*/\1/p' "$file")
		[ "$said" = "$(licence_of "$file")" ] ||
			echo "$file: its SPDX-License-Identifier is \"$said\", not $(licence_of "$file")"
		for name in $said; do
			case $name in
			OR | WITH) ;;
			GPL-2.0) [ -s COPYING ] || echo "there is no COPYING" ;;
			*) [ -s "LICENSES/$name.txt" ] || echo "there is no LICENSES/$name.txt" ;;
			esac
		done
	done
}

# What .gitignore names, and what is not text.
products()
{
	in_git --cached --ignored --exclude-standard
	in_git | while IFS= read -r file; do
		[ ! -s "$file" ] || grep -qI '' "$file" || echo "$file: not a text"
	done
}

# Files of ours that are named somewhere, by their path or by a name that only ours
# have, are there, unless git ignores them: then they are made. A part of the engine
# may be named without the end of its files' names.
names_of_files()
{
	local file line name path folders='selftests|bench|bindings|examples|uapi|engine|lib|Documentation|tools/(?:vm|check)'

	grep -noHP "(?<![\w./\$}\"-])(?:$folders)/[\w.*/-]*[\w*]" "${files[@]}" |
		while IFS=: read -r file line path; do
			# A placeholder: any part of the engine.
			[[ $path != */X[._]* ]] || continue
			# Those of a kernel's tree.
			[[ $path != Documentation/@(userspace-api|ABI|dev-tools|.\*)* &&
				$path != uapi/linux/fcntl.h ]] || continue
			compgen -G "$path" >/dev/null || compgen -G "$path.[ch]" >/dev/null ||
				compgen -G "${file%/*}/$path" >/dev/null ||
				git -c safe.directory="$top" check-ignore -q "$path" ||
				echo "$file:$line: there is no $path"
		done
	grep -noHP '(?<![\w/])(?:twheel|fault|fuzz)_[a-z0-9_]+\.(?:c|h|sh|pml)\b' "${files[@]}" |
		while IFS=: read -r file line name; do
			[[ " ${files[*]##*/} " = *" $name "* ]] || echo "$file:$line: there is no $name"
		done
}

# Each sentence of the uapi header and of the library's has a test that is there.
sentences()
{
	local programs name

	programs=$(test_programs)
	tools/check/sentences.pl uapi/linux/twheel.h selftests/sentences.txt <<<"$programs"
	for name in twheel twheel/device twheel/table twheel/tcp; do
		tools/check/sentences.pl lib/$name.h "selftests/lib/sentences/${name##*/}.txt" <<<"$programs"
	done
	tools/check/sentences.pl lib/twheel.hpp selftests/lib/sentences/twheel_hpp.txt <<<"$programs"$'\ntwheel_lib_cxx'
}

# The table of stability.rst has all errnos of the header; design_names looks for its tests.
errnos()
{
	local errno

	while read -r errno; do
		grep -q "^$errno  " Documentation/stability.rst || echo "$errno is not in Documentation/stability.rst"
	done < <(sed -n 's/^ \*\t\(E[A-Z0-9]*\)\t.*/\1/p' uapi/linux/twheel.h)
}

# The tables in the document are those that the tests go by.
fault_sites()
{
	diff -u <(sed -n 's/^   \("[^"]*"\(, "[^"]*"\)\{3,4\}\)$/\1/p' Documentation/fault-sites.rst) \
		<(awk '
		/^} rows\[\] = \{/ { inside = 1; next }
		/^};/ { inside = 0 }
		inside { text = text $0 }
		END {
			gsub(/\t+/, " ", text)
			gsub(/ *\}, */, "\n", text)
			gsub(/ *\{ */, "", text)
			printf "%s", text
		}' selftests/fault/twheel_fault_sites.c selftests/fault/twheel_fault_load_module.c)
}

# Each test that the document names is one: "      PROGRAM: TEST", see there.
peers()
{
	local program test sources

	while read -r program test; do
		sources=(./selftests/*/twheel_"${program%:}".c)
		grep -qsE "^(TEST|TEST_F|TEST_F_TIMEOUT|RACE_OF|A_STORY|FIXTURE_VARIANT_ADD)\(([a-z_]+, )?${test}[,)]" \
			"${sources[@]}" || echo "Documentation/peers.rst: no $program $test"
	done < <(grep -E '^ {6}[a-z_]+: [a-z0-9_]+$' Documentation/peers.rst)
}
