// Command elsewhere says whether the repository compiles on other systems, and vets the files that Linux does not compile.
//
//	go run ./cmd/internal/elsewhere darwin windows
//
// It type-checks the source of everything, tests and dependencies included, and generates no code: go build would compile
// the standard library, the SDK and azconc for each system, which takes seven times as long. What it leaves out, which is to
// generate code and to link, is the work of the jobs of CI that run on these systems, and of scripts/release.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run ./cmd/internal/elsewhere system…") }
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(64)
	}
	code := 0
	for _, system := range flag.Args() { // one after the other: each takes more than a gigabyte
		report, err := examine(".", system)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			code = 1
			continue
		}
		fmt.Printf("%s: %d packages are type-checked, %d of them vetted: they have files that Linux does not compile\n", system, report.packages, report.vetted)
	}
	os.Exit(code)
}

// report counts the packages of the repository, those of tests included.
type report struct{ packages, vetted int }

// faults is an error that has one line for each of them.
type faults []string

func (f faults) Error() string { return strings.Join(f, "\n") }
