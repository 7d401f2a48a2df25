package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

const rootModule = "github.com/azconc/azconc"

// tag prepares the tags of every module, each after those that it requires: the root's on the commit, and for each other module one on
// a commit of its own, whose go.mod requires this version of the others. The replace directives that they have here would count in
// this repository alone. The commits follow one another and are on no branch. If the root's tag is there, on this commit, all are.
func (r *release) tag(ctx context.Context) (err error) {
	if at, err := r.in(ctx, r.source, "git", "rev-list", "-n1", r.version); err == nil {
		if commit := strings.TrimSpace(string(at)); commit != r.commit {
			return fmt.Errorf("the tag %s is there, on %s", r.version, commit)
		}
		fmt.Printf("the tag %s is there: no tag is made\n", r.version)
		return nil
	}
	adapters, err := filepath.Glob(filepath.Join(r.source, "pkg", "adapters", "*", "go.mod"))
	if err != nil {
		return err
	}
	tree, err := os.MkdirTemp("", "azconc-tags-")
	if err != nil {
		return err
	}
	defer func() {
		_, e := r.in(context.WithoutCancel(ctx), r.source, "git", "worktree", "remove", "--force", tree)
		err = errors.Join(err, e, os.RemoveAll(tree))
	}()
	if _, err := r.in(ctx, r.source, "git", "worktree", "add", "--quiet", "--detach", tree, r.commit); err != nil {
		return err
	}
	dirs := []string{"", "pkg/telemetry"}
	for _, file := range adapters {
		dirs = append(dirs, "pkg/adapters/"+filepath.Base(filepath.Dir(file)))
	}
	sums := map[string][]string{} // the lines of go.sum, by module
	var tags []string
	for _, dir := range append(dirs, "cmd/azconc") {
		m := module.Version{Path: path.Join(rootModule, dir), Version: r.version}
		if dir != "" {
			if err := r.require(ctx, filepath.Join(tree, filepath.FromSlash(dir)), m, sums); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
		head, err := r.in(ctx, tree, "git", "rev-parse", "HEAD")
		if err != nil {
			return err
		}
		if sums[m.Path], err = r.hashes(ctx, strings.TrimSpace(string(head)), dir, m); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		tags = append(tags, path.Join(dir, r.version))
		if _, err := r.in(ctx, tree, "git", "tag", path.Join(dir, r.version)); err != nil {
			return err
		}
	}
	fmt.Printf("tagged; this makes them public:\n  git push origin %s\n", strings.Join(tags, " "))
	return nil
}

// require has the module in dir require the modules that are tagged already, in a commit that has the author and the time of r's.
func (r *release) require(ctx context.Context, dir string, m module.Version, sums map[string][]string) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	lines, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	all := strings.Split(strings.TrimSpace(string(lines)), "\n")
	for _, replaced := range slices.Clone(file.Replace) {
		other := replaced.Old.Path
		if sums[other] == nil {
			return fmt.Errorf("go.mod replaces %s, which has no tag before it", other)
		}
		if err := errors.Join(file.DropReplace(other, ""), file.AddRequire(other, m.Version)); err != nil {
			return err
		}
		all = append(all, sums[other]...)
	}
	file.Cleanup()
	if text, err = file.Format(); err != nil {
		return err
	}
	slices.Sort(all)
	if err := errors.Join(os.WriteFile(name, text, 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), []byte(strings.Join(all, "\n")+"\n"), 0o644)); err != nil {
		return err
	}
	_, err = r.in(ctx, dir, "sh", "-c", `export GIT_AUTHOR_NAME="$(git log -1 --format=%an "$1")" GIT_AUTHOR_EMAIL="$(git log -1 --format=%ae "$1")" GIT_AUTHOR_DATE="$2"
export GIT_COMMITTER_NAME="$GIT_AUTHOR_NAME" GIT_COMMITTER_EMAIL="$GIT_AUTHOR_EMAIL" GIT_COMMITTER_DATE="$2"
exec git commit -q -m "$3" go.mod go.sum`, "sh", r.commit, r.time.Format("2006-01-02T15:04:05Z"), strings.TrimPrefix(m.Path, rootModule+"/")+": requires azconc "+m.Version)
	return err
}

// hashes returns the lines that a go.sum has about a module as it is in a commit.
func (r *release) hashes(ctx context.Context, commit, dir string, m module.Version) ([]string, error) {
	packed, err := os.CreateTemp("", "azconc-module-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(packed.Name())
	if err := errors.Join(zip.CreateFromVCS(packed, m, r.source, commit, dir), packed.Close()); err != nil {
		return nil, err
	}
	whole, err := dirhash.HashZip(packed.Name(), dirhash.Hash1)
	if err != nil {
		return nil, err
	}
	text, err := r.in(ctx, r.source, "git", "show", commit+":"+path.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil })
	return []string{fmt.Sprintf("%s %s %s", m.Path, m.Version, whole), fmt.Sprintf("%s %s/go.mod %s", m.Path, m.Version, mod)}, err
}
