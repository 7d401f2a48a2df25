package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// targets are the systems that a release is built for.
var targets = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// release is a release that is being built.
type release struct {
	version     string // with the v
	source, out string // absolute
	targets     []string

	commit string
	time   time.Time // of the commit: the time of every file
}

// number is the version as package managers write it.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// describe reads the commit. It refuses a clone with uncommitted changes: nobody could build the same again.
func (r *release) describe(ctx context.Context) error {
	if out, err := r.command(ctx, "git", "status", "--porcelain"); err != nil {
		return err
	} else if len(out) > 0 {
		return fmt.Errorf("%s has uncommitted changes: commit them, or build from a clone:\n%s", r.source, out)
	}
	out, err := r.command(ctx, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, at, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("git log: %w", err)
	}
	r.commit, r.time = commit, time.Unix(seconds, 0).UTC()
	return nil
}

// command runs a program in the clone and returns its output.
func (r *release) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = r.source
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// build makes everything, in a directory beside out that takes its place at the end: a failure leaves out as it was.
func (r *release) build(ctx context.Context) (err error) {
	if err := os.MkdirAll(filepath.Dir(r.out), 0o755); err != nil {
		return err
	}
	dist := r.out
	if r.out, err = os.MkdirTemp(filepath.Dir(dist), ".release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.out)) }()
	work, err := os.MkdirTemp("", "azconc-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	common, err := r.common(ctx)
	if err != nil {
		return err
	}
	binaries := make(map[string]string)
	for _, target := range r.targets {
		if binaries[target], err = r.compile(ctx, work, target); err != nil {
			return err
		}
		if err := r.archive(target, binaries[target], common); err != nil {
			return err
		}
		if err := r.materials(target, binaries[target]); err != nil {
			return err
		}
		if err := r.packages(target, binaries[target], common); err != nil {
			return err
		}
	}
	if err := r.image(binaries); err != nil {
		return err
	}
	if err := r.formula(); err != nil {
		return err
	}
	if err := r.checksums(); err != nil {
		return err
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := os.Chmod(r.out, 0o755); err != nil {
		return err
	}
	return os.Rename(r.out, dist)
}

// name is the name of what is made for a target, without an extension.
func (r *release) name(target string) string {
	return "azconc_" + r.number() + "_" + strings.ReplaceAll(target, "/", "_")
}

// write leaves a file in the release and says so.
func (r *release) write(name string, data []byte) error {
	path := filepath.Join(r.out, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return err
	}
	fmt.Printf("%-44s %9d bytes\n", name, len(data))
	return os.Chmod(path, 0o644) // whatever the umask
}

const checksumsName = "checksums.txt"

// checksums lists the SHA-256 of every file, in the form that sha256sum -c reads.
func (r *release) checksums() error {
	sums, err := r.sums()
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for _, name := range sortedKeys(sums) {
		fmt.Fprintf(&list, "%s  %s\n", sums[name], name)
	}
	return r.write(checksumsName, list.Bytes())
}

// sums are the SHA-256 of what there is so far, by name.
func (r *release) sums() (map[string]string, error) {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	sums := make(map[string]string)
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(data)
		sums[f.Name()] = hex.EncodeToString(sum[:])
	}
	return sums, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
