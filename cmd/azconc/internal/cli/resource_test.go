package cli

import (
	"strings"
	"testing"
)

func TestResourcesAreParsed(t *testing.T) {
	for _, c := range []struct {
		arg  string
		want BlobRef
	}{
		{"jobs", BlobRef{Container: "jobs"}},
		{"$root/a", BlobRef{Container: "$root", Blob: "a"}},
		{"jobs/a/b c%20?.json", BlobRef{Container: "jobs", Blob: "a/b c%20?.json"}},
		{"jobs//a", BlobRef{Container: "jobs", Blob: "/a"}},
		{"https://acme.blob.core.windows.net/jobs/a%20b/c", BlobRef{Container: "jobs", Blob: "a b/c", endpoint: "https://acme.blob.core.windows.net"}},
		{"http://127.0.0.1:10000/devstoreaccount1/jobs/a", BlobRef{Container: "jobs", Blob: "a", endpoint: "http://127.0.0.1:10000/devstoreaccount1"}},
		{"http://localhost:1/acct/jobs", BlobRef{Container: "jobs", endpoint: "http://localhost:1/acct"}},
		{"https://acme.blob.core.windows.net/jobs/a?sv=1&sig=x%2By&snapshot=S", BlobRef{
			Container: "jobs", Blob: "a", Snapshot: "S", endpoint: "https://acme.blob.core.windows.net", sas: "sig=x%2By&sv=1",
		}},
	} {
		if got, err := parseBlobRef(c.arg); err != nil || got != c.want {
			t.Errorf("parseBlobRef(%q) = %+v, %v\nwant %+v", c.arg, got, err, c.want)
		}
	}
}

func TestInvalidNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	for _, c := range []struct{ arg, want string }{
		{"", "empty"}, {"ab/x", "too short"}, {strings.Repeat("a", 64) + "/x", "too long"}, {"Jobs/x", "upper-case"},
		{"jobs_1/x", "other than letters"}, {"-jobs/x", "hyphen"}, {"jobs-/x", "hyphen"}, {"jo--bs/x", "two consecutive hyphens"},
		{"/jobs/x", "begins with a slash"}, {"jobs/", "name of the blob is missing"}, {"jobs/" + strings.Repeat("é", 1025), "1025 characters"},
		{"jobs/\xff", "UTF-8"}, {"$other/x", "other than letters"}, {"https://acme.blob.core.windows.net/?" + testSAS, "empty"}, {"http://[::1", "not a valid URL"},
	} {
		_, err := parseBlobRef(c.arg)
		if err == nil || Judge(err).Code != ExitUsage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("parseBlobRef(%q): %v, want a usage error about %q", c.arg, err, c.want)
		} else if strings.Contains(err.Error()+HintOf(err), "sig=") {
			t.Errorf("parseBlobRef(%q): the error shows the SAS", c.arg)
		}
	}
}

func TestAResourceIsDisplayedByItsPath(t *testing.T) {
	for arg, want := range map[string]string{
		"jobs/a": "jobs/a",
		"https://acme.blob.core.windows.net/jobs/a?" + testSAS:              "jobs/a",
		"http://127.0.0.1:10000/devstoreaccount1/jobs/a?" + testSAS:         "jobs/a",
		"https://acme.blob.core.windows.net/jobs/%zz?" + testSAS + "&x=%zz": "(unnamed resource)",
	} {
		if got := display(arg); got != want {
			t.Errorf("display(%q) = %q, want %q", arg, got, want)
		}
	}
}
