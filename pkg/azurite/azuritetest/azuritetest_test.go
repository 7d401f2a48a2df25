package azuritetest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/pkg/azurite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(StopAfter(m)) }

func TestEachTestHasAnEmptyAccount(t *testing.T) {
	for range 2 {
		account := Account(t)
		tr := &http.Transport{}
		client, err := azblob.NewClientFromConnectionString(account.ConnectionString(), &azblob.ClientOptions{
			ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: tr}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.CreateContainer(t.Context(), "jobs", nil); err != nil {
			t.Errorf("create a container in %s: %v", account.Name, err)
		}
		tr.CloseIdleConnections()
	}
}

func TestTheServerIsOneForAllTests(t *testing.T) {
	if Server(t) != Server(t) {
		t.Error("two servers were started")
	}
}

// recorder is a test that is looked at rather than run: Fatal and Skip end its goroutine as they end a test's.
type recorder struct {
	testing.TB
	failed, skipped string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	panic(r)
}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	panic(r)
}

// ask has a recorder ask for the server, in a process state of its own.
func ask(t *testing.T, wrapped bool) *recorder {
	t.Helper()
	shared.mu.Lock()
	saved, savedErr := shared.server, shared.err
	shared.server, shared.err, shared.wrapped = nil, nil, wrapped
	shared.mu.Unlock()
	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.server, shared.err, shared.wrapped = saved, savedErr, true
	}()
	r := &recorder{}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(r) {
				panic(p)
			}
		}()
		Server(r)
		t.Error("there was a server")
	}()
	return r
}

func TestWithoutNodeATestIsSkippedWithTheReason(t *testing.T) {
	t.Setenv(SkipVariable, "")
	t.Setenv(azurite.DirVariable, "")
	t.Setenv("PATH", t.TempDir())
	if r := ask(t, true); r.failed != "" || !strings.Contains(r.skipped, "node is not on the PATH") {
		t.Errorf("failed with %q, skipped with %q, want it skipped, with what is missing", r.failed, r.skipped)
	}
}

func TestTheVariableSkips(t *testing.T) {
	t.Setenv(SkipVariable, "1")
	if r := ask(t, true); r.failed != "" || !strings.Contains(r.skipped, SkipVariable) {
		t.Errorf("failed with %q, skipped with %q, want it skipped, with the reason", r.failed, r.skipped)
	}
	t.Setenv(SkipVariable, "yes")
	if r := ask(t, true); r.skipped != "" || !strings.Contains(r.failed, `"yes"`) {
		t.Errorf("failed with %q, skipped with %q, want it failed: it may have been meant otherwise", r.failed, r.skipped)
	}
}

func TestAServerThatWouldNotBeStoppedIsNotStarted(t *testing.T) {
	t.Setenv(SkipVariable, "")
	if r := ask(t, false); !strings.Contains(r.failed, "StopAfter") {
		t.Errorf("failed with %q, want it to name StopAfter", r.failed)
	}
}

// runFunc is a testing.M.
type runFunc func() int

func (f runFunc) Run() int { return f() }

// mortal is an Azurite that dies of the first request.
const mortal = `
const names = ["Blob", "Queue", "Table"];
const next = () => {
  const name = names.shift();
  if (!name) return;
  const server = require("node:http").createServer((_, answer) => {
    answer.setHeader("Server", "Azurite-" + name + "/0");
    answer.end(() => process.exit(7));
  });
  server.listen(0, "127.0.0.1", () => {
    console.log("Azurite " + name + " service is successfully listening at http://127.0.0.1:" + server.address().port);
    next();
  });
};
next();`

func TestAServerThatDiedFailsTheRun(t *testing.T) {
	skip(t)
	dir := t.TempDir()
	pkg := filepath.Join(dir, "node_modules", "azurite")
	if err := os.MkdirAll(filepath.Join(pkg, "dist", "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pkg, "dist", "src", "azurite.js"), []byte(mortal), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(azurite.DirVariable, dir)
	server, err := azurite.Start(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	shared.mu.Lock()
	saved := shared.server
	shared.server = server
	shared.mu.Unlock()
	defer func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		shared.server, shared.wrapped = saved, true
	}()
	code := StopAfter(runFunc(func() int {
		if resp, err := http.Get(server.Account().BlobURL); err == nil {
			resp.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
		<-server.Done()
		return 0
	})).Run()
	if code == 0 {
		t.Error("the run succeeded")
	}
}
