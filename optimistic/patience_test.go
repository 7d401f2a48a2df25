package optimistic_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestAHangLeavesTheTimeForConflicts: a try that hung took the 30 s that were for conflicts, so the first conflict was final.
func TestAHangLeavesTheTimeForConflicts(t *testing.T) {
	for _, op := range []string{"Get Blob", "Put Blob"} {
		synctest.Test(t, func(t *testing.T) {
			s, client := optest.Quiet(t, `{"n":1}`)
			s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Op(op), Count: 1})
			time.AfterFunc(10*time.Second, func() { optest.Put(t, client, `{"n":10}`) }) // while the write hangs
			res, err := optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](client), func(ctx context.Context, c *optest.Counter) error {
				if op == "Get Blob" && optimistic.EarlierRuns(ctx) == 0 {
					optest.Put(t, client, `{"n":20}`)
				}
				return optest.Increment(ctx, c)
			}, nil)
			if unknown := op == "Put Blob"; unknown != errors.Is(err, optimistic.ErrOutcomeUnknown) || !unknown && (err != nil || res.Attempts != 2 || optest.Count(t, client) != 21) {
				t.Errorf("%s: %+v, %v", op, res, err)
			}
		})
	}
}

// TestASmallUploadWaitsNoLongerThanATry: it waited for the answer to a swallowed request as long as for 8 MiB on a slow line.
func TestASmallUploadWaitsNoLongerThanATry(t *testing.T) {
	for name, run := range map[string]func(context.Context, *blockblob.Client) (optimistic.Result, error){
		"upload": func(ctx context.Context, client *blockblob.Client) (optimistic.Result, error) {
			return blobs.Upload(ctx, client, optest.Body("ten bytes!"), nil)
		},
		"block": func(ctx context.Context, client *blockblob.Client) (optimistic.Result, error) {
			return blobs.StageBlock(ctx, client, "1", []byte("ten bytes!"), nil)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, client := optest.Quiet(t, "old")
			s.SetFaults(aztest.Fault{Kind: aztest.Hang, Match: aztest.Writes, Count: 1})
			began := time.Now()
			res, err := run(t.Context(), client)
			if took := time.Since(began); err != nil || took > 31*time.Second {
				t.Errorf("%s: %+v, %v after %v", name, res, err, took)
			}
		})
	}
}

// TestACreateThatACopyHasOverwrittenIsUnknown: the copy brings the lineage of its source, whose first write was taken for the one that
// created the blob.
func TestACreateThatACopyHasOverwrittenIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		source := s.BlockBlob("box", "source")
		if _, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](source), optest.Counter{N: 7}, nil); err != nil {
			t.Fatal(err)
		}
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1})
		time.AfterFunc(time.Microsecond, func() {
			if _, err := client.BlobClient().StartCopyFromURL(context.Background(), source.URL(), &blob.StartCopyFromURLOptions{}); err != nil {
				t.Error(err)
			}
		})
		res, err := optimistic.Create(t.Context(), blobs.NewJSON[optest.Counter](client), optest.Counter{N: 1}, nil)
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) || optest.Count(t, client) != 7 {
			t.Errorf("%+v, %v, n = %d", res, err, optest.Count(t, client))
		}
	})
}

// weakening is a proxy that marks each ETag as weak, as one that compresses does.
type weakening struct{}

func (weakening) Do(r *policy.Request) (*http.Response, error) {
	response, err := r.Next()
	if err == nil && response.Header.Get("ETag") != "" {
		response.Header.Set("ETag", "W/"+response.Header.Get("ETag"))
	}
	return response, err
}

// TestAProxyThatWeakensETagsIsNamed: no condition on a weak ETag ever holds, so each write was refused, for 30 s and 107 requests.
func TestAProxyThatWeakensETagsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, `{"n":1}`)
		options := s.ClientOptions()
		options.PerCallPolicies = append(options.PerCallPolicies, weakening{})
		credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
		if err != nil {
			t.Fatal(err)
		}
		behind, err := blockblob.NewClientWithSharedKeyCredential(client.URL(), credential, &blockblob.ClientOptions{ClientOptions: options})
		if err != nil {
			t.Fatal(err)
		}
		for name, run := range map[string]func() (optimistic.Result, error){
			"content": func() (optimistic.Result, error) {
				return optimistic.Update(t.Context(), blobs.NewJSON[optest.Counter](behind), optest.Increment, nil)
			},
			"metadata": func() (optimistic.Result, error) {
				return optimistic.Update(t.Context(), blobs.NewMetadata(behind.BlobClient()), optest.SetMeta("a", "1"), nil)
			},
		} {
			s.Reset()
			res, err := run()
			if err == nil || errors.Is(err, optimistic.ErrConflict) || !strings.Contains(err.Error(), "a proxy has weakened it") {
				t.Errorf("%s: %v", name, err)
			}
			optest.Requests(t, s, res, 1)
		}
	})
}
