package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const testVersion = "v1.2.3"

// cloned returns a clone of the repository's last commit whose files have the modes that a umask leaves.
func cloned(t *testing.T, umask string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	top, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		t.Skipf("SKIP: a release is built from a git clone, and this is none: %v", err)
	}
	clone := exec.CommandContext(t.Context(), "sh", "-c", `umask "$1"; exec git clone -q "$2" "$3"`, "sh", umask, strings.TrimSpace(string(top)), dir)
	if out, err := clone.CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	return dir
}

// built builds a release for one system and returns its directory.
func built(t *testing.T, source string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "dist")
	args := append([]string{"-source", source, "-out", out, "-targets", "linux/" + runtime.GOARCH}, flags...)
	if err := run(t.Context(), append(args, testVersion)); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, dir, pattern string) []byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) != 1 {
		t.Fatalf("%s: %q, %v, want one file", pattern, paths, err)
	}
	data, err := os.ReadFile(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestARelease builds twice, since that is what takes time, and looks at everything.
func TestARelease(t *testing.T) {
	first := cloned(t, "022")
	dist := built(t, first)

	t.Run("the same bits from another directory and umask", func(t *testing.T) {
		again := built(t, cloned(t, "077"))
		if x, y := read(t, dist, "checksums.txt"), read(t, again, "checksums.txt"); !bytes.Equal(x, y) {
			t.Errorf("the checksums differ:\n%s\n%s", x, y)
		}
	})
	t.Run("archive", func(t *testing.T) { archiveIsWhole(t, dist, first) })
	t.Run("bill of materials", func(t *testing.T) { materialsAreThose(t, dist) })
	t.Run("image", func(t *testing.T) { imageIsBare(t, dist) })
	t.Run("packages", func(t *testing.T) {
		deb := read(t, dist, "*.deb")
		if !bytes.HasPrefix(deb, []byte("!<arch>\ndebian-binary")) {
			t.Errorf("the Debian package begins with %q", deb[:20])
		}
		if rpm := read(t, dist, "*.rpm"); !bytes.HasPrefix(rpm, []byte{0xed, 0xab, 0xee, 0xdb}) {
			t.Errorf("the Red Hat package begins with %q", rpm[:4])
		}
	})
	t.Run("formula", func(t *testing.T) {
		archive := sha256.Sum256(read(t, dist, "*.tar.gz"))
		formula := string(read(t, dist, "azconc.rb"))
		if n := strings.Count(formula, "sha256 \""); n != 1 || !strings.Contains(formula, hex.EncodeToString(archive[:])) {
			t.Errorf("the formula has %d archives, want one with the sum %x:\n%s", n, archive, formula)
		}
	})
}

// archiveIsWhole unpacks the archive, and asks the binary in it what it is.
func archiveIsWhole(t *testing.T, dist, source string) {
	z, err := gzip.NewReader(bytes.NewReader(read(t, dist, "*.tar.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	binary := filepath.Join(t.TempDir(), "azconc")
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		names = append(names, name)
		if want := map[bool]int64{true: 0o755, false: 0o644}[name == "azconc"]; h.Mode != want || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%s has mode %o and owner %d %q", h.Name, h.Mode, h.Uid, h.Uname)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if name == "azconc" {
			if err := os.WriteFile(binary, data, 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, want := range []string{"azconc", "README.md", "LICENSE", "CHANGELOG.md", "man/azconc.1", "man/azconc-lock-run.1", "completions/bash/azconc", "completions/zsh/_azconc"} {
		if !slices.Contains(names, want) {
			t.Errorf("the archive lacks %s: %q", want, names)
		}
	}
	commit, err := exec.CommandContext(t.Context(), "git", "-C", source, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "version", "-o", "json").Output()
	var version struct{ Version, Commit string }
	if err := errors.Join(err, json.Unmarshal(out, &version)); err != nil || version.Version != testVersion || version.Commit != strings.TrimSpace(string(commit)) {
		t.Errorf("azconc version printed %s, %v, want %s of %s", out, err, testVersion, commit)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil || !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "CGO_ENABLED" && s.Value == "0" }) {
		t.Errorf("the binary is not static: %v, %v", info, err)
	}
}

// materialsAreThose holds the bill against go.mod: what a release of the command needs stands in it with a sum.
func materialsAreThose(t *testing.T, dist string) {
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(read(t, dist, "*.cdx.json")), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	for _, c := range *bom.Components {
		sums[c.Name] = ""
		if c.Properties != nil {
			sums[c.Name] = (*c.Properties)[0].Value
		}
	}
	for _, want := range []string{"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "github.com/spf13/cobra"} {
		if !strings.HasPrefix(sums[want], "h1:") {
			t.Errorf("%s has the sum %q", want, sums[want])
		}
	}
	if _, ok := sums["stdlib"]; !ok || bom.SerialNumber != "" {
		t.Errorf("the bill has the serial number %q, and the standard library: %v", bom.SerialNumber, ok)
	}
}

// imageIsBare reads the image as a registry would get it.
func imageIsBare(t *testing.T, dist string) {
	dir := t.TempDir()
	for r := tar.NewReader(bytes.NewReader(read(t, dist, "*_image.tar"))); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := top.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %+v, %v, want one index", manifest, err)
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("the index has %+v, %v, want one image for %s", manifest, err, runtime.GOARCH)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Config.User != nobody || !slices.Equal(config.Config.Entrypoint, []string{"/usr/bin/azconc"}) {
		t.Errorf("the image runs %q as %q, %v", config.Config.Entrypoint, config.Config.User, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v, want one", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	modes := make(map[string]int64)
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
	if modes["usr/bin/azconc"] != 0o755 || modes["tmp/"] != 0o1777 || modes["etc/ssl/certs/ca-certificates.crt"] != 0o644 || len(modes) != 8 {
		t.Errorf("the image contains %v", modes)
	}
}

// TestUncommittedChangesAreRefused: such a release could not be built again.
func TestUncommittedChangesAreRefused(t *testing.T) {
	source := cloned(t, "022")
	if err := os.WriteFile(filepath.Join(source, "cmd", "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-source", source, "-out", filepath.Join(t.TempDir(), "dist"), testVersion})
	if err == nil || !strings.Contains(err.Error(), "uncommitted") || !strings.Contains(err.Error(), "cmd/notes.txt") {
		t.Errorf("err = %v, want one that names the file", err)
	}
}
