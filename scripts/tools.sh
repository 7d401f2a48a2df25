# Sourced by the other scripts: finds the repository and says what is missing, and how to get it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need() { # need COMMAND WHAT HOW
	command -v "$1" >/dev/null 2>&1 || { echo "$(basename "$0"): $2 is missing: $3" >&2; exit 69; }
}

need_go() {
	need go "Go 1.26" "see https://go.dev/doc/install"
}

need_node() {
	need node "Node 20 or newer" "see https://nodejs.org, or set AZCONC_SKIP_AZURITE=1 to do without Azurite"
	need npm "npm" "it comes with Node"
}
