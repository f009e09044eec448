# SPDX-License-Identifier: Apache-2.0
# Names in front of CMakePresets.json. The program is build/headroom, the library build/libheadroom.a.
.PHONY: build install uninstall deb wheel check check-full full soak fuzz dev tsan bench bench-check tidy clean

TEST = ctest --output-on-failure --no-tests=error --parallel $$(nproc) --timeout 7200

build:
	cmake --preset release
	cmake --build build

# make install PREFIX=$HOME/.local, or DESTDIR=DIR for packages.
PREFIX ?= /usr/local
install:
	cmake --preset install -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	cmake --build build/install --target headroom headroom_library headroom_shared pages
	cmake --install build/install

uninstall:
	packaging/uninstall build/install/install_manifest.txt

# Debian packages of HEAD, built, read by lintian and used from a bare tree.
deb:
	packaging/check-deb

# A wheel of Python, built, installed into a virtual environment, and used.
wheel:
	packaging/check-wheel

check:
	./check

# Those tests that draw random cases with larger counts, and then all under the sanitizers.
check-full: full dev tsan deb wheel

full soak: LABEL = -L counted
full soak dev tsan:
	cmake --preset $@
	cmake --build build/$@
	$(TEST) --test-dir build/$@ $(LABEL)

# What reads files of others against any bytes, ten minutes each.
fuzz:
	cmake --preset $@
	cmake --build build/$@ --target $@
	$(TEST) --test-dir build/$@ -R _fuzz

bench: build
	bench/run

# Fails when a kernel variant is slower than the rung below it, or computes something else.
bench-check:
	cmake --preset release
	cmake --build build --target kernels_bench
	build/bench/kernels_bench

tidy:
	tools/tidy

clean:
	rm -rf build
