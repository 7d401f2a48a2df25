package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

var snapshotTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z$`)

// FuzzNames gives any text as the name of a resource, with a signature behind it. A name that is accepted is legal and is
// read again the same; the signature is in no name and in no error.
func FuzzNames(f *testing.F) {
	for _, seed := range []string{
		"jobs/a/b.json", "jobs", "$root/x", "https://acme.blob.core.windows.net/jobs/a%20b", "http://127.0.0.1:10000/acme/jobs/a?snapshot=2026-01-31T12:00:05.1234567Z",
		"jobs/a?snapshot=2026-01-31T12:00:05.1234567Z", "http://[::1]:1/a/c/d", "jobs/eu/17", "https://acme.table.core.windows.net/jobs(PartitionKey='e''u',RowKey='17')", "reports/2026/q3.xlsx",
	} {
		f.Add(seed)
	}
	const secret = "T0PSECRETT0PSECRET"
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, secret) {
			return
		}
		signed := text
		if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
			signed += "?sv=2024-11-04&sig=" + secret
			if strings.Contains(text, "?") {
				signed = text + "&sig=" + secret
			}
		}
		shows := func(what, shown string, err error) {
			if err != nil {
				shown += err.Error() + fail.HintOf(err)
			}
			if strings.Contains(shown, secret) {
				t.Errorf("%s: %q is shown as %q", what, signed, shown)
			}
		}
		r, err := ref.ParseBlob(signed)
		shows("blob", r.String(), err)
		if err == nil {
			if ref.ValidContainer(r.Container) != nil || r.Blob == "" {
				t.Errorf("%q is %+v", signed, r)
			}
			plain := ref.Blob{Container: r.Container, Blob: r.Blob, Snapshot: r.Snapshot}
			if again, err := ref.ParseBlob(plain.String()); r.Version == "" && snapshotTime.MatchString(r.Snapshot) && (err != nil || again != plain) {
				t.Errorf("%q is %+v, and %q is %+v, %v", signed, r, plain.String(), again, err)
			}
		}
		c, err := ref.ParseContainer(signed)
		shows("container", c.String(), err)
		file, err := ref.ParseFile(text)
		shows("file", file.String(), err)
		if err == nil {
			if again, err := ref.ParseFile(file.String()); err != nil || again != file {
				t.Errorf("%q is %+v, and again %+v, %v", text, file, again, err)
			}
		}
		for parts := 1; parts <= 3; parts++ {
			x, err := ref.ParseTable(text, parts)
			if err != nil {
				continue
			}
			if again, err := ref.ParseTable(x.String(), parts); err != nil || again != x {
				t.Errorf("%q is %+v, and again %+v, %v", text, x, again, err)
			}
		}
	})
}
