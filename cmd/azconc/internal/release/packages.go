package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// format is a kind of package, with the places where its distributions look for completions.
type format struct {
	extension string
	packager  nfpm.Packager
	zsh       string
	recommend []string // what azconc works without
}

var formats = []format{
	{"deb", deb.Default, "/usr/share/zsh/vendor-completions/", []string{"ca-certificates", "bash-completion"}},
	{"rpm", rpm.DefaultRPM, "/usr/share/zsh/site-functions/", []string{"ca-certificates"}},
}

// pack makes a package. nfpm reads its contents from files, which are in work.
func (r *release) pack(f format, arch, binary, work string, common map[string][]byte) error {
	contents := files.Contents{r.content(binary, "/usr/bin/azconc", 0o755)}
	for _, name := range slices.Sorted(maps.Keys(common)) {
		data, to := common[name], ""
		switch folder, base := filepath.Split(name); {
		case folder == "man/":
			to = "/usr/share/man/man1/" + base + ".gz"
			packed, err := compressed(data)
			if err != nil {
				return err
			}
			data = packed
		case folder == "completions/bash/":
			to = "/usr/share/bash-completion/completions/" + base
		case folder == "completions/zsh/":
			to = f.zsh + base
		case folder == "completions/fish/":
			to = "/usr/share/fish/vendor_completions.d/" + base
		case folder == "completions/powershell/":
			continue
		case base == "LICENSE":
			to = "/usr/share/doc/azconc/copyright"
		default:
			to = "/usr/share/doc/azconc/" + base
		}
		file := filepath.Join(work, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			return err
		}
		contents = append(contents, r.content(file, to, 0o644))
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "azconc", Arch: arch, Platform: "linux", Version: r.version, Release: "1", Section: "utils", Priority: "optional",
		Maintainer: "azconc <https://github.com/azconc/azconc/issues>", Homepage: "https://github.com/azconc/azconc", License: "MIT",
		Description:     "Concurrency control for Azure Storage\nChanges, locks and consumes data in Azure Storage without losing concurrent work.",
		MTime:           r.time,
		DisableGlobbing: true,
		Overridables:    nfpm.Overridables{Contents: contents, Recommends: f.recommend, RPM: nfpm.RPM{BuildHost: "azconc", Group: "Applications/System"}},
	})
	if err := nfpm.PrepareForPackager(info, f.extension); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := f.packager.Package(info, &b); err != nil {
		return err
	}
	return r.write(f.packager.ConventionalFileName(info), b.Bytes())
}

// content has its owner, mode and time from here, not from the file that is read.
func (r *release) content(from, to string, mode os.FileMode) *files.Content {
	return &files.Content{Source: from, Destination: to, FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time}}
}
