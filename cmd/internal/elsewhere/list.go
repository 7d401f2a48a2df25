package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// listed is a package, or a variant of it that is compiled for a test, as go list prints it.
type listed struct {
	Dir, ImportPath, Name string
	ForTest               string // the package whose test this variant is compiled for
	GoFiles               []string
	ImportMap             map[string]string // from import paths in the source to those of what is imported
	Module                *struct {
		Path, GoVersion string
		Main            bool
	}
}

// own says whether the package is one of this repository.
func (p *listed) own() bool { return p.Module != nil && p.Module.Main }

// target is go/build's idea of a system on the processor at hand.
func target(system string) build.Context {
	c := build.Default
	c.GOOS, c.CgoEnabled = system, false
	return c
}

// list returns the packages below a directory, their tests, and all that these import: what is imported comes first.
func list(dir, system string) ([]*listed, error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=Dir,ImportPath,Name,ForTest,GoFiles,ImportMap,Module", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var all []*listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// foreign says whether the package has a file that Linux does not compile.
func (p *listed) foreign() bool {
	linux := target("linux")
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		dir, base := filepath.Split(name)
		if dir == "" {
			dir = p.Dir
		}
		match, err := linux.MatchFile(dir, base)
		return err == nil && !match
	})
}
