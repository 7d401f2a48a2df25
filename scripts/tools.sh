# Sourced by the other scripts: goes to the top of the repository, says which tool is missing and how to get it.
set -euo pipefail
caller=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/azconc"

need() { # need COMMAND WHAT HOW
	command -v "$1" >/dev/null 2>&1 || {
		echo "$(basename "$0"): $2 is missing: $3" >&2
		exit 69
	}
}

need_go() {
	need go "Go 1.26" "see https://go.dev/doc/install"
}

# modules are the folders with a go.mod: the libraries, the command, telemetry, the adapters and scripts/cluster. go.work joins them, but
# ./... stands for the packages of one.
modules=(. cmd/azconc cmd/internal/cluster pkg/telemetry pkg/adapters/*/)
# packages are those of all of them but the adapters.
packages=(./... ./cmd/azconc/... ./cmd/internal/cluster/... ./pkg/telemetry/...)

# as_released has go compile as a release is compiled, so that packages are compiled once for the tests, lint, the release and
# whatever else runs without the race detector: all of them take them from the build cache.
as_released() { export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath"; }

need_node() {
	need node "Node.js 20 or newer" "install it with npm, by your system's package manager or from https://nodejs.org"
	need npm "npm" "it comes with Node.js; some systems package it as npm"
}

# build_program PACKAGE leaves the path of a fresh program in $program. Unlike go run, a program returns its own exit status and gets the
# signals that are meant for it. The rename leaves a running one as it is.
build_program() {
	local new
	program="$cache/bin/$(basename "$1")"
	mkdir -p "$cache/bin"
	new=$(mktemp "$program.XXXXXX")
	go build -o "$new" "$1" || {
		rm -f "$new"
		return 1
	}
	mv -f "$new" "$program"
}

# go_tool NAME PACKAGE VERSION leaves the path of a pinned tool in $tool. It is built on first use, which takes some minutes
# for large ones, and kept in the user's cache for each version of Go: a tool built by an older Go refuses newer code.
go_tool() {
	local dir new
	dir="$cache/$1/$3-$(go env GOVERSION)"
	tool="$dir/$1"
	if [ -x "$tool" ]; then return; fi
	echo "building $1 $3, once …" >&2
	mkdir -p "$dir"
	new=$(mktemp -d "$dir/.new-XXXXXX")
	if ! GOBIN="$new" GOOS='' GOARCH='' nice go install "$2@$3"; then
		rm -rf "$new"
		return 1
	fi
	mv -f "$new/$1" "$dir/"
	rm -rf "$new"
}
