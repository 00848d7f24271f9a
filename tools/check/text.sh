# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # files.sh sets what is not set here
# Sourced by check.sh: checks of all that is not C.

shell_scripts()
{
	[ ${#scripts[@]} -gt 0 ] && shellcheck -x "${scripts[@]}"
}

# In "\n", the n is no part of the next word. nempty() is from spin, inout from syzkaller, and
# crate from Rust.
spelling()
{
	codespell --ignore-regex='\\[nt]' --ignore-words-list=nempty,filp,inout,crate "${files[@]}"
}

man_pages()
{
	mandoc -Tlint -Wstyle lib/man/*.[347] tools/twheelctl/*.8
}

# Check the recipes of packages with a version filled in, as `make dist' does. make test-packages
# checks the PKGBUILD with makepkg.
recipes()
{
	sed 's/@VERSION@/1.0.0~rc1+7.g0123456789ab/' packaging/twheel.spec >"$work/twheel.spec"
	rpmspec -P "$work/twheel.spec" >/dev/null
	bash -n packaging/PKGBUILD
	shellcheck packaging/PKGBUILD
	contact
}

# The module and debian/control must name the same maintainer, and no other file the address.
contact()
{
	local author

	author=$(sed -n 's/^MODULE_AUTHOR("\(.*\)");$/\1/p' twheel_main.c)
	grep -qxF "Maintainer: $author" debian/control ||
		echo "twheel_main.c and debian/control name different maintainers"
	printf '%s\n' "${files[@]}" | grep -vxE 'twheel_main\.c|debian/(control|changelog.*)' |
		xargs -d '\n' grep -lF -- "${author##* }" || true
}

# syzkaller's description must match the header.
syzkaller()
{
	perl tools/check/syzkaller.pl
}

device_page()
{
	perl tools/check/device_page.pl
}

# All documents are pages. If one is outside Documentation, a page there includes it;
# tools/upstream has the page for a kernel's tree.
documents()
{
	local file

	sphinx-build -W --keep-going -q -b html Documentation "$work/documents" || return
	for file in "${documents[@]}"; do
		[[ $file = Documentation/* || $file = tools/upstream/* ]] || grep -qxF ".. include:: ../$file" Documentation/*.rst ||
			echo "$file is not among the documents"
	done
}

# Documentation/design.rst and interface.rst may name a function without the prefix twheel_, and
# the function must exist. If any document names a function together with a file, the file must
# have the function; names_of_files() checks the file. If a document names a test, "PROGRAM.TEST",
# the program must have it.
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

# Documentation/operating.rst must describe each counter in sysfs, and each field and event of the
# tracepoints. The counters are also in the ABI document for a kernel's tree.
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

# Lines of examples in the documents are those of the examples.
shown()
{
	perl tools/check/shown.pl README.md "${documents[@]}"
}

# The tables are those that `make -C bench tables' writes. If a sentence has a figure that the
# record no longer has, tables.pl prints it.
tables()
{
	local document

	while IFS= read -r document; do
		perl bench/tables.pl "$document" bench | diff "$document" -
	done < <(grep -lE '^(\.\.|<!--|\.\\") (counted|figures): ' README.md Documentation/*.rst lib/man/*)
}

# A test must run each command in the documents, unless it cannot be run. Leave out the documents
# about the code and its tests, which show commands of tests.
commands()
{
	local documents

	mapfile -t documents < <(printf '%s\n' README.md Documentation/*.rst |
		grep -vE '/(design|interface|testing|testing-details|performance|performance-tables|peers|fault-sites|contributing)\.rst$')
	perl tools/check/commands.pl "${documents[@]}"
}

# Authors of bindings use these tables.
layouts()
{
	perl tools/check/layouts.pl
}

# Each drawing must be made from its present source.
drawings()
{
	bash tools/drawings.sh check
}

# licence_of FILE: print the licence of a file. If a program copies or links the code, its licence
# allows programs of any licence.
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

# Each file of code, make, shell and text must name its licence in its first lines, and the text
# of each licence must be there. COPYING is GPL-2.0.
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

# Print files in git that .gitignore names, and files that are not text.
products()
{
	in_git --cached --ignored --exclude-standard
	in_git | while IFS= read -r file; do
		[ ! -s "$file" ] || grep -qI '' "$file" || echo "$file: not a text"
	done
}

# If a text names one of our files, by path or by a name of our form, the file must exist, or git
# must ignore it because it is made. A text may name a part of the engine without the suffix of
# its files.
names_of_files()
{
	local file line name path folders='selftests|bench|bindings|examples|uapi|engine|lib|Documentation|tools/(?:vm|check)'

	grep -noHP "(?<![\w./\$}\"-])(?:$folders)/[\w.*/-]*[\w*]" "${files[@]}" |
		while IFS=: read -r file line path; do
			# Skip the placeholder for a part of the engine.
			[[ $path != */X[._]* ]] || continue
			# Skip paths of a kernel's tree.
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

# Each sentence of the uapi header and of the library's headers must have an existing test.
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

# The table in stability.rst must have all errnos of the header. design_names checks its tests.
errnos()
{
	local errno

	while read -r errno; do
		grep -q "^$errno  " Documentation/stability.rst || echo "$errno is not in Documentation/stability.rst"
	done < <(sed -n 's/^ \*\t\(E[A-Z0-9]*\)\t.*/\1/p' uapi/linux/twheel.h)
}

# The tables in the document must equal those in the tests.
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

# Each test that peers.rst names in a line "PROGRAM: TEST", indented by six blanks, must exist.
peers()
{
	local program test sources

	while read -r program test; do
		sources=(./selftests/*/twheel_"${program%:}".c)
		grep -qsE "^(TEST|TEST_F|TEST_F_TIMEOUT|RACE_OF|A_STORY|FIXTURE_VARIANT_ADD)\(([a-z_]+, )?${test}[,)]" \
			"${sources[@]}" || echo "Documentation/peers.rst: no $program $test"
	done < <(grep -E '^ {6}[a-z_]+: [a-z0-9_]+$' Documentation/peers.rst)
}
