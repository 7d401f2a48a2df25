package main

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/aztest"
)

var shellSnippet = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// stage is the world of the snippets: the files, blobs, queues and commands that they name. What runs until it is stopped
// runs until there is nothing left to do, and nothing is installed: the azconc under test is on the path already.
const stage = `
set -eu
azconc() {
	case "$*" in
	"queue consume "*--exit-when-empty*) command azconc "$@" ;;
	"queue consume "*) command azconc "$@" --exit-when-empty ;;
	*) command azconc "$@" ;;
	esac
}
go() { :; }
for script in nightly.sh deploy deploy.sh encode.sh scheduler report.sh charge.sh handle print-order; do
	printf '#!/bin/sh\ncat >/dev/null\n' >$script
done
printf '#!/bin/sh\ncat >/dev/null\necho "{\\"order\\": 17}"\n' >order-to-rows
chmod +x *
echo '{"n": 1}' >new.json
echo '{"n": 1}' >f.json
echo pears >more.txt
mkdir mount
export EDITOR=true
{
	azconc container create jobs
	echo '{"n": 0}' | azconc blob put jobs/state.json --file -
	echo 'a: 1' | azconc blob put jobs/config.yaml --file -
	azconc table create jobs
	azconc table create orders
	azconc queue create orders
	azconc queue create orders-poison
	azconc share create reports
	echo '{"n": 0}' | azconc file put reports/state.json --file -
	echo q3 | azconc file put reports/q3.xlsx --file -
} >/dev/null
ETAG=$(azconc blob show jobs/state.json -o json | grep -o '0x[0-9A-F]*' | head -n 1)
`

// TestEverySnippetOfTheReadmesRuns runs the shell snippets as they are printed, each file's in one shell after the other.
func TestEverySnippetOfTheReadmesRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIP: the snippets are for a POSIX shell")
	}
	azconc, err := exec.LookPath("azconc")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../../README.md", "README.md"} {
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			script := stage
			for _, m := range shellSnippet.FindAllStringSubmatch(string(text), -1) {
				switch {
				case m[1] == "scripts/demo\n": // see TestTheDemoShowsTheBugAndTheCure
				case strings.Contains(m[1], "azconc dev run"): // it starts an Azurite: see testdata/dev/run.txtar
					script += "unset -f azconc\n(unset AZURE_STORAGE_CONNECTION_STRING\n" + m[1] + ")\n"
					needAzurite(t)
				default:
					script += strings.ReplaceAll(m[1], "/mnt/reports/", "./mount/")
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			shell := exec.CommandContext(ctx, "bash", "-x", "-c", script)
			shell.Dir = t.TempDir()
			shell.Env = append(os.Environ(), "AZURE_STORAGE_CONNECTION_STRING="+inMemory(t), "PATH="+filepath.Dir(azconc)+string(os.PathListSeparator)+os.Getenv("PATH"))
			if out, err := shell.CombinedOutput(); err != nil {
				lines := strings.Split(strings.TrimSpace(string(out)), "\n")
				t.Errorf("%v after\n%s", err, strings.Join(lines[max(0, len(lines)-12):], "\n"))
			}
		})
	}
}

// inMemory returns the connection string of a service in memory with all four of its parts on loopback.
func inMemory(t *testing.T) string {
	service := aztest.New(nil)
	endpoint := func(s *httptest.Server) string {
		t.Cleanup(s.Close)
		return s.URL + "/" + aztest.Account
	}
	return aztest.ConnectionString(endpoint(httptest.NewServer(service.BlobHandler()))) +
		"TableEndpoint=" + endpoint(httptest.NewServer(service.TableHandler())) +
		";QueueEndpoint=" + endpoint(httptest.NewServer(service.QueueHandler())) +
		";FileEndpoint=" + endpoint(httptest.NewServer(service.FileHandler())) + ";"
}
