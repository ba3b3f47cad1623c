# The two commands of a newcomer are `make demo` and `make test`; the README tells more.

CARGO ?= cargo
# Where `make install` puts things; DESTDIR goes before it.
PREFIX ?= /usr/local
TARGET := x86_64-unknown-linux-gnu
ARM64 := aarch64-unknown-linux-gnu
GUEST := target/release/guest
FAULTLINE := target/release/faultline
# Where tests find what runs in a guest and what QEMU loads.
FOR_TESTS := FAULTLINE_GUEST=$(CURDIR)/$(GUEST) FAULTLINE_LIBRARIES=$(CURDIR)/target/release \
    FAULTLINE_PYTHON=$(CURDIR)/target/python/bin/python
# What checks the crates that we depend on.
DENY := target/tools/bin/cargo-deny
# The crates that neither boot nor fetch.
PURE := benchmarks code compare culprit export flight import kernelfiles mmtests model plots report stats
# What reads exported files in a test, pinned.
PYTHON_PACKAGES := crates/faultline/tests/export/requirements.txt

# Rust's options for programs of a guest, which contain neither the path of this directory nor Cargo's, and are compiled
# in one unit. So the same compiler makes the same bytes in every clone, and exact mode has the same figures.
FOR_GUEST := CARGO_ENCODED_RUSTFLAGS="$$(printf '%s\037%s\037%s\037%s\037%s\037%s' -C target-feature=+crt-static \
    -C codegen-units=1 "--remap-path-prefix=$$(pwd -P)=." \
    "--remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}=cargo")"

.PHONY: all deps arm64 guest plugin python build install deb dist check-packages demo quick test check-long lint deny \
    bench clean

all: build

# Whatever of compiler, QEMU and tools is missing.
deps:
	@scripts/install-deps

# The static binaries that run inside a guest, and beside them the library by which file systems for
# its disks are made the same each time. The program checks them against the list of digests.
guest: deps
	$(FOR_GUEST) $(CARGO) build --locked --release -p agent -p workloads --target $(TARGET)
	$(CARGO) build --locked --release -p stillmkfs
	mkdir -p $(GUEST)
	install -m 755 target/$(TARGET)/release/agent target/$(TARGET)/release/workloads \
	    target/release/libstillmkfs.so $(GUEST)
	cd $(GUEST) && sha256sum agent workloads libstillmkfs.so > sha256sums

# What arm64 guests need: QEMU, a cross compiler, Rust's library, and the static binaries that run in them. Nothing else
# needs it.
arm64: deps
	@scripts/install-deps arm64
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	    $(FOR_GUEST) $(CARGO) build --locked --release -p agent -p workloads --target $(ARM64)
	mkdir -p $(GUEST)/arm64
	install -m 755 target/$(ARM64)/release/agent target/$(ARM64)/release/workloads $(GUEST)/arm64
	cd $(GUEST)/arm64 && sha256sum agent workloads > sha256sums

# What QEMU loads in exact mode: the plugin that counts, and the clock that stands still; with digests.
plugin: deps
	$(CARGO) build --locked --release -p tcg -p stillclock
	cd target/release && sha256sum libtcg.so libstillclock.so > sha256sums

# A Python with pandas and DuckDB, for a test alone.
python: target/python/installed

target/python/installed: $(PYTHON_PACKAGES) | deps
	python3 -m venv --clear target/python
	target/python/bin/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes --only-binary=:all: --requirement $(PYTHON_PACKAGES)
	touch $@

build: guest plugin
	$(CARGO) build --locked --release -p faultline

# The program, what it brings into guests and QEMU, man pages and completions, for all users.
install: build
	rm -rf target/generated
	$(FAULTLINE) generate target/generated
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(FAULTLINE)
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/faultline \
	    target/release/libtcg.so target/release/libstillclock.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/faultline target/release/sha256sums
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/faultline/guest \
	    $(GUEST)/agent $(GUEST)/workloads $(GUEST)/libstillmkfs.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib/faultline/guest $(GUEST)/sha256sums
	for file in $(wildcard $(GUEST)/arm64/*); do \
	    install -D -t $(DESTDIR)$(PREFIX)/lib/faultline/guest/arm64 $$file || exit; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man1 target/generated/*.1
	install -D -m 644 target/generated/faultline.bash \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/faultline
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d \
	    target/generated/faultline.fish
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions target/generated/_faultline

# A Debian package, and an archive whose program needs no library of the host. Both need no compiler where they are
# installed, but QEMU.
deb: build
	rm -rf target/package/deb
	$(MAKE) --no-print-directory install DESTDIR=target/package/deb PREFIX=/usr
	scripts/package deb target/package/deb

dist: build
	CARGO_ENCODED_RUSTFLAGS="-Ctarget-feature=+crt-static" \
	    $(CARGO) build --locked --release -p faultline --target $(TARGET) --target-dir target/static
	rm -rf target/package/tar
	$(MAKE) --no-print-directory install DESTDIR=target/package/tar PREFIX= \
	    FAULTLINE=target/static/$(TARGET)/release/faultline
	scripts/package tar target/package/tar

# Installs both in new systems, Debian 12 and 13, and asks them something.
check-packages: deb dist
	scripts/check-packages

# Two kernels, one table.
demo: build
	scripts/demo $(FAULTLINE)

# The unit tests of the crates that only compute, in about a minute.
quick:
	$(CARGO) test --locked --no-fail-fast --lib $(addprefix -p ,$(PURE))

# Where rustup can add Rust's library for arm64, tests boot arm64 kernels too.
FOR_ARM64 := $(if $(shell command -v rustup),arm64)

# Every test but the ignored ones, which take minutes or fetch packages. Kernels are fetched and booted. Boots follow
# each other: two would disturb each other.
test: guest plugin python $(FOR_ARM64)
	$(FOR_TESTS) $(CARGO) test --locked --workspace --no-fail-fast

# The ignored tests too, and a minute of damaged inputs for each parser.
check-long: guest plugin python $(FOR_ARM64) lint check-packages
	$(FOR_TESTS) FUZZ_SECONDS=60 $(CARGO) test --locked --workspace --no-fail-fast -- --include-ignored

lint: deny
	$(CARGO) fmt --all --check
	rustfmt --check crates/workloads/src/*.rs crates/workloads/src/*/mod.rs
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS='-D warnings -A rustdoc::private_intra_doc_links' $(CARGO) doc --locked --workspace --no-deps --document-private-items

# Licences and duplicate versions of the crates that we depend on, and known vulnerabilities.
deny: target/tools/bin/cargo-deny
	$(DENY) check licenses bans sources
	@if $(DENY) fetch db 2>/dev/null; then $(DENY) check advisories; \
	else echo "skipped: advisories, whose list cannot be fetched here"; fi

target/tools/bin/cargo-deny: | deps
	$(CARGO) install --locked --debug --root target/tools cargo-deny@0.20.2

bench: guest plugin
	$(CARGO) run --locked --release -p bench-sampler
	$(CARGO) run --locked --release -p bench-exact
	$(CARGO) run --locked --release -p bench-stats-calibration
	$(CARGO) run --locked --release -p bench-culprit
	$(CARGO) build --locked --release -p faultline
	$(CARGO) run --locked --release -p bench-compare
	$(CARGO) run --locked --release -p bench-answer -- target/release/faultline
	$(CARGO) run --locked --release -p bench-store
	$(CARGO) run --locked --release -p bench-profile
	$(CARGO) run --locked --release -p bench-luck -- $(FAULTLINE) target/luck.db
	$(CARGO) run --locked --release -p bench-events -- $(FAULTLINE)
	$(CARGO) run --locked --release -p bench-memory
	$(CARGO) run --locked --release -p bench-build

clean:
	$(CARGO) clean
