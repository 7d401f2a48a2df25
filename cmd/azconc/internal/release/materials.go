package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

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
	bom.Metadata = &cdx.Metadata{Timestamp: r.time.Format("2006-01-02T15:04:05Z"), Component: &self}
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
