package optimistic_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/azurite/azuritetest"
)

// emulator is an account of a real Azurite behind a network that loses responses to writes.
type emulator struct {
	direct *container.Client // not behind that network
	boxes  *container.Client
	blobs  *service.Client
	queues *azqueue.ServiceClient
}

func lossyEmulator(t *testing.T, probability float64) emulator {
	t.Helper()
	account := azuritetest.Account(t)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	options := func() policy.ClientOptions { // not shared: constructors of queue clients write into them
		return policy.ClientOptions{Transport: &http.Client{Transport: transport}}
	}
	through := func(endpoint string) string {
		target, err := url.Parse(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		proxy := aztest.NewProxy(target, 1, aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: probability})
		t.Cleanup(proxy.Close)
		server := httptest.NewServer(proxy.Handler())
		t.Cleanup(server.Close)
		return server.URL + target.Path
	}
	if probability == 0 {
		through = func(endpoint string) string { return endpoint }
	}
	key, err := service.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	queueKey, err := azqueue.NewSharedKeyCredential(account.Name, account.Key)
	if err != nil {
		t.Fatal(err)
	}
	var e emulator
	if e.blobs, err = service.NewClientWithSharedKeyCredential(through(account.BlobURL), key, &service.ClientOptions{ClientOptions: options()}); err != nil {
		t.Fatal(err)
	}
	if e.queues, err = azqueue.NewServiceClientWithSharedKeyCredential(through(account.QueueURL), queueKey, &azqueue.ClientOptions{ClientOptions: options()}); err != nil {
		t.Fatal(err)
	}
	if e.direct, err = container.NewClientWithSharedKeyCredential(account.BlobURL+"/box", key, &container.ClientOptions{ClientOptions: options()}); err != nil {
		t.Fatal(err)
	}
	e.boxes = e.blobs.NewContainerClient("box")
	if _, err := optimistic.Create(t.Context(), settings.NewContainerMetadata(e.boxes), nil, &optimistic.WriteOptions{SendOptions: optest.Quick}); err != nil {
		t.Fatal(err)
	}
	queue, err := azqueue.NewQueueClientWithSharedKeyCredential(account.QueueURL+"/jobs", queueKey, &azqueue.ClientOptions{ClientOptions: options()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e emulator) block(t *testing.T, name string, o *blobs.UploadOptions) *blockblob.Client {
	t.Helper()
	if _, err := blobs.Upload(t.Context(), e.direct.NewBlockBlobClient(name), strings.NewReader("x"), o); err != nil {
		t.Fatal(err)
	}
	return e.boxes.NewBlockBlobClient(name)
}

// countTo runs one update after the other over the lossy network, and compares what is there with what was reported.
func countTo[T any](t *testing.T, target optimistic.Target[T], get func(T) []int, set func(*T, []int), traceless bool) {
	t.Helper()
	success, unknown, resolved := 0, 0, 0
	for range 15 {
		res, err := optimistic.Update(context.Background(), target, func(_ context.Context, v *T) error {
			n := get(*v)
			n[0]++
			set(v, n)
			return nil
		}, &optimistic.UpdateOptions{SendOptions: optest.Quick})
		resolved += res.Resolved
		switch {
		case err == nil:
			success++
		case errors.Is(err, optimistic.ErrOutcomeUnknown) && traceless:
			unknown++
		default:
			t.Error(err)
		}
	}
	v, err := optimistic.Read(context.Background(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := get(v.Value)[0]
	t.Logf("%d successes, %d unknown, %d lost responses resolved, n = %d", success, unknown, resolved, n)
	if n < success || n > success+unknown {
		t.Errorf("n = %d after %d successes and %d unknown", n, success, unknown)
	}
}

// TestEveryTargetOnAzurite is the smoke test of each target on a real server that loses responses. What Azurite cannot
// show: it ignores x-ms-if-tags on Set Blob Tags (TestAzuriteIgnoresTheGuardOfTags), and its dates and leases on
// containers are looser than documented; both are tested against the in-memory service.
func TestEveryTargetOnAzurite(t *testing.T) {
	e := lossyEmulator(t, 0.2)
	t.Run("headers", func(t *testing.T) {
		client := e.block(t, "headers", nil)
		countTo(t, blobs.NewHeaders(client.BlobClient()), func(h blobs.HTTPHeaders) []int { return numbersOf(h.CacheControl) },
			func(h *blobs.HTTPHeaders, n []int) { h.CacheControl = textOf(n) }, true)
		if p := optest.PropertiesOf(t, client.BlobClient()); *p.ContentType != "application/octet-stream" {
			t.Errorf("Content-Type %s", *p.ContentType)
		}
	})
	t.Run("tags", func(t *testing.T) {
		client := e.block(t, "tags", &blobs.UploadOptions{Tags: map[string]string{"state": "ready", optimistic.LineageKey: "-"}})
		countTo(t, blobs.NewTags(client.BlobClient()), inMap, toMap, false)
		if got := optest.TagsOf(t, client.BlobClient()); got["state"] != "ready" {
			t.Errorf("tags = %v", got)
		}
	})
	t.Run("pages", func(t *testing.T) {
		direct := e.direct.NewPageBlobClient("pages")
		if _, err := direct.Create(t.Context(), 4*pages.PageSize, nil); err != nil {
			t.Fatal(err)
		}
		client := e.boxes.NewPageBlobClient("pages")
		target := pages.NewRange(client, pages.PageSize, 2*pages.PageSize)
		countTo(t, target, func(data []byte) []int { return []int{int(data[0])} }, func(data *[]byte, n []int) { (*data)[0] = byte(n[0]) }, true)
		if n, _, err := pages.RaiseSequenceNumber(t.Context(), client, 1000, &optimistic.WriteOptions{SendOptions: optest.Quick}); err != nil || n != 1000 {
			t.Errorf("RaiseSequenceNumber = %d, %v", n, err)
		}
		low := int64(999)
		if _, err := pages.Put(t.Context(), direct, 0, bytes.Repeat([]byte{1}, pages.PageSize), &pages.PutOptions{Sequence: pages.SequenceConditions{IfAtMost: &low}, SendOptions: optest.Quick}); !errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want it fenced", err)
		}
	})
	t.Run("container", func(t *testing.T) {
		countTo(t, settings.NewContainerMetadata(e.boxes), inMap, toMap, false)
		countTo(t, settings.NewContainerACL(e.boxes), func(v settings.ACL) []int {
			if len(v.Policies) == 0 {
				return make([]int, slots)
			}
			return numbersOf(v.Policies[0].ID)
		}, func(v *settings.ACL, n []int) {
			v.Policies = []settings.AccessPolicy{{ID: textOf(n), Permissions: "r", Expiry: time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)}}
		}, true)
	})
	t.Run("queue", func(t *testing.T) {
		queue := e.queues.NewQueueClient("jobs")
		countTo(t, settings.NewLastWriterWinsQueueMetadata(queue), inMap, toMap, false)
		addPolicy := func(_ context.Context, p *[]settings.AccessPolicy) error {
			*p = append(*p, settings.AccessPolicy{ID: "readers", Permissions: "r"})
			return nil
		}
		if _, err := optimistic.Update(t.Context(), settings.NewLastWriterWinsQueueACL(queue), addPolicy, &optimistic.UpdateOptions{SendOptions: optest.Quick}); err != nil {
			t.Error(err)
		}
		v, err := optimistic.Read(t.Context(), settings.NewLastWriterWinsQueueACL(queue), nil)
		if err != nil || len(v.Value) != 1 || v.Value[0].ID != "readers" {
			t.Errorf("read %+v, %v", v, err)
		}
	})
	t.Run("services", func(t *testing.T) {
		enableLogging := func(_ context.Context, p *azqueue.SetPropertiesOptions) error {
			p.Logging.Read = new(true)
			return nil
		}
		if _, err := optimistic.Update(t.Context(), settings.NewLastWriterWinsQueueService(e.queues), enableLogging, &optimistic.UpdateOptions{SendOptions: optest.Quick}); err != nil {
			t.Error(err)
		}
		q, err := optimistic.Read(t.Context(), settings.NewLastWriterWinsQueueService(e.queues), nil)
		if err != nil || q.Value.Logging == nil || !*q.Value.Logging.Read {
			t.Errorf("read %+v, %v", q, err)
		}
	})
}

// TestRecordsOnAzurite lets several appenders write over the lossy network.
func TestRecordsOnAzurite(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	e := lossyEmulator(t, 0.2)
	const appenders, each = 4, 10
	res, err := appends.AppendRecord(t.Context(), e.direct.NewAppendBlobClient("log"), []byte("first"), &appends.AppendOptions{
		Create: true, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")},
	})
	if err != nil || !res.Created {
		t.Fatalf("AppendRecord = %+v, %v", res, err)
	}
	var wg sync.WaitGroup
	for me := range appenders {
		wg.Go(func() {
			client := e.boxes.NewAppendBlobClient("log")
			for n := range each {
				if _, err := appends.AppendRecord(context.Background(), client, fmt.Appendf(nil, "%d/%d", me, n), &appends.AppendOptions{Attempts: -1, SendOptions: optest.Quick}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	client := e.boxes.NewAppendBlobClient("log")
	resp, err := client.DownloadStream(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	seen := map[string]int{}
	for r, err := range appends.Records(resp.Body) {
		if err != nil {
			t.Fatal(err)
		}
		seen[string(r.Data)]++
	}
	for content, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", content, n)
		}
	}
	if len(seen) != appenders*each+1 {
		t.Errorf("%d records, want %d", len(seen), appenders*each+1)
	}
	if _, err := client.Seal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := appends.AppendRecord(t.Context(), client, []byte("late"), &appends.AppendOptions{SendOptions: optest.Quick}); !errors.Is(err, appends.ErrSealed) {
		t.Errorf("err = %v, want sealed", err)
	}
}

// TestCopiesOnAzurite: copies finish at once there, and the code of a failed condition does not distinguish the source
// from the destination.
func TestCopiesOnAzurite(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: other tests ask Azurite, and this is a short run")
	}
	e := lossyEmulator(t, 0.3)
	from := e.block(t, "from", &blobs.UploadOptions{Metadata: map[string]string{"owner": "web"}})
	for i := range 6 {
		to := e.boxes.NewBlockBlobClient(fmt.Sprint("to", i))
		res, err := blobs.Copy(t.Context(), to.BlobClient(), from.BlobClient(), &blobs.CopyOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, Wait: true, SendOptions: optest.Quick})
		if err != nil || res.Status != blob.CopyStatusTypeSuccess {
			t.Fatalf("Copy = %+v, %v", res, err)
		}
		resp, err := to.DownloadStream(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		if own, _ := meta.Split(resp.Metadata); err != nil || string(data) != "x" || own["owner"] != "web" || *resp.CopyID != res.CopyID {
			t.Errorf("%q, %v, copied by %s, reported %s", data, own, *resp.CopyID, res.CopyID)
		}
		if _, err := blobs.Copy(t.Context(), to.BlobClient(), from.BlobClient(), &blobs.CopyOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, SendOptions: optest.Quick}); !errors.Is(err, optimistic.ErrExists) {
			t.Errorf("err = %v, want exists", err)
		}
		if _, err := blobs.Copy(t.Context(), to.BlobClient(), from.BlobClient(), &blobs.CopyOptions{Source: optimistic.Conditions{IfMatch: `"0x1"`}, SendOptions: optest.Quick}); !errors.Is(err, optimistic.ErrConflict) {
			t.Errorf("err = %v, want a conflict", err)
		}
	}
}

// TestAzuriteIgnoresTheGuardOfTags keeps the reason for testing tags elsewhere honest: when it fails, Azurite has learnt
// to check x-ms-if-tags on Set Blob Tags, and contenders can be tested there.
func TestAzuriteIgnoresTheGuardOfTags(t *testing.T) {
	e := lossyEmulator(t, 0)
	client := e.block(t, "tags", &blobs.UploadOptions{Tags: map[string]string{"a": "1"}})
	_, err := client.SetTags(t.Context(), map[string]string{"a": "2"}, &blob.SetTagsOptions{
		AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfTags: new(`"a" = 'other'`)}},
	})
	if err != nil {
		t.Errorf("Azurite checked the condition: %v", err)
	}
}
