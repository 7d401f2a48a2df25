package scene

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// varying is what differs from run to run in the name of a resource.
var varying = regexp.MustCompile(`(snapshot=|/slot/|/messages/)[^?& ]+`)

// statuses lists what was sent and what came back, without what differs from run to run.
func statuses(r Result, suffix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "== %s: %s\n", r.Name, r.Outcome)
	for _, w := range r.Tallies {
		fmt.Fprintf(&b, "%s: reported %d, %s %d\n", w.Way, w.Reported, w.Effect, w.Effects)
	}
	if len(r.Tallies) > 0 {
		return b.String()
	}
	for _, a := range r.Acts {
		fmt.Fprintf(&b, "%s: %s\n", a.Client, a.Does)
		var lines []string
		for _, q := range a.Requests {
			sent, _, _ := strings.Cut(q.Sent, "  ")
			got, _, _ := strings.Cut(q.Got, "  ")
			if strings.HasSuffix(sent, ".azconc-waiters") {
				continue // whether a release looks for waiters depends on how long the lock was held
			}
			line := strings.ReplaceAll("  "+sent+" -> "+got, suffix, "RUN")
			lines = append(lines, varying.ReplaceAllString(line, "${1}ID")+"\n")
		}
		b.WriteString(strings.Join(lines, ""))
	}
	return b.String()
}

func rig(connection string, options func() azcore.ClientOptions) Rig {
	r := OnConnection(connection, options)
	r.prefix = "azconc-ab12-"
	return r
}

// inMemory is a rig on a service in memory.
func inMemory(s *aztest.Service) Rig {
	return rig(aztest.ConnectionString(s.BlobURL())+"QueueEndpoint="+s.QueueURL()+";TableEndpoint="+s.TableURL()+";FileEndpoint="+s.FileURL(), s.ClientOptions)
}

// TestEachSceneGetsTheStatusesThatItShows plays every scene against the service in memory, where time is simulated.
func TestEachSceneGetsTheStatusesThatItShows(t *testing.T) {
	want, _ := os.ReadFile(filepath.Join("testdata", "statuses.txt"))
	var got strings.Builder
	for _, scene := range All {
		var played string
		for range tries {
			synctest.Test(t, func(t *testing.T) {
				r, err := play(t.Context(), inMemory(aztest.New(nil)), scene)
				if err != nil {
					t.Error(err)
				}
				for _, a := range r.Acts {
					if a.Command != "" { // the plain ways have none
						checkCommand(t, a.Command)
					}
				}
				played = statuses(r, "ab12")
			})
			if bytes.Contains(want, []byte(played)) {
				break
			}
		}
		got.WriteString(played)
	}
	golden(t, got.String())
}

// tries is how often a scene is played before it differs: two who look for one of 64 slots meet at the same in one run of 64.
const tries = 3

// golden compares with the statuses in testdata.
func golden(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", "statuses.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w, g := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i >= len(w) || i >= len(g) || w[i] != g[i] {
			t.Fatalf("line %d differs from %s; got from there on:\n%s", i+1, file, strings.Join(g[min(i, len(g)):], "\n"))
		}
	}
}

// TestAzuriteGivesTheSameStatuses plays the scenes against Azurite, and compares with the statuses of the service in memory.
func TestAzuriteGivesTheSameStatuses(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	a := azuritetest.Account(t)
	want, err := os.ReadFile(filepath.Join("testdata", "statuses.txt"))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	options := func() azcore.ClientOptions {
		return azcore.ClientOptions{Transport: &http.Client{Transport: transport}}
	}
	// A pop receipt that is no longer valid: 404 MessageNotFound from accounts, 400 PopReceiptMismatch from Azurite.
	for _, scene := range All {
		for try := 1; ; try++ {
			r, err := play(t.Context(), rig(a.ConnectionString(), options), scene)
			if err != nil {
				t.Error(err)
			}
			if scene.Name == "files" {
				if r.Outcome != "skipped" || r.Reason == "" {
					t.Errorf("files: %+v, want a scene that is skipped, with the reason", r)
				}
				break
			}
			got := strings.Replace(statuses(r, "ab12"), "400 PopReceiptMismatch", "404 MessageNotFound", 1)
			if strings.Contains(strings.ReplaceAll(string(want), "\r\n", "\n"), got) {
				break
			}
			if try == tries {
				t.Errorf("other statuses than the service in memory gives:\n%s", got)
				break
			}
		}
	}
}
