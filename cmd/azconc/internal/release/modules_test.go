package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestEachModuleResolvesAsTagged requires every module from an empty one, without replace, from a GOPROXY that was made of the tags
// alone, and lists the packages that a program which imports it compiles. The command is installed as a stranger does, up to the
// compiler: go refuses that for a go.mod with a replace directive.
func TestEachModuleResolvesAsTagged(t *testing.T) {
	version := fmt.Sprintf("v1.2.3-test.%d", time.Now().UnixNano()) // go keeps what it has seen of a version
	source, proxy := cloned(t, "022"), t.TempDir()
	r := &release{version: version, source: source}
	if err := r.describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.tag(t.Context()); err != nil {
		t.Fatal(err)
	}
	environ := resolving(t, proxy, version)
	modules := []string{"", "pkg/telemetry", "pkg/adapters/certmagic", "pkg/adapters/clientgo", "pkg/adapters/gocron", "pkg/adapters/watermill", "cmd/azconc"}
	for _, module := range modules {
		publish(t, r, proxy, module)
	}
	for _, module := range modules {
		tagged, err := r.in(t.Context(), r.source, "git", "show", path.Join(module, version)+":"+path.Join(module, "go.mod"))
		if err != nil || strings.Contains(string(tagged), "replace") || module != "" && !strings.Contains(string(tagged), rootModule+" "+version) {
			t.Errorf("%s: its go.mod as tagged: %v\n%s", module, err, tagged)
		}
		dir := t.TempDir()
		if module == "cmd/azconc" {
			command(t, dir, environ, "go", "install", "-n", rootModule+"/cmd/azconc@"+version)
			continue
		}
		imported := path.Join(rootModule, cmp.Or(module, "optimistic/blobs"))
		command(t, dir, environ, "go", "mod", "init", "example.org/empty")
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n\nimport _ \""+imported+"\"\n\nfunc main() {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		command(t, dir, environ, "go", "get", imported+"@"+version)
		command(t, dir, environ, "go", "list", "-mod=readonly", "-deps", ".")
	}
	if err := r.tag(t.Context()); err != nil {
		t.Errorf("the tags are there: %v", err)
	}
	command(t, source, nil, "git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "another")
	if err := r.describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.tag(t.Context()); err == nil || !strings.Contains(err.Error(), "is there, on") {
		t.Errorf("the tag of another commit is taken: %v", err)
	}
}

// publish puts a module as tagged into a directory in the form of a GOPROXY.
func publish(t *testing.T, r *release, proxy, dir string) {
	t.Helper()
	m, tag := module.Version{Path: path.Join(rootModule, dir), Version: r.version}, path.Join(dir, r.version)
	at := filepath.Join(proxy, filepath.FromSlash(m.Path), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	if err := zip.CreateFromVCS(&packed, m, r.source, tag, dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		m.Version + ".zip":  packed.String(),
		m.Version + ".mod":  command(t, r.source, nil, "git", "show", tag+":"+path.Join(dir, "go.mod")),
		m.Version + ".info": fmt.Sprintf(`{"Version": %q, "Time": %q}`, m.Version, r.time.Format(time.RFC3339)),
		"list":              m.Version + "\n",
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// resolving returns an environment in which go knows the modules of the proxy beside those of the usual ones. What it keeps of them in
// the module cache is removed at the end.
func resolving(t *testing.T, proxy, version string) []string {
	var cache, usual string
	for name, value := range map[string]*string{"GOMODCACHE": &cache, "GOPROXY": &usual} {
		*value = strings.TrimSpace(command(t, t.TempDir(), nil, "go", "env", name))
	}
	t.Cleanup(func() {
		for _, pattern := range []string{rootModule + "@" + version, rootModule + "/*/*@" + version, rootModule + "/*/*/*@" + version} {
			for _, dir := range []string{pattern, "cache/download/" + strings.ReplaceAll(pattern, "@", "/@v/") + ".*"} {
				found, _ := filepath.Glob(filepath.Join(cache, filepath.FromSlash(dir)))
				for _, f := range found {
					_ = os.RemoveAll(f)
				}
			}
		}
	})
	return append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy)+","+usual, "GONOSUMDB="+rootModule, "GONOPROXY=", "GOPRIVATE=",
		"GOWORK=off", "GOFLAGS=-modcacherw -trimpath", "CGO_ENABLED=0")
}

func command(t *testing.T, dir string, environ []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = dir, environ
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
