package cli_test

import (
	"strings"
	"testing"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
)

func TestResourcesAreParsed(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want ref.Blob
	}{
		{"jobs", ref.Blob{Container: "jobs"}},
		{"$root/a", ref.Blob{Container: "$root", Blob: "a"}},
		{"jobs/a/b c%20?.json", ref.Blob{Container: "jobs", Blob: "a/b c%20?.json"}},
		{"jobs//a", ref.Blob{Container: "jobs", Blob: "/a"}},
		{"https://acme.blob.core.windows.net/jobs/a%20b/c", ref.Blob{Container: "jobs", Blob: "a b/c", Endpoint: "https://acme.blob.core.windows.net"}},
		{"http://127.0.0.1:10000/devstoreaccount1/jobs/a", ref.Blob{Container: "jobs", Blob: "a", Endpoint: "http://127.0.0.1:10000/devstoreaccount1"}},
		{"http://localhost:1/acct/jobs", ref.Blob{Container: "jobs", Endpoint: "http://localhost:1/acct"}},
		{"https://acme.blob.core.windows.net/jobs/a?sv=1&sig=x%2By&snapshot=S", ref.Blob{
			Container: "jobs", Blob: "a", Snapshot: "S", Endpoint: "https://acme.blob.core.windows.net", SAS: "sig=x%2By&sv=1",
		}},
	} {
		parse := ref.ParseBlob
		if c.want.Blob == "" {
			parse = ref.ParseContainer
		}
		if got, err := parse(c.arg); err != nil || got != c.want {
			t.Errorf("%q = %+v, %v\nwant %+v", c.arg, got, err, c.want)
		}
	}
}

func TestInvalidNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"", "names no container"}, {"ab/x", "not a container's name"}, {strings.Repeat("a", 64) + "/x", "too long"}, {"Jobs/x", "not a container's name"},
		{"jobs_1/x", "not a container's name"}, {"-jobs/x", "not a container's name"}, {"jobs-/x", "not a container's name"}, {"jo--bs/x", "not a container's name"},
		{"/jobs/x", "begins with a slash"}, {"jobs/", "name of the blob is missing"}, {"jobs/" + strings.Repeat("é", 1025), "1025 characters"},
		{"jobs/\xff", "UTF-8"}, {"$other/x", "not a container's name"}, {"https://acme.blob.core.windows.net/?" + "sig=c2lnbmF0dXJlc2lnbmF0dXJl", "empty"}, {"http://[::1", "not a valid URL"},
	} {
		_, err := ref.ParseBlob(c.arg)
		if err == nil || fail.Judge(err).Code != fail.ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want a usage error about %q", c.arg, err, c.want)
		} else if strings.Contains(err.Error()+fail.HintOf(err), "sig=") {
			t.Errorf("%q: the error shows the SAS", c.arg)
		}
	}
}

func TestAKeyInPlaceOfAResourceIsNotRepeated(t *testing.T) {
	key := "uGx9qP2dR7tYvB3nM5kL8wZ1cA4sE6hJ0fX/" + strings.Repeat("Qp7", 16) + "aG=="
	for kind, parse := range map[string]func(string) error{
		"blob": func(s string) error { _, err := ref.ParseBlob(s); return err },
		"file": func(s string) error { _, err := ref.ParseFile(s); return err },
	} {
		if err := parse(key); err == nil || fail.Judge(err).Code != fail.ExitUsage || strings.Contains(err.Error(), key[:20]) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAResourceIsDisplayedByItsPath(t *testing.T) {
	for arg, want := range map[string]string{
		"jobs/a": "jobs/a",
		"https://acme.blob.core.windows.net/jobs/a?" + "sig=c2lnbmF0dXJlc2lnbmF0dXJl":              "jobs/a",
		"http://127.0.0.1:10000/devstoreaccount1/jobs/a?" + "sig=c2lnbmF0dXJlc2lnbmF0dXJl":         "jobs/a",
		"https://acme.blob.core.windows.net/jobs/%zz?" + "sig=c2lnbmF0dXJlc2lnbmF0dXJl" + "&x=%zz": "(unnamed resource)",
	} {
		if got := ref.Display(arg); got != want {
			t.Errorf("display(%q) = %q, want %q", arg, got, want)
		}
	}
}
