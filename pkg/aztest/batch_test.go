package aztest_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/azconc/azconc/pkg/aztest"
)

func serviceClient(t *testing.T, s *aztest.Service) *service.Client {
	t.Helper()
	key, err := service.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := service.NewClientWithSharedKeyCredential(s.BlobURL()+"/", key, &service.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestABlobBatchDoesWhatItCan deletes two blobs and one that is missing: each has an answer of its own.
func TestABlobBatchDoesWhatItCan(t *testing.T) {
	s := verifying(t)
	for _, name := range []string{"one", "two"} {
		if _, err := s.BlockBlob("box", name).UploadBuffer(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	box := s.Container("box")
	batch, err := box.NewBatchBuilder()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "missing", "two"} {
		if err := batch.Delete(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := box.SubmitBatch(t.Context(), batch, nil)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, one := range got.Responses {
		if one.Error != nil {
			failed = append(failed, *one.BlobName+" "+strings.SplitN(one.Error.Error(), "\n", 2)[0])
		}
	}
	if len(got.Responses) != 3 || len(failed) != 1 || !strings.HasPrefix(failed[0], "box/missing ") {
		t.Errorf("%d answers, failed: %q", len(got.Responses), failed)
	}
	if names := blobNames(t, box); !slices.Equal(names, []string{"a b+c/ü.txt"}) {
		t.Errorf("what is left: %q", names)
	}
}

func blobNames(t *testing.T, box *container.Client) (names []string) {
	t.Helper()
	page, err := box.NewListBlobsFlatPager(nil).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range page.Segment.BlobItems {
		names = append(names, *item.Name)
	}
	return names
}

// TestEachRequestOfABatchIsAuthorizedByItself has a batch whose own signature is right, and whose part has none.
func TestEachRequestOfABatchIsAuthorizedByItself(t *testing.T) {
	s := verifying(t)
	signed := accountSAS(t, "b", "sco", "rl", time.Now().Add(hour))
	body := "--x\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nDELETE /devstoreaccount1/box/a%20b+c/%C3%BC.txt HTTP/1.1\r\nContent-Length: 0\r\n\r\n--x--\r\n"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BlobURL()+"?comp=batch&"+signed, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "multipart/mixed; boundary=x")
	got, err := s.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var text strings.Builder
	if _, err := copyTo(&text, got); err != nil {
		t.Fatal(err)
	}
	if got.StatusCode != http.StatusAccepted || !strings.Contains(text.String(), "HTTP/1.1 401 Unauthorized") {
		t.Errorf("%d %s", got.StatusCode, text.String())
	}
	if len(blobNames(t, s.Container("box"))) != 1 {
		t.Error("the blob is gone")
	}
}

func TestABatchOfOtherRequestsIsRefused(t *testing.T) {
	s := verifying(t)
	part := "--x\r\nContent-Type: application/http\r\n\r\nPUT /devstoreaccount1/box/new HTTP/1.1\r\nx-ms-blob-type: BlockBlob\r\nContent-Length: 0\r\n\r\n"
	signed := accountSAS(t, "b", "sco", "rwdl", time.Now().Add(hour))
	for name, tt := range map[string]struct {
		body, want string
		status     int
	}{
		"an upload":        {part + "--x--\r\n", "HTTP/1.1 400 Bad Request", 202},
		"257 requests":     {strings.Repeat(part, 257) + "--x--\r\n", "ExceedsMaxBatchRequestCount", 400},
		"nothing":          {"--x--\r\n", "InvalidInput", 400},
		"what is no batch": {"hello", "InvalidInput", 400},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.BlobURL()+"?comp=batch&"+signed, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/mixed; boundary=x")
		got, err := s.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		_, err = copyTo(&text, got)
		got.Body.Close()
		if err != nil || got.StatusCode != tt.status || !strings.Contains(text.String(), tt.want) {
			t.Errorf("%s: %d %s, want %d %s", name, got.StatusCode, text.String(), tt.status, tt.want)
		}
	}
}

// TestBlobsAreFoundByTheirTags has the expressions of the REST reference.
func TestBlobsAreFoundByTheirTags(t *testing.T) {
	s := verifying(t)
	for name, tags := range map[string]map[string]string{
		"box/one": {"state": "new", "n": "1"}, "box/two": {"state": "done", "n": "2"}, "other/three": {"state": "new", "n": "3", "a b": "x"}, "other/four": nil,
	} {
		in, blobName, _ := strings.Cut(name, "/")
		if _, err := s.BlockBlob(in, blobName).UploadBuffer(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		if len(tags) > 0 {
			if _, err := s.BlockBlob(in, blobName).SetTags(t.Context(), tags, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	client := serviceClient(t, s)
	for where, want := range map[string]string{
		`state = 'new'`:                          "box/one other/three",
		`"state"='new' and @container = 'other'`: "other/three",
		`n >= '2' AND n < '3'`:                   "box/two",
		`"a b" = 'x'`:                            "other/three",
		`state > 'a' AND n <= '1'`:               "box/one",
		`state = 'old'`:                          "",
	} {
		got, err := client.FilterBlobs(t.Context(), where, nil)
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		var found []string
		for _, item := range got.Blobs {
			found = append(found, *item.ContainerName+"/"+*item.Name)
			if len(item.Tags.BlobTagSet) == 0 {
				t.Errorf("%s: %s is shown without the tags of the expression", where, *item.Name)
			}
		}
		if strings.Join(found, " ") != want {
			t.Errorf("%s: %q, want %s", where, found, want)
		}
	}
	for _, where := range []string{"", "state", "state <> 'x'", "state = 'a' OR n = '1'", "state = 'a' AND state = 'b'", "n > '1' AND n > '2'", "@container = 'box'", "state = new", "n = '1' x"} {
		if got, err := client.FilterBlobs(t.Context(), where, nil); err == nil {
			t.Errorf("%q is taken: %d blobs", where, len(got.Blobs))
		}
	}
	first, err := client.FilterBlobs(t.Context(), "state > ''", &service.FilterBlobsOptions{MaxResults: to.Ptr[int32](2)})
	if err != nil || len(first.Blobs) != 2 || first.NextMarker == nil {
		t.Fatalf("the first page: %+v, %v", first, err)
	}
	second, err := client.FilterBlobs(t.Context(), "state > ''", &service.FilterBlobsOptions{Marker: first.NextMarker})
	if err != nil || len(second.Blobs) != 1 {
		t.Errorf("the second page: %+v, %v", second, err)
	}
	inBox, err := s.Container("box").FilterBlobs(t.Context(), "n > '0'", nil)
	if err != nil || len(inBox.Blobs) != 2 {
		t.Errorf("in a container: %+v, %v", inBox, err)
	}
}

// TestASASForATableCannotReachAnotherInATransaction checks each operation of a transaction.
func TestASASForATableCannotReachAnotherInATransaction(t *testing.T) {
	s := verifying(t)
	s.Table("Others")
	key, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	insert := func(signedFor, permissions, table string) error {
		signed, err := aztables.SASSignatureValues{ExpiryTime: time.Now().Add(hour).UTC(), Permissions: permissions, TableName: signedFor}.Sign(key)
		if err != nil {
			t.Fatal(err)
		}
		client, err := aztables.NewServiceClientWithNoCredential(s.TableURL()+"?"+signed, &aztables.ClientOptions{ClientOptions: s.ClientOptions()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.NewClient(table).SubmitTransaction(t.Context(), []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"p","RowKey":"` + permissions + `"}`)}}, nil)
		return err
	}
	if err := insert("Jobs", "a", "Jobs"); err != nil {
		t.Errorf("what it permits: %v", err)
	}
	if err := insert("Jobs", "r", "Jobs"); err == nil || !strings.Contains(err.Error(), "AuthorizationPermissionMismatch") {
		t.Errorf("an operation that it does not permit: %v", err)
	}
	if err := insert("Jobs", "a", "Others"); err == nil || !strings.Contains(err.Error(), "AuthorizationFailure") {
		t.Errorf("another table: %v", err)
	}
}

// TestAPageOfAnotherOriginReadsWhatTheRulesPermit sends what a browser sends.
func TestAPageOfAnotherOriginReadsWhatTheRulesPermit(t *testing.T) {
	s := verifying(t)
	preflight := func() (int, string) {
		status, code, _ := send(t, s, http.MethodOptions, s.BlobURL()+"/box/blob", "Origin", "http://app.example", "Access-Control-Request-Method", "PUT",
			"Access-Control-Request-Headers", "x-ms-blob-type,content-type")
		return status, code
	}
	if status, code := preflight(); status != http.StatusForbidden || code != "CorsPreflightFailure" {
		t.Errorf("without rules: %d %s", status, code)
	}
	_, err := serviceClient(t, s).SetProperties(t.Context(), &service.SetPropertiesOptions{CORS: []*service.CORSRule{{
		AllowedOrigins: to.Ptr("http://app.example"), AllowedMethods: to.Ptr("GET,PUT"), AllowedHeaders: to.Ptr("x-ms-*,content-type"), ExposedHeaders: to.Ptr("*"), MaxAgeInSeconds: to.Ptr[int32](60),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, code := preflight(); status != http.StatusOK {
		t.Errorf("with a rule: %d %s", status, code)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.BlobURL()+"?comp=list&"+accountSAS(t, "b", "s", "l", time.Now().Add(hour)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]string{"http://app.example": "http://app.example", "http://other.example": "", "": ""} {
		r.Header.Set("Origin", origin)
		got, err := s.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); got.StatusCode != http.StatusOK || allowed != want {
			t.Errorf("%q: %d, and %q may read it, want %q", origin, got.StatusCode, allowed, want)
		}
	}
}

// TestTheSecondaryLocationReads has what a client of a replicated account sends there.
func TestTheSecondaryLocationReads(t *testing.T) {
	s := verifying(t)
	signed := accountSAS(t, "bq", "sco", "rwdl", time.Now().Add(hour))
	secondary := s.BlobURL() + "-secondary"
	for _, tt := range []struct {
		method, url string
		status      int
		want        string
	}{
		{http.MethodGet, secondary + "?comp=list&", 200, "<Name>box</Name>"},
		{http.MethodGet, secondary + "?restype=service&comp=stats&", 200, "<Status>live</Status>"},
		{http.MethodGet, s.BlobURL() + "?restype=service&comp=stats&", 400, "InvalidQueryParameterValue"},
		{http.MethodPut, secondary + "/new?restype=container&", 403, "InsufficientAccountPermissions"},
	} {
		if status, _, body := send(t, s, tt.method, tt.url+signed); status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s %s: %d %s, want %d %s", tt.method, tt.url, status, body, tt.status, tt.want)
		}
	}
}

// TestWhatOnlyARealAccountHasIsRefused has the requests whose effect would be missing.
func TestWhatOnlyARealAccountHasIsRefused(t *testing.T) {
	s := verifying(t)
	blobAt := s.BlobURL() + "/box/" + "a%20b+c/%C3%BC.txt"
	signed := "&" + accountSAS(t, "bqtf", "sco", "rwdl", time.Now().Add(hour))
	for at, method := range map[string]string{
		blobAt + "?comp=query": http.MethodPost, blobAt + "?comp=immutabilityPolicies": http.MethodPut, blobAt + "?comp=legalhold": http.MethodPut,
		blobAt + "?comp=expiry": http.MethodPut, blobAt + "?comp=incrementalcopy": http.MethodPut,
		blobAt + "?versionid=2026": http.MethodGet, blobAt + "?deletetype=permanent": http.MethodDelete, s.FileURL() + "/reports/new?comp=rename": http.MethodPut,
	} {
		status, code, _ := send(t, s, method, at+signed)
		if status != http.StatusNotImplemented && status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d %s", at, status, code)
		}
	}
	if status, code, _ := send(t, s, http.MethodPut, blobAt+"?comp=undelete"+signed); status != http.StatusOK {
		t.Errorf("undelete of a blob that is there: %d %s", status, code)
	}
	key := &blob.CPKInfo{EncryptionKey: to.Ptr("a2V5"), EncryptionKeySHA256: to.Ptr("eA=="), EncryptionAlgorithm: to.Ptr(blob.EncryptionAlgorithmTypeAES256)}
	_, err := s.BlockBlob("box", "a b+c/ü.txt").GetProperties(t.Context(), &blob.GetPropertiesOptions{CPKInfo: key})
	if refused, ok := errors.AsType[*azcore.ResponseError](err); !ok || refused.StatusCode != http.StatusNotImplemented {
		t.Errorf("a key that the client provides is taken and ignored: %v", err)
	}
}

func copyTo(to *strings.Builder, r *http.Response) (int64, error) { return io.Copy(to, r.Body) }
