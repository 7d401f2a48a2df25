package optimistic_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/optimistic/tables"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// TestAnUnconditionalDeleteSparesABlobThatWasCreatedSince: the response is lost, and another client creates the blob
// again before the deletion is repeated.
func TestAnUnconditionalDeleteSparesABlobThatWasCreatedSince(t *testing.T) {
	for name, tt := range map[string]struct {
		fault aztest.Fault
		after time.Duration // from the first request to the creation
	}{
		"at once":          {aztest.Fault{Kind: aztest.LoseAnswer}, time.Millisecond},
		"before a timeout": {aztest.Fault{Kind: aztest.Hang}, 20 * time.Second}, // and the other client deletes the old one
		"by an error":      {aztest.Fault{Kind: aztest.FailAfterCommit}, time.Millisecond},
		"behind a portal":  {aztest.Fault{Kind: aztest.PageAfterCommit, Status: 202}, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			bothDates(t, "old", func(t *testing.T, s *aztest.Service, client *blockblob.Client) {
				bubble.Sleep(time.Hour)
				tt.fault.Match, tt.fault.Count = aztest.Op("Delete Blob"), 1
				s.SetFaults(tt.fault)
				go func() {
					bubble.Sleep(tt.after)
					_, _ = client.Delete(context.Background(), nil)
					if _, err := client.Upload(context.Background(), optest.Body("new"), nil); err != nil {
						t.Error(err)
					}
				}()
				o := &optimistic.WriteOptions{}
				o.Pause.Base, o.Pause.Rand = time.Minute, func() float64 { return 1 }
				res, err := optimistic.Delete(t.Context(), blobs.NewBytes(client), optimistic.State{}, o)
				if !errors.Is(err, optimistic.ErrOutcomeUnknown) || res.Changed {
					t.Errorf("Delete = %+v, %v\n%v", res, err, s.Log())
				}
				if got := optest.Get(t, client); got != "new" {
					t.Errorf("content %q", got)
				}
			})
		})
	}
}

// TestARepeatedDeleteNamesTheVersionItFound: what is written between the look and the repetition is looked at again.
func TestARepeatedDeleteNamesTheVersionItFound(t *testing.T) {
	for name, tt := range map[string]struct {
		create func(ctx context.Context, s *aztest.Service) error
		remove func(ctx context.Context, s *aztest.Service) (optimistic.Result, error)
		op     string
	}{
		"blob": {
			func(ctx context.Context, s *aztest.Service) error {
				_, err := s.BlockBlob("box", "n.json").Upload(ctx, optest.Body("x"), nil)
				return err
			},
			func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
				return optimistic.Delete(ctx, blobs.NewBytes(s.BlockBlob("box", "n.json")), optimistic.State{}, nil)
			}, "Delete Blob",
		},
		"entity": {
			func(ctx context.Context, s *aztest.Service) error {
				_, err := s.Table("orders").UpsertEntity(ctx, []byte(`{"PartitionKey":"p","RowKey":"r"}`), nil)
				return err
			},
			func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
				return optimistic.Delete(ctx, tables.NewEntity[optest.Counter](s.Table("orders"), "p", "r"), optimistic.State{}, nil)
			}, "Delete Entity",
		},
		"container": {
			func(ctx context.Context, s *aztest.Service) error {
				_, err := s.Container("other").SetMetadata(ctx, nil)
				return err
			},
			func(ctx context.Context, s *aztest.Service) (optimistic.Result, error) {
				return optimistic.Delete(ctx, settings.NewContainerMetadata(s.Container("other")), optimistic.State{}, nil)
			}, "Delete Container",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := aztest.New(&aztest.Options{Latency: func() time.Duration { return time.Second }})
				s.BlockBlob("box", "any")
				if _, err := s.Container("other").Create(t.Context(), nil); err != nil && name == "container" {
					t.Fatal(err)
				}
				if err := tt.create(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				bubble.Sleep(time.Hour)
				s.Reset()
				s.SetFaults(aztest.Fault{Kind: aztest.LoseRequest, Match: aztest.Op(tt.op), Count: 1})
				done := make(chan struct{})
				go func() { // overwrites it while the look's response is under way
					defer close(done)
					bubble.Sleep(1200 * time.Millisecond)
					if err := tt.create(context.Background(), s); err != nil {
						t.Error(err)
					}
				}()
				res, err := tt.remove(t.Context(), s)
				if err != nil || !res.Changed || res.Ambiguous != 1 {
					t.Errorf("Delete = %+v, %v\n%v", res, err, s.Log())
				}
				<-done
				deletions := 0
				for _, r := range s.Log() {
					if r.Op != tt.op {
						continue
					}
					if deletions++; deletions > 1 && !guarded(r) {
						t.Errorf("repeated without a condition: %v", r)
					}
				}
				if name != "container" && deletions != 3 { // a container is compared before its second deletion
					t.Errorf("%d deletions\n%v", deletions, s.Log())
				}
			})
		})
	}
}

// TestTagsAreNotWrittenOverABaseThatWasNotRead: the tags that were read are the condition of the write.
func TestTagsAreNotWrittenOverABaseThatWasNotRead(t *testing.T) {
	s, client := optest.Quiet(t, "old")
	base := &optimistic.Version[map[string]string]{State: optimistic.State{Exists: true, ETag: `"tags-1"`}}
	_, err := optimistic.Replace(t.Context(), blobs.NewTags(client.BlobClient()), base, map[string]string{"a": "b"}, nil)
	if !errors.Is(err, optimistic.ErrConflict) || slices.ContainsFunc(s.Log(), func(r aztest.Request) bool { return aztest.Writes(&r) }) {
		t.Errorf("err = %v after %v", err, s.Log())
	}
}

// TestADeleteOfAVersionNeedsItsETag: a state that exists without an ETag is not "any version". The service takes some malformed
// ones for no condition.
func TestADeleteOfAVersionNeedsItsETag(t *testing.T) {
	s, client := optest.Quiet(t, "old")
	target := blobs.NewBytes(client)
	v, err := optimistic.Read(t.Context(), target, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	for etag, want := range map[azcore.ETag]string{"": "the base has no ETag", "0x8D": `base.ETag: "0x8D" is not an ETag; give it as the service wrote it`} {
		v.ETag = etag
		for name, err := range map[string]error{
			"delete":  optest.ErrorOf(optimistic.Delete(t.Context(), target, v.State, nil)),
			"replace": optest.ErrorOf(optimistic.Replace(t.Context(), target, v, []byte("new"), nil)),
		} {
			if err == nil || !strings.Contains(err.Error(), want) || s.Requests() > 0 {
				t.Errorf("%s: %v after %v", name, err, s.Log())
			}
		}
	}
}
