// Package azuritetest runs one Azurite for all tests of a package.
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(azuritetest.StopAfter(m)) }
//
//	func TestUpdate(t *testing.T) {
//		account := azuritetest.Account(t)
//		client, err := azblob.NewClientFromConnectionString(account.ConnectionString(), nil)
//		…
//	}
//
// The server starts when the first test asks for it and stops after the last one. Tests are isolated by account: each test
// gets a new one, at no cost, and need not clean up.
//
// A test that needs Azurite never passes without it. Where Node.js or npm is missing, and with AZCONC_SKIP_AZURITE=1, it is skipped with
// the reason. If Azurite cannot be installed or started otherwise, the test fails.
package azuritetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azurite"
)

// SkipVariable names the environment variable that, set to 1, skips the tests that need Azurite.
const SkipVariable = "AZCONC_SKIP_AZURITE"

// accounts is the number of tests in one process that can have an account of their own.
const accounts = 1000

// shared is the server of this test process.
var shared struct {
	mu      sync.Mutex
	wrapped bool            // guarded by mu: StopAfter will stop the server
	server  *azurite.Server // guarded by mu
	err     error           // guarded by mu: the reason why there is no server
	given   atomic.Int32    // accounts
}

// StopAfter returns m, with a Run that stops the shared server when the tests are done. If the server ended by itself
// while they ran, the run fails, even if no test has noticed. Without StopAfter there is no shared server, because
// nothing would stop it.
func StopAfter(m interface{ Run() int }) *M {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.wrapped = true
	return &M{m: m}
}

// M is a *testing.M after whose tests the shared server is stopped.
type M struct{ m interface{ Run() int } }

// Run runs the tests, stops the server and returns the exit code.
func (m *M) Run() int {
	code := m.m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	server := shared.server
	shared.wrapped, shared.server, shared.err = false, nil, nil
	if server == nil {
		return code
	}
	if err := server.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "the Azurite of these tests: %v\n", err)
		return max(code, 1)
	}
	return code
}

// Server returns the shared server. A test must not stop it: a test that stops Azurite, or that starts it with options,
// calls azurite.Start itself.
func Server(tb testing.TB) *azurite.Server {
	tb.Helper()
	skip(tb)
	server, err := start()
	if missing, ok := errors.AsType[*azurite.ToolError](err); ok {
		tb.Skipf("SKIP: not tested on Azurite: %v", missing)
	}
	if err != nil {
		tb.Fatalf("Azurite is needed and not available: %v (%s=1 skips the tests that need it)", err, SkipVariable)
	}
	return server
}

// Account returns an empty account of the shared server, for tb alone.
func Account(tb testing.TB) azurite.Account {
	tb.Helper()
	all := Server(tb).Accounts()
	next := int(shared.given.Add(1))
	if next >= len(all) {
		tb.Fatalf("all %d accounts are given away", accounts)
	}
	return all[next]
}

func skip(tb testing.TB) {
	tb.Helper()
	switch v := os.Getenv(SkipVariable); v {
	case "", "0":
	case "1":
		tb.Skipf("%s=1: not tested against Azurite", SkipVariable)
	default:
		tb.Fatalf("%s is %q, want 1 or nothing", SkipVariable, v)
	}
}

// start starts the server once. The first error is returned to all tests: trying again in each of a hundred tests would
// hide it.
func start() (*azurite.Server, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.wrapped {
		return nil, errors.New("TestMain does not call azuritetest.StopAfter")
	}
	if shared.server == nil && shared.err == nil {
		// Not the test's context: the server outlives it.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		names := []string{azurite.DefaultAccount}
		for i := range accounts {
			names = append(names, fmt.Sprintf("test%04d", i))
		}
		shared.server, shared.err = azurite.Start(ctx, &azurite.Options{Accounts: names, Progress: os.Stderr})
	}
	if shared.err != nil {
		return nil, shared.err
	}
	return shared.server, shared.server.Err()
}

// JavaScript runs a script with the JavaScript SDK and returns its output. The environment variable SDK names the SDK's
// folder, and CONNECTION the account. The SDK is installed once, from a lock file, into the user's cache. A test that
// needs it is skipped if Azurite is skipped.
func JavaScript(tb testing.TB, connection, script string, args ...string) []byte {
	tb.Helper()
	skip(tb)
	sdk, err := azurite.InstallJavaScript(tb.Context())
	if missing, ok := errors.AsType[*azurite.ToolError](err); ok {
		tb.Skipf("SKIP: not tested with the JavaScript SDK: %v", missing)
	}
	if err != nil {
		tb.Fatalf("the JavaScript SDK is needed and not available: %v", err)
	}
	cmd := exec.CommandContext(tb.Context(), "node", append([]string{script}, args...)...)
	cmd.Env = append(os.Environ(), "SDK="+sdk, "CONNECTION="+connection)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		tb.Fatalf("node %s %v: %v", script, args, err)
	}
	return out
}
