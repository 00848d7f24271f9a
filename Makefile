# SPDX-License-Identifier: GPL-2.0
#
# Kbuild describes the module; here are the targets for people.

MAKEFLAGS += --no-print-directory

# With CDPATH, `cd' in a script would go to another folder, and print it.
unexport CDPATH

# The kernel that the module is built for: the running one, or KDIR=...
KDIR ?= /lib/modules/$(shell uname -r)/build
# Scripts read these from the environment, so that any character may be in them.
export KDIR DESTDIR KSRC

# Kbuild and the scripts use this version. A packager may set it, if the repository has no tags.
# dkms' copy of the sources has no version.sh, but the version in dkms.conf.
ifeq ($(TWHEEL_VERSION)$(wildcard tools/version.sh),tools/version.sh)
export TWHEEL_VERSION := $(shell sh tools/version.sh)
endif

# Where headers, library, man pages and tools go.
PREFIX ?= /usr/local
includedir ?= $(PREFIX)/include
export PREFIX includedir

# Variables of the targets that run in a virtual machine. By default, bench runs on 6.12 alone.
ifeq ($(origin KERNELS),undefined)
bench: KERNELS := 6.12
endif
KERNELS ?= 6.1 6.12 7.3
SMP ?= 2
LANES ?= 3
export KERNELS SMP LANES TESTS EXCEPT MUTANTS BINDINGS TEST_TIMEOUT V
export BENCH PEERS SIZES MODES RECORD VECTORS BASE ROUNDS

# Start scripts by bash: file systems without exec, and archives without x bits, do not allow to
# start them by name.
bash = command -v bash >/dev/null || { echo "make $@ needs bash, and there is none" >&2; exit 1; }; bash

# If clang built the kernel, kbuild passes clang's options to the compiler of a module, so use
# clang as well. CC= and LLVM= override this.
config = $(shell grep -hsxE 'CONFIG_(CC_IS_CLANG|LD_IS_LLD|AS_IS_GNU)=y' \
	"$(KDIR)/include/config/auto.conf" "$(KDIR)/.config")
has = $(filter CONFIG_$(1)=y,$(config))
compiler = $(if $(LLVM)$(filter-out default,$(origin CC)),,$(if $(call has,CC_IS_CLANG), \
	$(if $(call has,LD_IS_LLD),LLVM=1,CC=clang) $(if $(call has,AS_IS_GNU),LLVM_IAS=0)))

all: modules

# The module is the same in any folder. Set in Kbuild, these flags would not reach
# the file that modpost writes.
nowhere = $(foreach what,debug macro,-f$(what)-prefix-map=$(CURDIR)=.)

modules: kdir
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)" KCFLAGS="$(strip $(KCFLAGS) $(nowhere))" $(compiler) modules

# uninstall needs no headers. If the user who installs cannot write here, the module must be built
# already.
install install-module: kdir
	@if [ -w . ]; then $(MAKE) modules; else $(bash) tools/install.sh up-to-date; fi
	@KBUILD_OPTIONS='$(compiler)'; export KBUILD_OPTIONS; $(bash) tools/install.sh $@

dkms-install: kdir
dkms-install dkms-source dkms-remove uninstall:
	@$(bash) tools/install.sh $@

# Each file has one target that installs it; `install' and dkms-install call several of these.
# Only the module needs a kernel.
install-headers uninstall-headers install-udev:
	@$(bash) tools/install.sh $@

lib:
	@$(MAKE) -C lib

# A relative DESTDIR starts from this folder.
below = case $$DESTDIR in '' | /*) ;; *) DESTDIR=$$(pwd)/$$DESTDIR ;; esac; \
	$(MAKE) -C $(1) DESTDIR="$$DESTDIR"

install-lib uninstall-lib install-man uninstall-man:
	@$(call below,lib) $@

install-tools uninstall-tools:
	@$(call below,tools/twheelctl) $(@:%-tools=%)

# Write the part of the library in the process as two files.
amalgamation:
	@$(MAKE) -s -C lib OUTPUT="$(CURDIR)/.cache/amalgamation" $@

# If Debian's compiler has no sanitizers for a machine, say SANITIZE=.
check-lib:
	@$(MAKE) -C selftests/lib run

# Write a tar of the last commit, which is the same wherever it is made.
dist:
	@$(bash) tools/dist.sh

# Build Debian packages of the module for the kernel of KDIR, for machines that cannot build it.
module-packages: kdir
	@$(bash) tools/module-packages.sh

# kbuild does not quote paths.
kdir:
	@for path in "$$(pwd -P)" "$$KDIR"; do \
		[ -z "$$(printf %s "$$path" | LC_ALL=C tr -d 'A-Za-z0-9_./+@~^\200-\377-')" ] || { \
			echo "kbuild cannot work in a folder whose path has a blank, a colon, or another of" >&2; \
			echo "the characters that make or a shell treat specially: move $$path," >&2; \
			echo "or give the folder another name. \`make lib' and \`make list' work there." >&2; \
			exit 1; }; \
	done
	@case $$KDIR in /*) ;; *) KDIR=./$$KDIR ;; esac; test -f "$$KDIR/Makefile" || { \
		echo "No kernel headers in $$KDIR." >&2; \
		echo "Install those of the running kernel (Debian: apt install linux-headers-$$(uname -r))" >&2; \
		echo "or say KDIR=...; \`make demo' and \`make test' need neither." >&2; \
		exit 1; }

test demo shell languages model mutants soak bench:
	@$(bash) tools/vm/$@.sh

test-debug test-race test-rt test-arm64:
	@$(bash) tools/vm/test.sh $(@:test-%=%)

test-bare:
	@$(bash) tools/vm/bare.sh

bench-native:
	@$(bash) tools/vm/native.sh

test-packages:
	@$(bash) tools/vm/packages.sh

test-bindings:
	@$(bash) tools/vm/bindings.sh

# Write the tree form of the module into the source of a kernel.
upstream:
	@$(bash) tools/upstream.sh "$$KSRC" "$$SERIES"

test-upstream:
	@$(bash) tools/vm/upstream.sh

fuzz:
	@$(bash) tools/vm/test.sh $@

check:
	@$(bash) tools/check/check.sh

# Build the documents as HTML pages. graphviz makes their drawings from *.dot.
docs:
	@sphinx-build -W --keep-going -q -b html Documentation .cache/docs || { \
		command -v sphinx-build >/dev/null || echo "Debian: apt install python3-sphinx" >&2; exit 1; }
	@echo .cache/docs/index.html

drawings:
	@$(bash) tools/drawings.sh

# Print the names of the tests, for TESTS=...
list:
	@$(bash) tools/vm/list.sh

# $(call made,FOLDER,MODULE,OBJECT...): the files that kbuild makes in FOLDER. They are listed by
# name, as other objects in the tree may be the user's. kbuild's own clean would need kernel
# headers.
made-objects = $(addprefix $(1)/, $(foreach o,$(2),$(o) .$(o).cmd .$(o).d))
made = $(call made-objects,$(1),$(2).o $(2).mod.o .module-common.o $(3)) $(addprefix $(1)/, \
	$(foreach f,$(2).ko $(2).mod Module.symvers modules.order,$(f) .$(f).cmd) $(2).mod.c)
objects = $(patsubst %.c,%.o,$(notdir $(wildcard $(1))))

clean:
	@rm -fv $(call made,.,twheel,$(call objects,twheel_*.c))
	@rm -fv $(call made-objects,engine,$(call objects,engine/*.c))
	@rm -fv $(call made-objects,selftests/syncpoints,syncpoint)
	@rm -fv $(call made,selftests/kunit,twheel_kunit,twheel_wheel.o $(call objects,selftests/kunit/*.c))
	@rm -fv $(call made-objects,selftests/kunit/shim,kunit.o)
	@rm -fv $(call made,bench/idle,bench_idle)
	@for dir in selftests/wheel selftests/lib selftests/soak bench bench/wheel examples lib tools/twheelctl; do \
		if [ -e $$dir/Makefile ]; then $(MAKE) -C $$dir clean; fi; \
	done

# The files of tools/vm in .cache, and nothing else: clangd has its index there. If .cache is a
# link, leave its target alone.
cached := accelerator.* apt apt-* arm64* build busybox* cross debs docs jobs* kernels kselftest lock loops* \
	probe.* python* run seconds source* trixie*

distclean: clean
	@if [ -L .cache ]; then \
		echo "./.cache stays: it is a link to $$(readlink .cache)"; \
	elif [ -d .cache ]; then \
		echo "./.cache ($$(du -sh .cache | cut -f1): downloads, kernels, test builds)"; \
		rm -rf $(addprefix .cache/,$(cached)); \
		rmdir .cache 2>/dev/null || echo "./.cache stays: there is more in it:" .cache/*; \
	fi

help:
	@echo 'twheel $(TWHEEL_VERSION)'
	@echo
	@echo '  make                builds twheel.ko for the running kernel, or for KDIR=...'
	@echo '  make install        installs it, its headers and a udev rule, runs depmod'
	@echo '  make uninstall      removes all of that'
	@echo '  make dkms-install   the same by dkms, which builds it for new kernels, too; each'
	@echo '                      way takes the place of the other; dkms-remove undoes it'
	@echo '    DESTDIR=...       below that folder; nothing of the running system is touched'
	@echo
	@echo '  make lib            builds libtwheel, the library for programs: lib/libtwheel.a and'
	@echo '                      lib/libtwheel.so; it needs neither the module nor a kernel'
	@echo '  make amalgamation   writes twheel.c and twheel.h, its part in the process, below'
	@echo '                      .cache/amalgamation, for programs that copy sources'
	@echo '  make check-lib      runs its tests, which need nothing else either'
	@echo '  make install-lib install-headers install-man'
	@echo '                      installs it, <linux/twheel.h> and the man pages below'
	@echo '                      PREFIX=/usr/local; libdir=..., mandir=... and DESTDIR=... as'
	@echo '                      usual; uninstall-lib and its like undo it'
	@echo '  make install-tools  builds and installs twheelctl; uninstall-tools undoes it'
	@echo '    For packages there are install-module and install-udev as well, see'
	@echo '    Documentation/packaging.rst; make dist makes a tar of the last commit.'
	@echo '  make module-packages  a Debian package of the module for KDIR, for machines without a'
	@echo '                      compiler; SIGN_KEY=... SIGN_CERT=... OUTPUT=... REVISION=1'
	@echo
	@echo '  make demo           boots a virtual machine and shows the module at work'
	@echo '  make shell          the same machine, with a prompt'
	@echo '  make languages      the smallest program in each of nine languages in that machine, of'
	@echo '                      those whose compilers are here'
	@echo '  make test           all tests; the last line is "N passed, N failed"'
	@echo '      KERNELS="$(KERNELS)"  Debian kernels to boot; demo and shell take the last'
	@echo '      TESTS="twheel_arm *race*"  only these, see make list; EXCEPT="...": all but these'
	@echo '      SMP=$(SMP)  virtual CPUs   V=1  say more'
	@echo '      TEST_TIMEOUT=1200  seconds that each program may take in the machine'
	@echo '      LANES=$(LANES)  virtual machines at a time'
	@echo '    They need Debian 12 or 13 on amd64. They fetch what is missing by themselves:'
	@echo '    tools from apt (as root), all else into .cache/ (about 600 MB). No kernel'
	@echo '    is installed, and no module is loaded into the running kernel.'
	@echo
	@echo '  make check          checks the sources with tools, without running them'
	@echo '  make docs           pages of Documentation/ in .cache/docs, by sphinx'
	@echo '  make drawings       makes their drawings again, with graphviz'
	@echo '  make test-debug     the tests on a kernel with KASAN, lockdep and their like,'
	@echo '  make test-race      on one with KCSAN, and'
	@echo '  make test-rt        on Debian'"'"'s PREEMPT_RT kernels'
	@echo '  make test-arm64     on an emulated arm64 machine, with Debian'"'"'s kernel for it'
	@echo '  make test-bare      make demo and make test in a bare Debian 12 and a bare Debian 13'
	@echo '  make test-packages  Debian packages: made, installed, upgraded, purged in bare systems'
	@echo '  make test-bindings  the bindings to other languages, of those whose tools are here, here and'
	@echo '                      in that machine; BINDINGS="python rust"'
	@echo '  make upstream       writes the form for the kernel tree into that in KSRC=..., or patches into SERIES=...'
	@echo '  make test-upstream  the same into the sources of 6.12 and 7.3, builds and tests it there'
	@echo '  make fuzz           ten million random calls on the debug kernel'
	@echo '  make model          a proof of the state machine, by spin'
	@echo '  make mutants        breaks the module on purpose, in one place at a time: a test has to'
	@echo '                      fail; MUTANTS="wakeups state/look_*" chooses among selftests/mutants'
	@echo '  make soak           400 days of simulated time'
	@echo '  make bench          the cost of timeouts: twheel and its peers, in instructions and'
	@echo '                      in time; BENCH="arm cancel" PEERS="twheel" MODES=instructions'
	@echo '  make bench-native   nanoseconds on this processor, beside the kernel'"'"'s timers; SIZES="1000"'
	@echo '                      BASE=commit: and beside the module of that commit'
	@echo '    Those that build a kernel do so once, in some minutes and 2 GB of .cache/;'
	@echo '    see Documentation/testing.rst.'
	@echo
	@echo '  make clean          removes build products; distclean .cache/ also'

.PHONY: all modules install uninstall install-module install-headers uninstall-headers \
	install-udev lib install-lib uninstall-lib install-man uninstall-man install-tools uninstall-tools check-lib \
	amalgamation dist module-packages upstream test-upstream test-packages test-bindings kdir dkms-source dkms-install \
	dkms-remove test list test-debug test-race test-rt test-arm64 test-bare \
	check docs drawings fuzz model \
	mutants soak languages \
	bench bench-native demo shell clean distclean help
