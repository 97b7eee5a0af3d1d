# The two commands of the README, and the ones behind them. Everything installs what it needs by itself.
.PHONY: help demo test unit arm avx512 programs python wheel evp-test openssl-versions cyclone-test bench build install setup fmt lint docs
.DEFAULT_GOAL := help

help:           ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 20

demo: build     ## nginx with and without Bywash, side by side, every byte verified
	@demo/run.sh

test: build unit arm programs python   ## every test

setup:
	@scripts/setup

build: setup    ## the command, the provider and the C library, in target/release
	@[ -e target/release/bywash ] || echo "building, for the first time: some minutes" >&2
	@cargo build --quiet --release --workspace

unit: setup     ## unit, property, conformance and integration tests
	@cargo test --quiet --workspace --no-fail-fast

arm: setup      ## the kernels for AArch64, checked, and tested by qemu
	@scripts/arm

avx512: setup   ## the kernels for AVX-512, in an emulator where the processor has none (minutes; not part of `make test`)
	@scripts/avx512

programs: build ## real programs and servers under `bywash run`
	@tests/run.sh

python: build   ## the Python package: its tests, with a local Ray and an S3-compatible server
	@tests/python.sh

wheel: setup    ## the Python package as a wheel, in target/wheels
	@scripts/python
	@CARGO_TARGET_DIR=$(CURDIR)/target target/python/bin/pip wheel --quiet --no-deps --wheel-dir target/wheels crates/interfaces/python

evp-test: build ## OpenSSL's own evp_test data through the provider (downloads and builds Debian's source package)
	@crates/interfaces/openssl/tests/evp-test.sh

openssl-versions: build ## the provider with OpenSSL 3.5 and 3.6, in later Debians (root; fetches some 2 GB; minutes)
	@tests/openssl-versions.sh

cyclone-test: setup ## Cyclone DDS' own security tests against the plug-in (downloads and builds Debian's source package; libcunit1-dev)
	@crates/interfaces/dds/cyclone/tests/cyclone-suites.py

bench: build    ## every benchmark, one after the other
	@bench/run.sh

PREFIX ?= /usr/local
install: build  ## into PREFIX (/usr/local); the broker's settings go to /etc/bywash
	install -D -m 755 target/release/bywash $(DESTDIR)$(PREFIX)/bin/bywash
	install -D -m 644 target/release/libbywash_openssl.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_openssl.so
	install -D -m 644 target/release/libbywash_async.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_async.so
	install -D -m 644 target/release/libbywash_fastdds.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_fastdds.so
	install -D -m 644 target/release/libbywash_dds_cyclone.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_dds_cyclone.so
	install -D -m 644 target/release/libbywash_cryptodev_preload.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_cryptodev_preload.so
	install -D -m 644 target/release/libbywash_cryptodev_loaded.so $(DESTDIR)$(PREFIX)/lib/bywash/libbywash_cryptodev_loaded.so
	install -D -m 644 crates/interfaces/cryptodev/abi/include/crypto/cryptodev.h $(DESTDIR)$(PREFIX)/include/bywash/crypto/cryptodev.h
	install -D -m 644 target/release/libbywash_c.so $(DESTDIR)$(PREFIX)/lib/libbywash_c.so
	install -D -m 644 crates/interfaces/c/include/bywash.h $(DESTDIR)$(PREFIX)/include/bywash.h
	install -D -m 644 packaging/bywash.service $(DESTDIR)$(PREFIX)/lib/systemd/system/bywash.service
	install -D -m 644 packaging/70-bywash-crypto.rules $(DESTDIR)$(PREFIX)/lib/udev/rules.d/70-bywash-crypto.rules
	test -e $(DESTDIR)/etc/bywash/broker.toml || install -D -m 644 packaging/broker.toml $(DESTDIR)/etc/bywash/broker.toml
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	target/release/bywash completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/bywash
	target/release/bywash man $(DESTDIR)$(PREFIX)/share/man/man1

fmt:
	@cargo fmt --all --check

lint:
	@cargo clippy --quiet --workspace --all-targets -- -D warnings

docs:
	@RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps
