package main

import (
	"bytes"
	_ "embed"
	"strings"
	"text/template"
)

//go:embed azconc.rb.tmpl
var formulaText string

// formula writes the formula for Homebrew, with the checksums of the archives. Only systems that were built stand in it.
func (r *release) formula() error {
	type archive struct{ System, Arch, URL, SHA256 string }
	var archives []archive
	for _, target := range r.targets {
		system, arch, _ := strings.Cut(target, "/")
		name := r.name(target) + ".tar.gz"
		if sum, ok := r.sums[name]; ok {
			archives = append(archives, archive{
				map[string]string{"darwin": "macos", "linux": "linux"}[system], map[string]string{"amd64": "intel", "arm64": "arm"}[arch],
				"https://github.com/azconc/azconc/releases/download/" + r.version + "/" + name, sum,
			})
		}
	}
	var b bytes.Buffer
	if err := template.Must(template.New("formula").Parse(formulaText)).Execute(&b, map[string]any{
		"Version": r.number(), "Archives": archives,
	}); err != nil {
		return err
	}
	return r.write("azconc.rb", b.Bytes())
}
