package azuritetest

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/azconc/azconc/pkg/azurite"
)

//go:embed javascript/package.json
var javascriptPackage []byte

// javascriptLock names no registry, so that npm uses the one that its user has configured. The checksums hold for all
// of them.
//
//go:embed javascript/package-lock.json
var javascriptLock []byte

// JavaScript runs a script with the JavaScript SDK and returns its output. The environment variable SDK names the SDK's
// folder, and CONNECTION the account. The SDK is installed once, from a lock file, into the user's cache. A test that
// needs it is skipped if Azurite is skipped.
func JavaScript(tb testing.TB, account azurite.Account, script string, args ...string) []byte {
	tb.Helper()
	return JavaScriptAt(tb, account.ConnectionString(), script, args...)
}

// JavaScriptAt is JavaScript with the connection string of any account.
func JavaScriptAt(tb testing.TB, connection, script string, args ...string) []byte {
	tb.Helper()
	skip(tb)
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skipf("SKIP: not tested with the JavaScript SDK: %v", err)
		}
	}
	sdk, err := installJavaScript(tb)
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

// installJavaScript installs into a new folder, which is renamed when it is complete.
func installJavaScript(tb testing.TB) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "azconc", fmt.Sprintf("javascript-%x", sha256.Sum256(javascriptLock))[:24])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "javascript.new-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(fresh) }() // does not exist any more if all went well
	for name, data := range map[string][]byte{"package.json": javascriptPackage, "package-lock.json": javascriptLock} {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o644); err != nil {
			return "", err
		}
	}
	npm := exec.CommandContext(tb.Context(), "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
	npm.Dir = fresh
	if out, err := npm.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	if err := os.Rename(fresh, dir); err != nil {
		if _, there := os.Stat(dir); there != nil { // no other process was faster
			return "", err
		}
	}
	return dir, nil
}
