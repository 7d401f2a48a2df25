package main

import (
	"bytes"
	"encoding/pem"
	"io/fs"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user of the image: neither root nor a user of the host.
const nobody = "65532:65532"

// image packs the Linux binaries as one image for several architectures, in the OCI layout, as a tar: azconc, certificate
// authorities and a directory for temporary files; no shell.
//
//	skopeo copy oci-archive:azconc_1.2.3_image.tar docker://registry.example/azconc:1.2.3
func (r *release) image(binaries map[string][]byte) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, target := range r.targets {
		arch, linux := strings.CutPrefix(target, "linux/")
		if !linux {
			continue
		}
		image, err := r.imageOf(arch, binaries[target])
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	dir, err := os.MkdirTemp("", "azconc-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{"org.opencontainers.image.ref.name": r.number()}},
	})); err != nil {
		return err
	}
	var entries []entry
	written := os.DirFS(dir)
	if err := fs.WalkDir(written, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(written, name)
		entries = append(entries, entry{name, data, 0o644})
		return err
	}); err != nil {
		return err
	}
	packed, err := tarred(entries, r.time)
	if err != nil {
		return err
	}
	return r.write("azconc_"+r.number()+"_image.tar", packed)
}

func (r *release) imageOf(arch string, binary []byte) (v1.Image, error) {
	var authorities bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil { // a PEM file cannot carry it
			continue
		}
		if err := pem.Encode(&authorities, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	content, err := gzipped([]entry{
		{"etc/", nil, os.ModeDir | 0o755}, {"etc/ssl/", nil, os.ModeDir | 0o755}, {"etc/ssl/certs/", nil, os.ModeDir | 0o755},
		{"etc/ssl/certs/ca-certificates.crt", authorities.Bytes(), 0o644},
		{"tmp/", nil, os.ModeDir | os.ModeSticky | 0o777},
		{"usr/", nil, os.ModeDir | 0o755}, {"usr/bin/", nil, os.ModeDir | 0o755},
		{"usr/bin/azconc", binary, 0o755},
	}, r.time)
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: static.NewLayer(content, types.OCILayer), MediaType: types.OCILayer,
	})
	if err != nil {
		return nil, err
	}
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", arch, v1.Time{Time: r.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/azconc"}, User: nobody, WorkingDir: "/tmp", Env: []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title": "azconc", "org.opencontainers.image.version": r.number(),
			"org.opencontainers.image.revision": r.commit, "org.opencontainers.image.source": "https://github.com/azconc/azconc",
		},
	}
	return mutate.ConfigFile(image, config)
}
