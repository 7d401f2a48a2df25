package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// release is a release that is being built.
type release struct {
	version     string // with the v
	source, out string // absolute
	targets     []string

	commit string
	time   time.Time         // of the commit: the time of every file
	sums   map[string]string // the SHA-256 of what is written so far, by name
}

// describe reads the commit. It refuses a clone with uncommitted changes: nobody could build the same again.
func (r *release) describe(ctx context.Context) error {
	if out, err := r.in(ctx, r.source, "git", "status", "--porcelain"); err != nil {
		return err
	} else if len(out) > 0 {
		return fmt.Errorf("%s has uncommitted changes: commit them, or build from a clone:\n%s", r.source, out)
	}
	out, err := r.in(ctx, r.source, "git", "log", "-1", "--format=%H %ct")
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

// in runs a program in a directory and returns its output.
func (r *release) in(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// build makes everything. After a failure there are no checksums.
func (r *release) build(ctx context.Context) (err error) {
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "azconc-release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	common, err := r.common(ctx)
	if err != nil {
		return err
	}
	binaries := make(map[string][]byte)
	for _, target := range r.targets {
		binary, err := r.compile(ctx, work, target)
		if err != nil {
			return err
		}
		if binaries[target], err = os.ReadFile(binary); err != nil {
			return err
		}
		if err := errors.Join(r.archive(target, filepath.Base(binary), binaries[target], common), r.materials(target, binary)); err != nil {
			return err
		}
		if arch, linux := strings.CutPrefix(target, "linux/"); linux {
			for _, f := range formats {
				if err := r.pack(f, arch, binary, work, common); err != nil {
					return err
				}
			}
		}
	}
	if err := errors.Join(r.image(binaries), r.manifests()); err != nil {
		return err
	}
	var list bytes.Buffer // in the form that sha256sum -c reads
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&list, "%s  %s\n", r.sums[name], name)
	}
	return r.write("checksums.txt", list.Bytes())
}

// number is the version without the v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

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
	if r.sums == nil {
		r.sums = make(map[string]string)
	}
	r.sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	return os.Chmod(path, 0o644) // whatever the umask
}

// rootPackage has the variables in which the linker writes the version and the commit. It says nothing when there is no variable
// of that name, so a binary that runs here is asked. What Go would stamp itself differs between a clone and a linked worktree.
const rootPackage = "github.com/azconc/azconc/cmd/azconc/internal/cli/root"

// compile builds the command for a target and returns the path of the binary. A static binary runs in any image and on any
// distribution; without its symbols it is a third smaller.
func (r *release) compile(ctx context.Context, work, target string) (string, error) {
	system, arch, _ := strings.Cut(target, "/")
	binary := filepath.Join(work, strings.ReplaceAll(target, "/", "_"), "azconc")
	if system == "windows" {
		binary += ".exe"
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", fmt.Sprintf("-s -w -X %[1]s.Version=%[2]s -X %[1]s.Commit=%[3]s", rootPackage, r.version, r.commit), "-o", binary, ".")
	cmd.Dir = filepath.Join(r.source, "cmd", "azconc") // a module, whose go.mod says what a release contains
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build for %s: %w\n%s", target, err, out)
	}
	if target == runtime.GOOS+"/"+runtime.GOARCH {
		out, err := exec.CommandContext(ctx, binary, "version").Output()
		if err != nil || !bytes.HasPrefix(out, fmt.Appendf(nil, "azconc %s (commit %.12s, ", r.version, r.commit)) {
			return "", fmt.Errorf("the binary does not know what it was built from: azconc version printed %q (%v)", out, err)
		}
	}
	return binary, nil
}

// materials writes the software bill of materials of a binary, in the form of CycloneDX: the modules that the linker put into
// it, with the checksums that go.sum has. Targets differ: Windows links modules that Linux does not.
func (r *release) materials(target, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	self := component("github.com/azconc/azconc", r.version, "", cdx.ComponentTypeApplication)
	self.Properties = &[]cdx.Property{{Name: "commit", Value: r.commit}, {Name: "go", Value: info.GoVersion}, {Name: "target", Value: target}}
	components := []cdx.Component{component("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "", cdx.ComponentTypeLibrary)}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		components = append(components, component(module.Path, module.Version, module.Sum, cdx.ComponentTypeLibrary))
	}
	bom := cdx.NewBOM()
	bom.SerialNumber = "" // a random one would differ from build to build
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &self}
	bom.Components = &components
	var b bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return r.write(r.name(target)+".cdx.json", b.Bytes())
}

// component describes a module. Go's h1 is the hash of a list of hashes, not that of a file, so it is a property.
func component(path, version, sum string, kind cdx.ComponentType) cdx.Component {
	url := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	c := cdx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url}
	if sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go.sum", Value: sum}}
	}
	return c
}
