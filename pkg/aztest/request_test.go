package aztest_test

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/azconc/azconc/pkg/aztest"
)

func accountClient(t *testing.T, s *aztest.Service) *service.Client {
	t.Helper()
	credential, err := service.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := service.NewClientWithSharedKeyCredential(s.BlobURL(), credential, &service.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestOperationsHaveTheirNamesInTheLog: what faults are chosen by, and what is carried out, for each operation once.
func TestOperationsHaveTheirNamesInTheLog(t *testing.T) {
	s := aztest.New(nil)
	ctx := context.Background()
	account, box := accountClient(t, s), s.Container("box")
	b, source := box.NewBlockBlobClient("blob"), box.NewBlockBlobClient("source")
	log, disk := box.NewAppendBlobClient("log"), box.NewPageBlobClient("disk")
	holder, err := lease.NewBlobClient(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	boxHolder, err := lease.NewContainerClient(box, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := source.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	zero := int32(0)
	for _, step := range []struct {
		op  string
		run func() error
	}{
		{"Create Container", func() error { _, err := box.Create(ctx, nil); return err }},
		{"Get Container Properties", func() error { _, err := box.GetProperties(ctx, nil); return err }},
		{"Set Container Metadata", func() error { _, err := box.SetMetadata(ctx, nil); return err }},
		{"Set Container ACL", func() error { _, err := box.SetAccessPolicy(ctx, nil); return err }},
		{"Get Container ACL", func() error { _, err := box.GetAccessPolicy(ctx, nil); return err }},
		{"Acquire Container Lease", func() error { _, err := boxHolder.AcquireLease(ctx, 15, nil); return err }},
		{"Break Container Lease", func() error {
			_, err := boxHolder.BreakLease(ctx, &lease.ContainerBreakOptions{BreakPeriod: &zero})
			return err
		}},
		{"List Containers", func() error { _, err := account.NewListContainersPager(nil).NextPage(ctx); return err }},
		{"Set Blob Service Properties", func() error { _, err := account.SetProperties(ctx, nil); return err }},
		{"Get Blob Service Properties", func() error { _, err := account.GetProperties(ctx, nil); return err }},
		{"Get Account Information", func() error { _, err := account.GetAccountInfo(ctx, nil); return err }},
		{"Put Blob", func() error { _, err := source.Upload(ctx, content("x"), nil); return err }},
		{"Put Block", func() error { _, err := b.StageBlock(ctx, "YQ==", content("x"), nil); return err }},
		{"Put Block From URL", func() error { _, err := b.StageBlockFromURL(ctx, "YQ==", signed, nil); return err }},
		{"Get Block List", func() error { _, err := b.GetBlockList(ctx, blockblob.BlockListTypeAll, nil); return err }},
		{"Put Block List", func() error { _, err := b.CommitBlockList(ctx, []string{"YQ=="}, nil); return err }},
		{"Put Blob From URL", func() error { _, err := b.UploadBlobFromURL(ctx, signed, nil); return err }},
		{"Copy Blob", func() error { _, err := b.StartCopyFromURL(ctx, source.URL(), nil); return err }},
		{"Copy Blob From URL", func() error { _, err := b.CopyFromURL(ctx, source.URL(), nil); return err }},
		{"Get Blob", func() error {
			r, err := b.DownloadStream(ctx, nil)
			if err == nil {
				r.Body.Close()
			}
			return err
		}},
		{"Get Blob Properties", func() error { _, err := b.GetProperties(ctx, nil); return err }},
		{"Set Blob Properties", func() error { _, err := b.SetHTTPHeaders(ctx, blob.HTTPHeaders{}, nil); return err }},
		{"Set Blob Metadata", func() error { _, err := b.SetMetadata(ctx, nil, nil); return err }},
		{"Set Blob Tags", func() error { _, err := b.SetTags(ctx, map[string]string{"a": "b"}, nil); return err }},
		{"Get Blob Tags", func() error { _, err := b.GetTags(ctx, nil); return err }},
		{"Set Blob Tier", func() error { _, err := b.SetTier(ctx, blob.AccessTierCool, nil); return err }},
		{"Snapshot Blob", func() error { _, err := b.CreateSnapshot(ctx, nil); return err }},
		{"Acquire Blob Lease", func() error { _, err := holder.AcquireLease(ctx, 15, nil); return err }},
		{"Renew Blob Lease", func() error { _, err := holder.RenewLease(ctx, nil); return err }},
		{"Change Blob Lease", func() error { _, err := holder.ChangeLease(ctx, mine, nil); return err }},
		{"Release Blob Lease", func() error { _, err := holder.ReleaseLease(ctx, nil); return err }},
		{"Put Blob", func() error { _, err := log.Create(ctx, nil); return err }},
		{"Append Block", func() error { _, err := log.AppendBlock(ctx, content("x"), nil); return err }},
		{"Append Block From URL", func() error { _, err := log.AppendBlockFromURL(ctx, signed, nil); return err }},
		{"Append Blob Seal", func() error { _, err := log.Seal(ctx, nil); return err }},
		{"Put Blob", func() error { _, err := disk.Create(ctx, 512, nil); return err }},
		{"Put Page", func() error { _, err := disk.ClearPages(ctx, blob.HTTPRange{Count: 512}, nil); return err }},
		{"Get Page Ranges", func() error { _, err := disk.NewGetPageRangesPager(nil).NextPage(ctx); return err }},
		{"Set Blob Properties", func() error { _, err := disk.Resize(ctx, 1024, nil); return err }},
		{"Set Blob Properties", func() error {
			action := pageblob.SequenceNumberActionTypeIncrement
			_, err := disk.UpdateSequenceNumber(ctx, &pageblob.UpdateSequenceNumberOptions{ActionType: &action})
			return err
		}},
		{"List Blobs", func() error {
			_, err := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{}).NextPage(ctx)
			return err
		}},
		{"Delete Blob", func() error { _, err := source.Delete(ctx, nil); return err }},
		{"Delete Container", func() error { _, err := box.Delete(ctx, nil); return err }},
	} {
		s.Reset()
		if err := step.run(); err != nil {
			t.Errorf("%s: %v", step.op, err)
		}
		if log := s.Log(); len(log) != 1 || log[0].Op != step.op {
			t.Errorf("%s is logged as %v", step.op, log)
		}
	}
}

func TestTheLogKeepsNoSecrets(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	signed, err := client.GetSASURL(sas.BlobPermissions{Read: true, Write: true, Create: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	bySAS, err := blockblob.NewClientWithNoCredential(signed, &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*blockblob.Client{client, bySAS} {
		if _, err := c.Upload(t.Context(), content("x"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CopyFromURL(t.Context(), signed, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range s.Log() {
		if r.Query.Has("sig") || r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("x-ms-copy-source"), "sig=") {
			t.Errorf("%v: %v %v", r, r.Query, r.Header)
		}
	}
}

func TestEveryAnswerSaysWhichRequestItAnswers(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	var ids []string
	for _, fault := range []aztest.Fault{{}, {Kind: aztest.Throttle}, {Kind: aztest.Answer, Status: 403, Code: "AuthorizationFailure"}} {
		s.SetFaults(fault)
		_, err := client.GetProperties(once(t.Context()), nil)
		r, ok := errors.AsType[*azcore.ResponseError](err)
		if !ok {
			t.Fatal(err)
		}
		h := r.RawResponse.Header
		for _, name := range []string{"x-ms-request-id", "x-ms-version", "x-ms-error-code", "Date"} {
			if h.Get(name) == "" {
				t.Errorf("%s: no %s", r.ErrorCode, name)
			}
		}
		ids = append(ids, h.Get("x-ms-request-id"))
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 3 {
		t.Errorf("request ids: %v", ids)
	}
}

func TestAnonymousRequestsCanBeLetIn(t *testing.T) {
	s := aztest.New(&aztest.Options{Anonymous: true})
	s.BlockBlob("box", "blob")
	client, err := blockblob.NewClientWithNoCredential(s.BlobURL()+"/box/blob", &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Upload(once(t.Context()), content("x"), nil); err != nil {
		t.Error(err)
	}
}

func TestAnUnknownVerbIsRefused(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "blob")
	for _, what := range []string{"PATCH /box/blob", "POST /box/blob", "DELETE /box/blob?comp=metadata"} {
		verb, path, _ := strings.Cut(what, " ")
		r, err := http.NewRequestWithContext(t.Context(), verb, s.BlobURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "SharedKey any")
		resp, err := s.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", what, resp.StatusCode)
		}
	}
}

// TestTheBodyIsAsLongAsItSays: a connection that breaks in the middle of a request changes nothing.
func TestTheBodyIsAsLongAsItSays(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	for length, body := range map[int64]string{10: "short", 3: "longer"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, client.URL()+"?sig=any", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = length
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		if resp, err := s.Do(r); err == nil {
			resp.Body.Close()
			t.Errorf("%d bytes announced, %d sent: %d", length, len(body), resp.StatusCode)
		}
	}
	if got := stored(t, client); got != "nothing" {
		t.Errorf("the service holds %q", got)
	}
}

// TestTheLogHasNoSecretOfAnyHeader: the signature of a file that was to be renamed was in the log, and the key of a source.
func TestTheLogHasNoSecretOfAnyHeader(t *testing.T) {
	r, err := http.NewRequest(http.MethodPut, "https://acct.file.core.windows.net/share/f?comp=rename&sig=secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"x-ms-copy-source", "x-ms-file-rename-source"} {
		r.Header[name] = []string{"https://acct.file.core.windows.net/share/g?sp=r&sig=secret"}
	}
	for _, name := range []string{"Authorization", "x-ms-copy-source-authorization", "x-ms-encryption-key", "x-ms-source-encryption-key"} {
		r.Header[name] = []string{"secret"}
	}
	got := aztest.Describe(r)
	if text := fmt.Sprint(got.Header, got.Query); strings.Contains(text, "secret") || !strings.Contains(text, "/share/g?sp=r") {
		t.Error(text)
	}
}

// A real account is named by the host, an emulated one by the path. An Injector once took a real account's container for
// the account, so that no fault matched by operation and no resource in the log was right.
func TestRequestsToARealAccountAreDescribedAsTheyAre(t *testing.T) {
	for _, tt := range []struct{ method, url, want string }{
		{"PUT", "https://acct.blob.core.windows.net/box/dir/b", "Put Blob box/dir/b:"},
		{"GET", "https://acct-secondary.blob.core.windows.net/box?restype=container&comp=list", "List Blobs box:"},
		{"DELETE", "https://acct.table.core.windows.net/jobs(PartitionKey='p',RowKey='r')", "Delete Entity jobs/p/r:"},
		{"POST", "https://acct.table.core.windows.net/$batch", "Entity Group Transaction :"},
		{"GET", "https://acct.queue.core.chinacloudapi.cn/jobs/messages", "Get Messages jobs/messages:"},
		{"PUT", "https://acct.file.core.windows.net/share/f?comp=range", "Put Range share/f:"},
		{"PUT", "https://acct.z01.blob.storage.azure.net/box/b", "Put Blob box/b:"},
		{"PUT", "https://acct.privatelink.file.core.windows.net/share/f?comp=range", "Put Range share/f:"},
		{"PUT", "http://127.0.0.1:10000/devstoreaccount1/box/b", "Put Blob box/b:"},
	} {
		r, err := http.NewRequest(tt.method, tt.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := aztest.Describe(r).String(); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.method, tt.url, got, tt.want)
		}
	}
}

// TestARefusalIsWellFormedWhateverItNames: a bracket in a header made the body of its refusal no XML.
func TestARefusalIsWellFormedWhateverItNames(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "blob")
	for _, value := range []string{`<a href="x">&'`, "\x01\ufffe", "plain"} {
		for header, query := range map[string]string{
			"X-Ms-Lease-Action": "/box?sig=any&restype=container&comp=lease",
			"Ignored":           "/box?sig=any&restype=container&comp=list&maxresults=" + url.QueryEscape(value),
		} {
			method := map[bool]string{true: http.MethodPut, false: http.MethodGet}[header != "Ignored"]
			status, code, body := send(t, s, method, s.BlobURL()+query, header, value)
			if err := xml.Unmarshal([]byte(strings.TrimPrefix(body, "\ufeff")), new(struct{ Code string })); status != http.StatusBadRequest || err != nil {
				t.Errorf("%q in %s: %d %s %v: %s", value, header, status, code, err, body)
			}
		}
	}
}
