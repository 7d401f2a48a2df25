package azurite

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is also the node and the npm of tests that need them to misbehave, and processes that are killed or
// run beside each other.
func TestMain(m *testing.M) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if role, ok := roles[name]; ok {
		os.Exit(role())
	}
	if role, ok := roles[os.Getenv("AZCONC_TEST_ROLE")]; ok {
		os.Exit(role())
	}
	goleak.VerifyTestMain(m)
}

var roles = map[string]func() int{"node": fakeNode, "npm": fakeNPM, "installer": installer, "owner": owner}

// tools makes a folder with a node and an npm that are this binary and puts it alone on the PATH.
func tools(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		if err := os.Link(self, filepath.Join(dir, name)); err != nil {
			if err := copyFile(self, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	t.Setenv(DirVariable, "")
}

// cached gives Install a cache of the test's own, and returns it.
func cached(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		t.Setenv(name, t.TempDir())
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "azconc")
}

func entry(dir string) string { return filepath.Join(dir, azurite.entry) }

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errJoin(err, out.Close())
}

func errJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// fakeNode answers --version with AZCONC_TEST_NODE_VERSION, and is started as Azurite otherwise.
func fakeNode() int {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		if v := os.Getenv("AZCONC_TEST_NODE_VERSION"); v != "" {
			fmt.Println(v)
			return 0
		}
		fmt.Println("v20.20.2")
		return 0
	}
	switch os.Getenv("AZCONC_TEST_NODE") {
	case "taken":
		fmt.Println("Exit due to unhandled error: listen EADDRINUSE: address already in use 127.0.0.1:10000")
		return 1
	}
	// Silent until the parent closes stdin.
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// fakeNPM tells the test that it is half done and waits for its word before it goes on.
func fakeNPM() int {
	half := filepath.Join("node_modules", "azurite", "dist", "src")
	if err := os.MkdirAll(half, 0o755); err != nil {
		return 3
	}
	if addr := os.Getenv("AZCONC_TEST_ADDR"); addr != "" {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return 3
		}
		defer c.Close()
		if _, err := io.ReadAll(c); err != nil {
			return 3
		}
	}
	if os.Getenv("AZCONC_TEST_NPM") == "fails" {
		fmt.Fprintln(os.Stderr, "npm error code E404")
		fmt.Fprintln(os.Stderr, "npm error 404 azurite is nowhere to be found")
		return 1
	}
	if err := os.WriteFile(filepath.Join(half, "azurite.js"), []byte(strings.Join(os.Args[1:], " ")), 0o644); err != nil {
		return 3
	}
	return 0
}

// installer is a process that installs and prints where to.
func installer() int {
	dir, err := Install(context.Background(), os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(dir)
	return 0
}

// owner is a process that has a server and never stops it.
func owner() int {
	s, err := Start(context.Background(), nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(s.temp, s.Account().BlobURL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// self is this binary in another role.
func self(t *testing.T, role string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(append(os.Environ(), "AZCONC_TEST_ROLE="+role, "GORACE=atexit_sleep_ms=0"), env...)
	return cmd
}
