package azurite

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Version is the version of Azurite that is installed.
const Version = "3.37.0"

// DirVariable names the environment variable with the directory of an existing copy of Azurite.
const DirVariable = "AZCONC_AZURITE_DIR"

var (
	//go:embed npm/package.json
	packageJSON []byte
	//go:embed npm/package-lock.json
	lockJSON []byte
	//go:embed npm/javascript/package.json
	javaScriptJSON []byte
	//go:embed npm/javascript/package-lock.json
	javaScriptLock []byte
)

// npmPackage is a package of npm, with its dependencies pinned by a lock file. That names no registry, so that npm uses the one that its
// user has configured. The checksums hold for all of them.
type npmPackage struct {
	name       string // of it, in messages
	folder     string // in the cache, without the hash
	json, lock []byte
	entry      string // a file of it
}

var (
	azurite    = npmPackage{"Azurite " + Version, "azurite-" + Version, packageJSON, lockJSON, filepath.Join("node_modules", "azurite", "dist", "src", "azurite.js")}
	javaScript = npmPackage{"the JavaScript SDK", "javascript", javaScriptJSON, javaScriptLock, filepath.Join("node_modules", "@azure", "storage-queue", "package.json")}
)

// Install installs Azurite, unless it is installed, and returns its folder. It writes a line to progress, which may be nil, for each step
// that takes time.
//
// An installation is made in a folder of its own and renamed when it is complete, so that an incomplete one is never
// used. Its name contains a hash of the lock file. Any number of processes may call Install at the same time: one
// installs, and the others wait for it. If Install fails or ctx ends, it leaves nothing behind. The next installation
// removes the files of a process that was killed.
//
// Errors are a [ToolError], a [ProcessError] with npm's output, the cause of ctx, or those of the file system.
func Install(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		dir, err := filepath.Abs(dir)
		if err == nil && !azurite.in(dir) {
			err = fmt.Errorf("there is no %s in %s; it has to name the folder in which npm install azurite@%s was run", azurite.entry, dir, Version)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", DirVariable, err)
		}
		return dir, nil
	}
	return azurite.install(ctx, cmp.Or(progress, io.Discard))
}

// InstallJavaScript is [Install] for the SDK of JavaScript, with which tests compare what azconc stores.
func InstallJavaScript(ctx context.Context) (string, error) {
	return javaScript.install(ctx, io.Discard)
}

func (p npmPackage) install(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for %s: %w (%s can name one)", p.name, err, DirVariable)
	}
	sum := sha256.Sum256(slices.Concat(p.json, p.lock))
	final := filepath.Join(cache, "azconc", fmt.Sprintf("%s-%x", p.folder, sum[:6]))
	if p.in(final) {
		return final, nil
	}
	// Checked before anything is written, because the installation would fail without them.
	if _, err := findNode(ctx); err != nil {
		return "", err
	}
	npm, err := findTool("npm")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return "", err
	}
	// The file stays: if it were removed, a second process could lock a new one of the same name.
	lock := flock.New(final+".lock", flock.SetPermissions(0o644))
	held, err := lock.TryLock()
	if err == nil && !held {
		fmt.Fprintf(progress, "waiting for another process that is installing %s\n", p.name)
		_, err = lock.TryLockContext(ctx, 100*time.Millisecond)
	}
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
	}
	defer func() { _ = lock.Close() }()
	if p.in(final) {
		return final, nil
	}
	leftovers, err := filepath.Glob(final + ".new-*")
	if err != nil {
		return "", err
	}
	for _, dir := range append(leftovers, final) { // incomplete ones: no process works in any of them
		if err := os.RemoveAll(dir); err != nil {
			return "", err
		}
	}
	fmt.Fprintf(progress, "installing %s into %s, once\n", p.name, final)
	began := time.Now()
	if err := p.ci(ctx, npm, final); err != nil {
		return "", err
	}
	fmt.Fprintf(progress, "installed %s in %v\n", p.name, time.Since(began).Round(time.Second))
	return final, nil
}

// ci runs npm ci in a folder that becomes final.
func (p npmPackage) ci(ctx context.Context, npm, final string) error {
	staging, err := os.MkdirTemp(filepath.Dir(final), filepath.Base(final)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging) //nolint:errcheck // the next install removes what could not be removed
	if err := errors.Join(
		os.Chmod(staging, 0o755), // MkdirTemp's 0700 would lock out other users of the cache
		os.WriteFile(filepath.Join(staging, "package.json"), p.json, 0o644),
		os.WriteFile(filepath.Join(staging, "package-lock.json"), p.lock, 0o644),
	); err != nil {
		return err
	}
	said := newOutput()
	// Scripts of packages are not run: none is needed. --prefix is given because inside of npm run the environment
	// points npm elsewhere, --engine-strict=false because of oldestNode.
	cmd := exec.CommandContext(ctx, npm, "ci", "--prefix="+staging, "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-update-notifier", "--engine-strict=false", "--loglevel=error")
	cmd.Dir = staging
	cmd.Stdout, cmd.Stderr = said, said
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil && !p.in(staging):
		err = errors.New("it left nothing")
	}
	if err != nil {
		return &ProcessError{What: p.name + " could not be installed", Output: said.String(), Err: fmt.Errorf("npm ci: %w", err)}
	}
	return os.Rename(staging, final)
}

// in reports whether a folder has a complete installation.
func (p npmPackage) in(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, p.entry))
	return err == nil && info.Mode().IsRegular()
}

// oldestNode is the oldest major version of Node.js that the tests have run on. Azurite's package asks for 22, which
// npm only warns about.
const oldestNode = 20

// ToolError describes a tool that is missing or too old, and how to get it.
type ToolError struct {
	// Problem describes the problem.
	Problem string
	// Hint tells the user how to get the tool.
	Hint string
}

func (e *ToolError) Error() string { return e.Problem + ": " + e.Hint }

func toolError(problem string) error {
	return &ToolError{problem, "install Node.js 20 or newer with npm, by the package manager of your system or from https://nodejs.org"}
}

// findNode returns the path of a node that is new enough.
func findNode(ctx context.Context) (string, error) {
	node, err := findTool("node")
	if err != nil {
		return "", err
	}
	// This does not start node's JavaScript engine: it takes milliseconds.
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", toolError("node --version fails (" + err.Error() + ")")
	}
	version := strings.TrimSpace(string(out))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		return "", toolError(fmt.Sprintf("node is %.40q, older than %d", version, oldestNode))
	}
	return node, nil
}

func findTool(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", toolError(name + " is not on the PATH")
	}
	return path, nil
}

// ProcessError is the failure of npm or of Azurite itself, with the end of what it printed.
type ProcessError struct {
	// What says what failed: "Azurite 3.37.0 did not start".
	What string
	// Output is the end of what the process wrote to stdout and stderr.
	Output string
	// Err says how the process ended, or why the wait for it ended.
	Err error
}

func (e *ProcessError) Error() string {
	s := fmt.Sprintf("%s: %v", e.What, e.Err)
	if e.Output != "" {
		s += "; its last output:\n  " + strings.ReplaceAll(e.Output, "\n", "\n  ")
	}
	return s
}

func (e *ProcessError) Unwrap() error { return e.Err }
