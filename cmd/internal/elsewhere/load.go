package main

import (
	"errors"
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// whole is all that analysis needs, of the packages named and of what they import.
const whole = packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule |
	packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedTypesSizes

var errNothingVetted = errors.New("no package has files that Linux does not compile: the lists of files are wrong")

// examine type-checks the module in a directory for a system, and vets what is different there. The error names each fault.
func examine(dir, system string) (report, error) {
	config := &packages.Config{Mode: whole, Tests: true, Dir: dir, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS=")}
	all, err := packages.Load(config, "./...")
	if err != nil {
		return report{}, err
	}
	all = slices.DeleteFunc(all, func(p *packages.Package) bool { return strings.HasSuffix(p.ID, ".test") }) // the main packages of go test
	var found faults
	packages.Visit(all, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			found = append(found, err.Error())
		}
	})
	if len(found) > 0 {
		return report{}, found
	}
	// The others have been vetted on Linux, and differ in nothing that vet looks at.
	there := slices.DeleteFunc(slices.Clone(all), func(p *packages.Package) bool { return !foreign(p) })
	if len(there) == 0 {
		return report{}, errNothingVetted
	}
	return report{packages: len(all), vetted: len(there)}, vet(there)
}

// foreign says whether a package has a file that Linux does not compile.
func foreign(p *packages.Package) bool {
	linux := build.Default
	linux.GOOS, linux.CgoEnabled = "linux", false
	return slices.ContainsFunc(p.GoFiles, func(name string) bool {
		match, err := linux.MatchFile(filepath.Split(name))
		return err == nil && !match
	})
}
