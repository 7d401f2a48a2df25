package azurite

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// gate is where fake npms report that they are half done.
func gate(t *testing.T) *net.TCPListener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv("AZCONC_TEST_ADDR", l.Addr().String())
	return l.(*net.TCPListener)
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestTheLockFilePinsTheVersionAndNamesNoRegistry(t *testing.T) {
	var lock struct {
		Packages map[string]struct{ Version, Resolved, Integrity string }
	}
	if err := json.Unmarshal(lockJSON, &lock); err != nil {
		t.Fatal(err)
	}
	if got := lock.Packages["node_modules/azurite"].Version; got != Version {
		t.Errorf("the lock file has Azurite %s, want %s", got, Version)
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("%s is taken from %s, want it left to npm's configuration", name, p.Resolved)
		}
		if name != "" && p.Integrity == "" {
			t.Errorf("%s has no checksum", name)
		}
	}
	if !strings.Contains(string(packageJSON), `"azurite": "`+Version+`"`) {
		t.Errorf("package.json does not ask for Azurite %s", Version)
	}
}

func TestAnInstallationAppearsWhenItIsComplete(t *testing.T) {
	tools(t, "node", "npm")
	cached(t)
	dir, err := Install(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(entry(dir))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(args), "ci ") || !strings.Contains(string(args), "--ignore-scripts") {
		t.Errorf("npm was given %q, want npm ci without scripts", args)
	}
	if lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json")); err != nil || string(lock) != string(lockJSON) {
		t.Errorf("npm did not work from the embedded lock file (%v)", err)
	}

	t.Setenv("PATH", "") // a second time nothing is needed
	again, err := Install(t.Context(), nil)
	if err != nil || again != dir {
		t.Errorf("Install again = %q, %v, want %q", again, err, dir)
	}
}

func TestOfProcessesThatInstallAtOnceOneDoes(t *testing.T) {
	tools(t, "node", "npm")
	l := gate(t)
	cache := cached(t)
	const n = 4
	var wg sync.WaitGroup
	waiting, exited := make(chan struct{}, n), make(chan struct{}, n)
	dirs := make([]string, n)
	for i := range n {
		wg.Go(func() {
			cmd := self(t, "installer")
			cmd.Stderr = writerFunc(func(p []byte) (int, error) {
				if strings.Contains(string(p), "waiting") {
					waiting <- struct{}{}
				}
				return len(p), nil
			})
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			dirs[i] = strings.TrimSpace(string(out))
			exited <- struct{}{}
		})
	}
	conns := make(chan net.Conn, n)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	working := <-conns
	for range n - 1 {
		select {
		case <-waiting:
		case c := <-conns:
			c.Close()
			t.Error("two processes install at the same time")
		case <-exited:
			t.Error("a process ended while another one installs")
		}
	}
	if names := entries(t, cache); len(names) != 2 {
		t.Errorf("the cache holds %v while one installs, want a lock and one new folder", names)
	}
	working.Close()
	wg.Wait()
	l.Close()
	for c := range conns {
		c.Close()
		t.Error("npm ran more than once")
	}
	for i, dir := range dirs {
		if dir != dirs[0] || !azurite.in(dir) {
			t.Errorf("process %d got %q, want %q, complete", i, dir, dirs[0])
		}
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestAnInstallationThatIsGivenUpLeavesNothingBehind(t *testing.T) {
	tools(t, "node", "npm")
	l := gate(t)
	cache := cached(t)
	why := errors.New("the user went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := Install(ctx, nil)
		done <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancel(why)
	if err := <-done; !errors.Is(err, why) {
		t.Errorf("Install = %v, want the context's cause", err)
	}
	for _, name := range entries(t, cache) {
		if !strings.HasSuffix(name, ".lock") {
			t.Errorf("%s was left behind", name)
		}
	}
}

// A killed installer cannot clean up. What it left must be neither used nor kept.
func TestWhatAKilledInstallerLeftIsNotUsed(t *testing.T) {
	tools(t, "node", "npm")
	l := gate(t)
	cache := cached(t)
	cmd := self(t, "installer")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	defer c.Close() // lets go of the npm, where the system let it live

	t.Setenv("AZCONC_TEST_ADDR", "")
	dir, err := Install(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !azurite.in(dir) {
		t.Errorf("%s is not complete", dir)
	}
	if names := entries(t, cache); len(names) != 2 {
		t.Errorf("the cache holds %v, want the lock and the installation", names)
	}
}

func TestAnIncompleteInstallationIsReplaced(t *testing.T) {
	tools(t, "node", "npm")
	cached(t)
	dir, err := Install(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(entry(dir)); err != nil {
		t.Fatal(err)
	}
	again, err := Install(t.Context(), nil)
	if err != nil || again != dir || !azurite.in(dir) {
		t.Errorf("Install = %q, %v, want %q, complete again", again, err, dir)
	}
}

func TestAFailedInstallationSaysWhatNpmSaid(t *testing.T) {
	tools(t, "node", "npm")
	t.Setenv("AZCONC_TEST_NPM", "fails")
	cache := cached(t)
	_, err := Install(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "could not be installed") || !strings.Contains(err.Error(), "azurite is nowhere to be found") {
		t.Errorf("Install = %v, want npm's message", err)
	}
	if names := entries(t, cache); len(names) != 1 {
		t.Errorf("the cache holds %v, want the lock alone", names)
	}
}

func TestAMissingToolIsNamedWithTheWayToGetIt(t *testing.T) {
	for _, test := range []struct {
		name    string
		tools   []string
		version string
		text    string
	}{
		{"nothing there", nil, "", "node is not on the PATH"},
		{"node without npm", []string{"node"}, "", "npm is not on the PATH"},
		{"old node", []string{"node", "npm"}, "v18.20.4", `node is "v18.20.4", older than 20`},
		{"something else called node", []string{"node", "npm"}, "1 cluster", "older than 20"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tools(t, test.tools...)
			t.Setenv("AZCONC_TEST_NODE_VERSION", test.version)
			cache := cached(t)
			_, err := Install(t.Context(), nil)
			if _, ok := errors.AsType[*ToolError](err); !ok {
				t.Fatalf("Install = %v, want a ToolError", err)
			}
			if !strings.Contains(err.Error(), test.text) || !strings.Contains(err.Error(), "install Node.js") {
				t.Errorf("Error() = %q, want %q in it, and how to get it", err, test.text)
			}
			if _, err := os.Stat(cache); !os.IsNotExist(err) {
				t.Errorf("the cache folder was made in vain (%v)", err)
			}
		})
	}
}

func TestACopyThatIsThereAlreadyIsUsed(t *testing.T) {
	t.Setenv("PATH", "")
	dir := t.TempDir()
	t.Setenv(DirVariable, dir)
	if got, err := Install(t.Context(), nil); err == nil || !strings.Contains(err.Error(), DirVariable) || !strings.Contains(err.Error(), "there is no ") {
		t.Errorf("Install = %q, %v, want an error that names %s", got, err, DirVariable)
	}
	copied(t, dir)
	if got, err := Install(t.Context(), nil); err != nil || got != dir {
		t.Errorf("Install = %q, %v, want %q", got, err, dir)
	}
}

// copied makes an installation that looks complete.
func copied(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(entry(dir)), 0o755), os.WriteFile(entry(dir), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
}
