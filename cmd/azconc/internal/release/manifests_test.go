package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// TestManifestsNameTheArchives: package managers find the archives of a release where its assets are, with their checksums, and the
// binary where the archive has it.
func TestManifestsNameTheArchives(t *testing.T) {
	r := &release{version: testVersion, out: t.TempDir(), targets: []string{"linux/amd64", "windows/amd64", "windows/arm64"}, time: time.Unix(1700000000, 0).UTC(), sums: map[string]string{
		"azconc_1.2.3_linux_amd64.tar.gz": "sum-l", "azconc_1.2.3_windows_amd64.zip": "sum-x", "azconc_1.2.3_windows_arm64.zip": "sum-a"}}
	if err := r.manifests(); err != nil {
		t.Fatal(err)
	}
	const assets = "https://github.com/azconc/azconc/releases/download/v1.2.3/"
	formula := string(read(t, r.out, "azconc.rb"))
	if !strings.Contains(formula, assets+"azconc_1.2.3_linux_amd64.tar.gz") || !strings.Contains(formula, "sum-l") || strings.Contains(formula, "windows") {
		t.Errorf("the formula:\n%s", formula)
	}
	type address struct {
		URL, Hash string
		Folder    string `json:"extract_dir"`
	}
	var scoop struct {
		Version, Bin string
		Architecture map[string]address
	}
	if err := json.Unmarshal(read(t, r.out, "azconc.json"), &scoop); err != nil {
		t.Fatal(err)
	}
	for arch, want := range map[string]address{
		"64bit": {assets + "azconc_1.2.3_windows_amd64.zip", "sum-x", "azconc_1.2.3_windows_amd64"},
		"arm64": {assets + "azconc_1.2.3_windows_arm64.zip", "sum-a", "azconc_1.2.3_windows_arm64"},
	} {
		if scoop.Architecture[arch] != want || scoop.Version != "1.2.3" || scoop.Bin != "azconc.exe" {
			t.Errorf("Scoop's %s: %+v", arch, scoop)
		}
	}
	kinds := map[string]bool{}
	files, _ := filepath.Glob(filepath.Join(r.out, "azconc.azconc*.yaml"))
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var winget struct {
			Version    string `yaml:"PackageVersion"`
			Kind       string `yaml:"ManifestType"`
			Installers []struct {
				Arch  string `yaml:"Architecture"`
				URL   string `yaml:"InstallerUrl"`
				Sum   string `yaml:"InstallerSha256"`
				Files []struct {
					Path string `yaml:"RelativeFilePath"`
				} `yaml:"NestedInstallerFiles"`
			} `yaml:"Installers"`
		}
		if err := yaml.Unmarshal(data, &winget); err != nil || winget.Version != "1.2.3" {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
		if kinds[winget.Kind] = true; winget.Kind != "installer" {
			continue
		}
		if len(winget.Installers) != 2 {
			t.Fatalf("winget has %d installers", len(winget.Installers))
		}
		x := winget.Installers[0]
		if x.Arch != "x64" || x.URL != assets+"azconc_1.2.3_windows_amd64.zip" || x.Sum != "sum-x" || x.Files[0].Path != `azconc_1.2.3_windows_amd64\azconc.exe` {
			t.Errorf("winget has %+v", x)
		}
	}
	if len(kinds) != 3 {
		t.Errorf("winget has the manifests %v", kinds)
	}
	bare := &release{version: testVersion, out: t.TempDir(), targets: []string{"linux/amd64"}}
	if err := bare.manifests(); err != nil {
		t.Fatal(err)
	}
	if entries, _ := os.ReadDir(bare.out); len(entries) != 1 || entries[0].Name() != "azconc.rb" {
		t.Errorf("without Windows there is %v", entries)
	}
}
