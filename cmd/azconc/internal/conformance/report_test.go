package conformance

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/cmd/azconc/internal/azaccount"
	"github.com/azconc/azconc/pkg/azerr"
)

// ask asks the sections that r.only selects and the account has, and prints a table of what it answered. An answer that is not as
// expected is a row, and no failure of t. The table names neither the account nor its endpoints, so that it can be published.
func (r *rig) ask(t *testing.T) {
	what := "a real account"
	if r.emulator {
		what = "an emulator"
	}
	fmt.Fprintf(r.out, "azconc conformance: %s, by %s, %s\n", what, r.account.Credential(), time.Now().UTC().Format("2006-01-02 15:04 UTC"))
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, m := range build.Deps {
			if strings.HasPrefix(m.Path, "github.com/Azure/azure-sdk-for-go/sdk/storage/") || strings.HasSuffix(m.Path, "/aztables") {
				fmt.Fprintf(r.out, "%s %s\n", m.Path[strings.LastIndex(m.Path, "/")+1:], m.Version)
			}
		}
	}
	fmt.Fprintf(r.out, "%s %s/%s; names begin with %s\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, r.prefix)
	fmt.Fprintf(r.out, "| rule | expected | answered | source | |\n|---|---|---|---|---|\n")
	var skipped []string
	for _, s := range sections() {
		switch {
		case !r.only.MatchString(s.name) || r.ctx.Err() != nil:
		case !r.has(s.service):
			skipped = append(skipped, fmt.Sprintf("SKIP %s: the account has no endpoint of the %s service\n", s.name, s.service))
		default:
			fmt.Fprintf(r.stderr, "conformance: %s …\n", s.name)
			t.Run(s.name, func(t *testing.T) {
				h, whole := r.harness(), t.Name()
				h.Note = func(t *testing.T, a answered) {
					parts := strings.Split(strings.ReplaceAll(strings.TrimPrefix(t.Name(), whole), "_", " "), "/")
					parts[0] = s.name
					r.add(strings.Join(append(parts, a.question), ": "), "REST: "+s.sourceOf(parts[min(1, len(parts)-1)]), a)
				}
				s.ask(t, h)
			})
			if t.Failed() {
				r.different++
			}
		}
	}
	fmt.Fprintf(r.out, "\n%s%d rules: %d as expected, %d differ", strings.Join(skipped, ""), r.rules, r.rules-r.different, r.different)
	if r.emulator {
		fmt.Fprintf(r.out, "; of those expected, %d are known differences of the emulator from the service", r.known)
	}
	fmt.Fprintf(r.out, "\n%d requests\n", r.requests.Load())
	if r.ctx.Err() != nil {
		fmt.Fprintln(r.out, "interrupted: the table is not complete")
	}
}

// add prints a row.
func (r *rig) add(rule, source string, a answered) {
	r.rules++
	verdict := "ok"
	switch {
	case a.expected != a.got:
		verdict = "DIFFERS"
		r.different++
	case a.known != "":
		verdict = "known: " + a.known
		r.known++
	}
	fmt.Fprintf(r.out, "| %s | %s | %s | %s | %s |\n", r.hide(rule), r.hide(a.expected), r.hide(a.got), source, r.hide(verdict))
}

// problem says why the run has not shown that the account behaves as expected.
func (r *rig) problem() string {
	switch {
	case r.ctx.Err() != nil:
		return "interrupted"
	case r.rules == 0:
		return "nothing was asked"
	case r.different+r.left > 0:
		return fmt.Sprintf("%d rules differ, %d resources could not be removed", r.different, r.left)
	}
	return ""
}

// hide removes the account's secrets, and its name in hosts, from a text.
func (r *rig) hide(text string) string {
	for _, secret := range r.account.Secrets() {
		text = strings.ReplaceAll(text, secret, "REDACTED")
	}
	text = azerr.Redact(text)
	for _, s := range []azaccount.Service{azaccount.Blob, azaccount.Table, azaccount.Queue, azaccount.File} {
		if endpoint := r.account.Endpoint(s); endpoint != "" && !r.account.Emulator(s) {
			text = strings.ReplaceAll(text, strings.TrimPrefix(endpoint, "https://"), "account."+string(s))
		}
	}
	return strings.NewReplacer("\n", " ", "\r", "", "|", "\\|").Replace(text)
}
