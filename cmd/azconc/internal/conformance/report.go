package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/azerr"
)

// report prints the table, row by row. hide removes secrets from every text.
type report struct {
	out       io.Writer
	hide      func(string) string
	emulator  bool
	rules     int
	different int
	known     int
	skipped   []string
}

// row is one line of the table.
type row struct {
	rule, expected, answered, source string
	known                            string // why the emulator differs here
}

// hidden returns a function that removes the account's secrets, and its name in hosts, from a text.
func hidden(a *azaccount.Account) func(string) string {
	return func(text string) string {
		for _, secret := range a.Secrets() {
			text = strings.ReplaceAll(text, secret, "REDACTED")
		}
		text = azerr.Redact(text)
		for _, s := range []azaccount.Service{azaccount.Blob, azaccount.Table, azaccount.Queue, azaccount.File} {
			if endpoint := a.Endpoint(s); endpoint != "" && !a.Emulator(s) {
				text = strings.ReplaceAll(text, strings.TrimPrefix(endpoint, "https://"), "account."+string(s))
			}
		}
		return strings.NewReplacer("\n", " ", "\r", "", "|", "\\|").Replace(text)
	}
}

// begin prints the head of the table. It names neither the account nor its endpoints, so that the output can be
// published.
func (o *report) begin(r *rig) {
	what := "a real account"
	if r.emulator {
		what = "an emulator"
	}
	fmt.Fprintf(o.out, "azconc conformance: %s, by %s, %s\n", what, r.account.Credential(), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if strings.HasPrefix(m.Path, "github.com/Azure/azure-sdk-for-go/sdk/storage/") || strings.HasSuffix(m.Path, "/aztables") {
				fmt.Fprintf(o.out, "%s %s\n", m.Path[strings.LastIndex(m.Path, "/")+1:], m.Version)
			}
		}
	}
	fmt.Fprintf(o.out, "%s %s/%s; names begin with %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, r.prefix)
	fmt.Fprintf(o.out, "| rule | expected | answered | source | |\n|---|---|---|---|---|\n")
}

func (o *report) add(x row) {
	o.rules++
	verdict := "ok"
	switch {
	case x.expected != x.answered:
		verdict = "DIFFERS"
		o.different++
	case x.known != "":
		verdict = "known: " + x.known
		o.known++
	}
	fmt.Fprintf(o.out, "| %s | %s | %s | %s | %s |\n", o.hide(x.rule), o.hide(x.expected), o.hide(x.answered), x.source, o.hide(verdict))
}

func (o *report) skip(section, why string) { o.skipped = append(o.skipped, section+": "+why) }

func (o *report) end(r *rig) {
	fmt.Fprintln(o.out)
	for _, s := range o.skipped {
		fmt.Fprintln(o.out, "SKIP", s)
	}
	fmt.Fprintf(o.out, "%d rules: %d as expected, %d differ", o.rules, o.rules-o.different, o.different)
	if o.emulator {
		fmt.Fprintf(o.out, "; of those expected, %d are known differences of the emulator from the service", o.known)
	}
	fmt.Fprintf(o.out, "\n%d requests\n", r.requests.Load())
	if r.ctx.Err() != nil {
		fmt.Fprintln(o.out, "interrupted: the table is not complete")
	}
}
