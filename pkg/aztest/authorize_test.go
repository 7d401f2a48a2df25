package aztest_test

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	filesas "github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	queuesas "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2/sas"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// verifying returns a service that verifies signatures, with a container, a blob, a queue, a table and a share.
func verifying(t *testing.T) *aztest.Service {
	t.Helper()
	s := aztest.New(&aztest.Options{VerifySignatures: true})
	if _, err := s.BlockBlob("box", "a b+c/ü.txt").UploadBuffer(t.Context(), []byte("content"), nil); err != nil {
		t.Fatal(err)
	}
	s.Queue("orders")
	s.Table("Jobs")
	s.Share("reports")
	return s
}

// send sends a request that carries a SAS, and returns the status, the code and the whole body.
func send(t *testing.T, s *aztest.Service, method, at string, header ...string) (status int, code, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	got, err := s.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, got.Header.Get("x-ms-error-code"), string(data)
}

var hour = time.Hour

// accountSAS returns the query of an account SAS for all services, or with the given services.
func accountSAS(t *testing.T, services, types, permissions string, expiry time.Time) string {
	t.Helper()
	key, err := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	q, err := aztables.AccountSASSignatureValues{Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: expiry.UTC(), Services: services,
		ResourceTypes: types, Permissions: permissions}.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	return q.Encode()
}

// serviceSAS returns a SAS of each service for its resource of verifying, and what reads with it.
func serviceSAS(t *testing.T, s *aztest.Service, version string) map[string]string {
	t.Helper()
	in := time.Now().Add(hour).UTC()
	blobKey, err1 := service.NewSharedKeyCredential(aztest.Account, aztest.Key)
	queueKey, err2 := azqueue.NewSharedKeyCredential(aztest.Account, aztest.Key)
	tableKey, err3 := aztables.NewSharedKeyCredential(aztest.Account, aztest.Key)
	fileKey, err4 := share.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	perm := "r"
	box, err1 := sas.BlobSignatureValues{Version: version, ExpiryTime: in, Permissions: perm, ContainerName: "box"}.SignWithSharedKey(blobKey)
	one, err2 := sas.BlobSignatureValues{Version: version, ExpiryTime: in, Permissions: perm, ContainerName: "box", BlobName: "a b+c/ü.txt"}.SignWithSharedKey(blobKey)
	queue, err3 := queuesas.QueueSignatureValues{Version: version, ExpiryTime: in, Permissions: perm, QueueName: "orders"}.SignWithSharedKey(queueKey)
	table, err4 := aztables.SASSignatureValues{Version: version, ExpiryTime: in, Permissions: perm, TableName: "Jobs"}.Sign(tableKey)
	files, err5 := filesas.SignatureValues{Version: version, ExpiryTime: in, Permissions: perm, ShareName: "reports"}.SignWithSharedKey(fileKey)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		t.Fatal(err)
	}
	blob := s.BlobURL() + "/box/" + url.PathEscape("a b+c") + "/" + url.PathEscape("ü.txt") + "?"
	return map[string]string{
		"a blob by its container": blob + box.Encode(),
		"a blob":                  blob + one.Encode(),
		"a queue":                 s.QueueURL() + "/orders/messages?peekonly=true&" + queue.Encode(),
		"a table":                 s.TableURL() + "/Jobs()?" + table,
		"a file of a share":       s.FileURL() + "/reports/report.txt?" + files.Encode(),
	}
}

// TestEachLayoutOfASASIsAccepted has the layouts of the SDKs by their versions. One changed letter refuses each of them.
func TestEachLayoutOfASASIsAccepted(t *testing.T) {
	s := verifying(t)
	if _, err := s.File("reports", "report.txt").Create(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	// The SDKs of today sign blobs in the layout of 2020-12-06, whatever the version says.
	for _, version := range []string{"2020-12-06", "2026-02-06"} {
		for of, at := range serviceSAS(t, s, version) {
			if status, code, body := send(t, s, http.MethodGet, at); status != http.StatusOK {
				t.Errorf("%s, %s: %d %s %s", of, version, status, code, body)
			}
			status, _, body := send(t, s, http.MethodGet, strings.Replace(at, "sp=r", "sp=rd", 1))
			if status != http.StatusForbidden || !strings.Contains(body, "AuthenticationFailed") {
				t.Errorf("%s, %s, with another permission: %d %s", of, version, status, body)
			}
		}
	}
	in := time.Now().Add(hour)
	for of, at := range map[string]string{
		"containers": s.BlobURL() + "?comp=list&", "queues": s.QueueURL() + "?comp=list&", "tables": s.TableURL() + "/Tables?", "shares": s.FileURL() + "?comp=list&",
	} {
		at += accountSAS(t, "bqtf", "sco", "rl", in)
		if status, code, body := send(t, s, http.MethodGet, at); status != http.StatusOK {
			t.Errorf("%s: %d %s %s", of, status, code, body)
		}
		if status, _, body := send(t, s, http.MethodGet, strings.Replace(at, "srt=", "srt=o", 1)); status != http.StatusForbidden {
			t.Errorf("%s, with a changed SAS: %d %s", of, status, body)
		}
	}
}

func TestASASIsRefusedWithItsReason(t *testing.T) {
	s := verifying(t)
	in := time.Now().Add(hour)
	for _, tt := range []struct{ name, method, url, sas, code, detail string }{
		{"expired", "GET", s.BlobURL() + "/box?restype=container&comp=list&", accountSAS(t, "b", "sco", "rl", time.Now().Add(-hour)), "AuthenticationFailed", "Signature not valid in the specified time frame"},
		{"another service", "GET", s.BlobURL() + "/box?restype=container&comp=list&", accountSAS(t, "q", "sco", "rl", in), "AuthorizationServiceMismatch", ""},
		{"another type of resource", "GET", s.BlobURL() + "/box?restype=container&comp=list&", accountSAS(t, "b", "o", "rl", in), "AuthorizationResourceTypeMismatch", ""},
		{"without the permission", "PUT", s.BlobURL() + "/new?restype=container&", accountSAS(t, "b", "c", "rl", in), "AuthorizationPermissionMismatch", ""},
		{"overwriting with a SAS that creates", "PUT", s.BlobURL() + "/box/" + url.PathEscape("a b+c/ü.txt") + "?", accountSAS(t, "b", "o", "c", in), "UnauthorizedBlobOverwrite", ""},
		{"access policies", "GET", s.BlobURL() + "/box?restype=container&comp=acl&", accountSAS(t, "b", "sco", "rwdl", in), "AuthorizationFailure", ""},
		{"without a version", "GET", s.BlobURL() + "/box/blob?", "sig=x&se=2030-01-01&sp=r&sr=b", "AuthenticationFailed", "sv is mandatory"},
		{"an old version", "GET", s.BlobURL() + "/box/blob?", "sv=2012-02-12&sig=x&se=2030-01-01&sp=r&sr=b", "AuthenticationFailed", "sv is not a version from 2015-04-05 on"},
		{"a user delegation", "GET", s.BlobURL() + "/box/blob?", "sv=2022-11-02&sig=x&se=2030-01-01&sp=r&sr=b&skoid=1", "AuthenticationFailed", "no user delegation keys"},
		{"a signature that is none", "GET", s.BlobURL() + "/box/blob?", "sv=2022-11-02&sig=x&se=2030-01-01&sp=r&sr=b", "AuthenticationFailed", "String to sign used was r\n\n2030-01-01\n/blob/devstoreaccount1/box/blob\n"},
	} {
		status, code, body := send(t, s, tt.method, tt.url+tt.sas, "x-ms-blob-type", "BlockBlob")
		if status != http.StatusForbidden || code != tt.code || !strings.Contains(body, tt.detail) {
			t.Errorf("%s: %d %s %s, want 403 %s %s", tt.name, status, code, body, tt.code, tt.detail)
		}
	}
	// The Table service has the code in its body, and no detail.
	status, code, body := send(t, s, http.MethodGet, s.TableURL()+"/Tables?"+accountSAS(t, "b", "sco", "rl", in))
	if status != http.StatusForbidden || code != "" || !strings.Contains(body, `{"odata.error":{"code":"AuthorizationServiceMismatch"`) {
		t.Errorf("a table: %d %s %s", status, code, body)
	}
}

// TestAStoredPolicyEndsASAS takes back a SAS by changing the policy that it names.
func TestAStoredPolicyEndsASAS(t *testing.T) {
	s := verifying(t)
	box := s.Container("box")
	permit := func(permission string) {
		_, err := box.SetAccessPolicy(t.Context(), &container.SetAccessPolicyOptions{ContainerACL: []*container.SignedIdentifier{{
			ID: to.Ptr("readers"), AccessPolicy: &container.AccessPolicy{Expiry: to.Ptr(time.Now().Add(hour).UTC()), Permission: &permission},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := service.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := sas.BlobSignatureValues{Identifier: "readers", ContainerName: "box"}.SignWithSharedKey(key)
	if err != nil {
		t.Fatal(err)
	}
	at := s.BlobURL() + "/box/" + url.PathEscape("a b+c/ü.txt") + "?" + signed.Encode()
	if status, _, body := send(t, s, http.MethodGet, at); status != http.StatusForbidden || !strings.Contains(body, "AuthenticationFailed") {
		t.Errorf("before there is a policy: %d %s", status, body)
	}
	permit("r")
	if status, _, body := send(t, s, http.MethodGet, at); status != http.StatusOK || body != "content" {
		t.Errorf("with a policy: %d %s", status, body)
	}
	permit("d")
	if status, code, _ := send(t, s, http.MethodGet, at); status != http.StatusForbidden || code != "AuthorizationPermissionMismatch" {
		t.Errorf("with another policy: %d %s", status, code)
	}
}

// TestASASReplacesHeaders reads as a browser does that is to save a file.
func TestASASReplacesHeaders(t *testing.T) {
	s := verifying(t)
	key, err := service.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := sas.BlobSignatureValues{ExpiryTime: time.Now().Add(hour).UTC(), Permissions: "r", ContainerName: "box", BlobName: "a b+c/ü.txt",
		ContentDisposition: "attachment; filename=x", ContentType: "text/x"}.SignWithSharedKey(key)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.BlobURL()+"/box/"+url.PathEscape("a b+c/ü.txt")+"?"+signed.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.Header.Get("Content-Disposition") != "attachment; filename=x" || got.Header.Get("Content-Type") != "text/x" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

// TestASharedKeyIsVerified has the ways in which a signature or what it covers is wrong.
func TestASharedKeyIsVerified(t *testing.T) {
	s := verifying(t)
	for name, tt := range map[string]struct {
		change func(h http.Header)
		status int
		code   string
		detail string
	}{
		"as it was sent":             {func(http.Header) {}, 200, "", ""},
		"another header":             {func(h http.Header) { h.Set("x-ms-client-request-id", "other") }, 403, "AuthenticationFailed", "is not the same as any computed signature. Server used following string to sign: 'GET"},
		"another signature":          {func(h http.Header) { h.Set("Authorization", "SharedKey devstoreaccount1:AAAA") }, 403, "AuthenticationFailed", "The MAC signature found in the HTTP request 'AAAA'"},
		"another account's name":     {func(h http.Header) { h.Set("Authorization", "SharedKey other:AAAA") }, 403, "AuthenticationFailed", "The account of the Authorization header is"},
		"no signature":               {func(h http.Header) { h.Set("Authorization", "SharedKey devstoreaccount1") }, 400, "InvalidAuthenticationInfo", ""},
		"another scheme":             {func(h http.Header) { h.Set("Authorization", "Basic abc") }, 400, "InvalidAuthenticationInfo", ""},
		"a token":                    {func(h http.Header) { h.Set("Authorization", "Bearer abc") }, 401, "InvalidAuthenticationInfo", "no Microsoft Entra ID here"},
		"nothing":                    {func(h http.Header) { h.Del("Authorization") }, 401, "NoAuthenticationInformation", ""},
		"a date of twenty years ago": {func(h http.Header) { h.Set("x-ms-date", "Sun, 22 Nov 2006 10:00:00 GMT") }, 403, "AuthenticationFailed", "Request date header too old"},
		"no date":                    {func(h http.Header) { h.Del("x-ms-date") }, 403, "AuthenticationFailed", "Request date header not specified"},
	} {
		key, err := blockblobKey()
		if err != nil {
			t.Fatal(err)
		}
		client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/"+url.PathEscape("a b+c/ü.txt"), key,
			&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: changed{s, tt.change}, Retry: policy.RetryOptions{MaxRetries: -1}}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.DownloadStream(t.Context(), nil)
		status, code := 200, ""
		if refused, ok := errors.AsType[*azcore.ResponseError](err); ok {
			status, code = refused.StatusCode, refused.ErrorCode
		} else if err == nil {
			got.Body.Close()
		}
		if status != tt.status || code != tt.code || tt.detail != "" && !strings.Contains(err.Error(), tt.detail) {
			t.Errorf("%s: %v, want %d %s %s", name, err, tt.status, tt.code, tt.detail)
		}
	}
}

func blockblobKey() (*service.SharedKeyCredential, error) {
	return service.NewSharedKeyCredential(aztest.Account, aztest.Key)
}

// changed changes the headers of requests after they were signed.
type changed struct {
	s      *aztest.Service
	change func(http.Header)
}

func (c changed) Do(r *http.Request) (*http.Response, error) {
	h := http.Header{}
	for name, values := range r.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	r.Header = h
	c.change(r.Header)
	return c.s.Do(r)
}

// TestAnExpiredSASIsRefusedWhenItsTimeHasCome waits for the end of a SAS.
func TestAnExpiredSASIsRefusedWhenItsTimeHasCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := verifying(t)
		at := s.BlobURL() + "?comp=list&" + accountSAS(t, "b", "s", "l", time.Now().Add(hour))
		bubble.Sleep(hour - time.Second)
		if status, _, body := send(t, s, http.MethodGet, at); status != http.StatusOK {
			t.Errorf("a second before: %d %s", status, body)
		}
		bubble.Sleep(time.Second)
		if status, code, _ := send(t, s, http.MethodGet, at); status != http.StatusForbidden || code != "AuthenticationFailed" {
			t.Errorf("when it expires: %d %s", status, code)
		}
	})
}

// TestAPublicContainerIsReadWithoutACredential has what is open to everybody, and what is not.
func TestAPublicContainerIsReadWithoutACredential(t *testing.T) {
	s := verifying(t)
	blob, list := s.BlobURL()+"/box/"+url.PathEscape("a b+c/ü.txt"), s.BlobURL()+"/box?restype=container&comp=list"
	for access, want := range map[container.PublicAccessType][2]int{"": {401, 401}, container.PublicAccessTypeBlob: {200, 401}, container.PublicAccessTypeContainer: {200, 200}} {
		o := &container.SetAccessPolicyOptions{}
		if access != "" {
			o.Access = &access
		}
		if _, err := s.Container("box").SetAccessPolicy(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		first, _, _ := send(t, s, http.MethodGet, blob)
		second, _, _ := send(t, s, http.MethodGet, list)
		if got := [2]int{first, second}; got != want {
			t.Errorf("%q: %v, want %v", access, got, want)
		}
		if status, _, _ := send(t, s, http.MethodPut, blob, "x-ms-blob-type", "BlockBlob"); status != http.StatusUnauthorized {
			t.Errorf("%q: writing says %d", access, status)
		}
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

// TestWhatOnlyARealAccountHasIsRefused has the requests whose effect would be missing.
func TestWhatOnlyARealAccountHasIsRefused(t *testing.T) {
	s := verifying(t)
	blobAt := s.BlobURL() + "/box/" + "a%20b+c/%C3%BC.txt"
	signed := "&" + accountSAS(t, "bqtf", "sco", "rwdl", time.Now().Add(hour))
	for at, method := range map[string]string{
		blobAt + "?comp=query": http.MethodPost, blobAt + "?comp=immutabilityPolicies": http.MethodPut, blobAt + "?comp=legalhold": http.MethodPut,
		blobAt + "?comp=expiry": http.MethodPut, blobAt + "?comp=incrementalcopy": http.MethodPut,
		blobAt + "?versionid=2026": http.MethodGet, blobAt + "?deletetype=permanent": http.MethodDelete, s.FileURL() + "/reports/new?comp=rename": http.MethodPut,
		s.BlobURL() + "?comp=batch": http.MethodPost, s.BlobURL() + "?comp=blobs&where=a": http.MethodGet, s.BlobURL() + "/box?restype=container&comp=blobs": http.MethodGet,
		s.BlobURL() + "?restype=service&comp=stats": http.MethodGet,
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
