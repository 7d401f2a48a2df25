package azurite

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/azconc/azconc/pkg/ptr"
)

// Version is the version of Azurite that is installed.
const Version = "3.37.0"

// DirVariable names the environment variable with the directory of an existing copy of Azurite.
const DirVariable = "AZCONC_AZURITE_DIR"

//go:embed npm/package.json
var packageJSON []byte

// lockJSON names no registry, so that npm uses the one that its user has configured. The checksums hold for all of
// them.
//
//go:embed npm/package-lock.json
var lockJSON []byte

// InstallOptions are the options of [Install].
type InstallOptions struct {
	// CacheDir is the folder that holds the installation's folder.
	// Defaults to azconc in the user's cache folder (os.UserCacheDir).
	CacheDir string
	// Progress is called with a line for each step that takes time. Defaults to none.
	Progress io.Writer

	_ struct{}
}

func (o *InstallOptions) withDefaults() (InstallOptions, error) {
	out := ptr.Value(o)
	if out.CacheDir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return out, fmt.Errorf("find a folder for Azurite: %w (InstallOptions.CacheDir or %s can name one)", err, DirVariable)
		}
		out.CacheDir = filepath.Join(cache, "azconc")
	}
	var err error
	if out.CacheDir, err = filepath.Abs(out.CacheDir); err != nil {
		return out, fmt.Errorf("CacheDir: %w", err)
	}
	out.Progress = cmp.Or[io.Writer](out.Progress, io.Discard)
	return out, nil
}

// Install installs Azurite, unless it is installed, and returns its folder.
//
// An installation is made in a folder of its own and renamed when it is complete, so that an incomplete one is never
// used. Its name contains a hash of the lock file. Any number of processes may call Install at the same time: one
// installs, and the others wait for it. If Install fails or ctx ends, it leaves nothing behind. The next installation
// removes the files of a process that was killed.
//
// Errors are a [ToolError], a [ProcessError] of kind [ErrInstall] with npm's output, the cause of ctx, or those of the
// file system.
func Install(ctx context.Context, opts *InstallOptions) (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return preinstalled(dir)
	}
	o, err := opts.withDefaults()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(packageJSON[:len(packageJSON):len(packageJSON)], lockJSON...))
	final := filepath.Join(o.CacheDir, "azurite-"+Version+"-"+hex.EncodeToString(sum[:6]))
	if complete(final) {
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
	if err := os.MkdirAll(o.CacheDir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(ctx, final+".lock", func() {
		fmt.Fprintln(o.Progress, "waiting for another process that is installing Azurite")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if complete(final) {
		return final, nil
	}
	if err := removeLeftovers(final); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Progress, "installing Azurite %s into %s, once, about 365 MB\n", Version, final)
	began := time.Now()
	if err := install(ctx, npm, final); err != nil {
		return "", err
	}
	fmt.Fprintf(o.Progress, "installed Azurite in %v\n", time.Since(began).Round(time.Second))
	return final, nil
}

// removeLeftovers removes incomplete folders of killed processes, and a final folder with parts missing. The caller
// holds the lock, so no process works in any of these.
func removeLeftovers(final string) error {
	stale, err := filepath.Glob(final + ".new-*")
	if err != nil {
		return err
	}
	if _, err := os.Lstat(final); err == nil {
		damaged := final + ".new-damaged"
		if err := os.Rename(final, damaged); err != nil {
			return err
		}
		stale = append(stale, damaged)
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func install(ctx context.Context, npm, final string) error {
	staging, err := os.MkdirTemp(filepath.Dir(final), filepath.Base(final)+".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging) //nolint:errcheck // the next install removes what could not be removed
	if err := errors.Join(
		os.Chmod(staging, 0o755), // MkdirTemp's 0700 would lock out other users of the cache
		os.WriteFile(filepath.Join(staging, "package.json"), packageJSON, 0o644),
		os.WriteFile(filepath.Join(staging, "package-lock.json"), lockJSON, 0o644),
	); err != nil {
		return err
	}
	said := newOutput()
	// Scripts of packages are not run: Azurite needs none. --prefix is given because inside of npm run the environment
	// points npm elsewhere, --engine-strict=false because of oldestNode.
	cmd := exec.CommandContext(ctx, npm, "ci", "--prefix="+staging, "--ignore-scripts", "--no-audit", "--no-fund",
		"--no-update-notifier", "--engine-strict=false", "--loglevel=error")
	cmd.Dir = staging
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 5 * time.Second
	runtime.LockOSThread() // see ownGroup
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &ProcessError{Kind: ErrInstall, Output: said.String(), Err: fmt.Errorf("npm ci: %w", err)}
	}
	if !complete(staging) {
		return &ProcessError{Kind: ErrInstall, Output: said.String(), Err: errors.New("npm ci succeeded, but left no Azurite")}
	}
	return publish(staging, final)
}

// publish renames a complete installation to its final name. If the lock does not exclude other processes, as on some
// network file systems, the first process wins and the others use its installation: a folder cannot be renamed onto a
// folder that is not empty.
func publish(staging, final string) error {
	err := os.Rename(staging, final)
	if err != nil && complete(final) {
		return nil
	}
	return err
}

// entry is the path of Azurite's script in an installation.
func entry(dir string) string {
	return filepath.Join(dir, "node_modules", "azurite", "dist", "src", "azurite.js")
}

func complete(dir string) bool {
	info, err := os.Stat(entry(dir))
	return err == nil && info.Mode().IsRegular()
}

// preinstalled checks the copy that the environment names. A version that does not support the SDK's API version would
// refuse every request with 400 InvalidHeaderValue, which does not show the cause.
func preinstalled(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("%s: %w", DirVariable, err)
	}
	if !complete(dir) {
		return "", fmt.Errorf("%s: there is no %s; it has to name the folder in which npm install azurite@%s was run", DirVariable, entry(dir), Version)
	}
	var pkg struct{ Version string }
	data, err := os.ReadFile(filepath.Join(dir, "node_modules", "azurite", "package.json"))
	if err == nil {
		err = json.Unmarshal(data, &pkg)
	}
	if err != nil {
		return "", fmt.Errorf("%s: read Azurite's version: %w", DirVariable, err)
	}
	if older(pkg.Version, Version) {
		return "", fmt.Errorf("%s: Azurite %s is older than %s", DirVariable, pkg.Version, Version)
	}
	return dir, nil
}

// older compares versions of three numbers. A version that is not of that form is older than any.
func older(a, b string) bool {
	var x, y [3]int
	if _, err := fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2]); err != nil {
		return true
	}
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	for i := range x {
		if x[i] != y[i] {
			return x[i] < y[i]
		}
	}
	return false
}
