package main

import (
	"bytes"
	"embed"
	"path"
	"strings"
	"text/template"
)

// manifestTexts are the manifests of package managers: the formula of Homebrew, and for Windows the manifest of Scoop and the three of winget.
//
//go:embed manifests
var manifestTexts embed.FS

// manifests writes the manifests with the checksums of the archives. A system that was not built stands in none of them, and a
// manager of which no system was built has none.
func (r *release) manifests() error {
	type archive struct{ System, Arch, Folder, URL, SHA256 string }
	archives := make(map[bool][]archive) // true: for Windows
	for _, target := range r.targets {
		system, arch, _ := strings.Cut(target, "/")
		windows, extension := system == "windows", ".tar.gz"
		if windows {
			extension = ".zip"
		}
		name := r.name(target) + extension
		archives[windows] = append(archives[windows], archive{
			system, arch, r.name(target), "https://github.com/azconc/azconc/releases/download/" + r.version + "/" + name, r.sums[name],
		})
	}
	texts, err := template.ParseFS(manifestTexts, "manifests/*")
	if err != nil {
		return err
	}
	for _, text := range texts.Templates() {
		of := archives[path.Ext(text.Name()) != ".rb"]
		if len(of) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := text.Execute(&b, map[string]any{"Version": r.number(), "Date": r.time.Format("2006-01-02"), "Archives": of}); err != nil {
			return err
		}
		if err := r.write(text.Name(), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
