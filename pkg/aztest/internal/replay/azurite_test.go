package replay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/azconc/azconc/pkg/azurite"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// signature is an account's signature for everything except operations that need the account's key. The SDK for tables cannot
// sign for tags.
func signature(t *testing.T, account azurite.Account, services string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(account.Key)
	if err != nil {
		t.Fatal(err)
	}
	permissions, version, expiry := "rwdlacuptf", "2021-12-02", time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z")
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\nsco\n\n%s\n\n\n%s\n\n", account.Name, permissions, services, expiry, version)
	return url.Values{"sp": {permissions}, "ss": {services}, "srt": {"sco"}, "se": {expiry}, "sv": {version}, "sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}}.Encode()
}

// deviation is a response of Azurite that real accounts do not give. scenario and difference are parts of the
// scenario's name and of the difference.
type deviation struct{ service, scenario, difference, why string }

var deviations = []deviation{
	{"blob", "_from_url", "", "it does not implement Append Block and Put Page From URL, and refuses Put Block From URL to a SAS"},
	{"blob", "test_snapshot_blob_with_if_", "answered 304 ConditionNotMet", "it takes Snapshot Blob for a read when it looks at conditions"},
	{"blob", "snapshot", "no header x-ms-snapshot", "it does not name the snapshot that it shows"},
	{"blob", "test_abort_copy_blob", "answered 409 CopyIdMismatch", "it looks at the id before it asks whether a copy is pending"},
	{"blob", "test_append_block_with_if_match_fail", "answered 412 ConditionNotMet", "it answers Append Block as every other operation, which the service did not"},
	{"blob", "test_create_larger_than_8tb", "answered 400 InvalidOperation", "it has another code for a page blob that is too large"},
	{"blob", "test_resize_blob", "", "it fails when a page blob is resized"},
	{"queue", "xml_invalid_chars", "answered 201", "it takes characters that XML does not allow"},
	{"table", "", "answered 404 TableNotFound", "it has another code for a table that is missing in the list of tables"},
	{"table", "unicode_create_table", "answered 400 ,", "it refuses a table's name without a code"},
	{"table", "query_zero_entities", "answered 500", "it fails at an empty transaction"},
	{"table", "", "is new, the service's", "it gives each entity of a transaction a Timestamp of its own"},
}

// TestAzuriteAnswersAsRealAccountsDid replays the scenarios of the first set that take no time against Azurite: statuses, error codes,
// leases, and whether ETags, snapshots and receipts are new. It skips requests that need the account's key, such as
// those for access policies.
func TestAzuriteAnswersAsRealAccountsDid(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	account := azuritetest.Account(t)
	to := server{
		url:  map[string]string{"blob": account.BlobURL, "queue": account.QueueURL, "table": account.TableURL},
		send: http.DefaultClient.Do, sign: signature(t, account, "bqt"),
	}
	defer http.DefaultClient.CloseIdleConnections()
	asked, seen, every := 0, make([]int, len(deviations)), 1 // one of so many scenarios
	if testing.Short() {
		every = 4
	}
	for _, service := range slices.Sorted(maps.Keys(to.url)) {
		for n, s := range factsOf(t, Sets[0], service) {
			if n%every > 0 || s.Steps[len(s.Steps)-1].At > 4 || slices.ContainsFunc(s.Steps, func(step Step) bool { return compOf(step) == "acl" }) {
				continue
			}
			to.shift = time.Since(s.Began)
			p := newPlayer(to, s)
			for i, step := range s.Steps {
				differences := p.play()
				if feature(s, step) != "" {
					continue
				}
				asked++
				for _, d := range differences {
					known := slices.IndexFunc(deviations, func(one deviation) bool {
						return one.service == service && strings.Contains(s.Name, one.scenario) && strings.Contains(d, one.difference)
					})
					if known < 0 {
						t.Errorf("%s/%s %d: %s %s?%s: %s", service, s.Name, i, step.Method, step.Path, step.Query, d)
						continue
					}
					seen[known]++
				}
			}
		}
	}
	t.Logf("%d requests", asked)
	for i, one := range deviations {
		if seen[i] == 0 && every == 1 {
			t.Errorf("it deviates no longer: %s", one.why)
		}
		t.Logf("%d differences: %s", seen[i], one.why)
	}
	if asked < 1200/every {
		t.Errorf("%d requests were compared", asked)
	}
}
