package optimistic_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/pages"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/optimistic/settings"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// onlyCreate are all calls that create a blob only if there is none, under a lease id if it is not empty.
func onlyCreate(s *aztest.Service, leaseID string) map[string]func(ctx context.Context) (optimistic.Result, error) {
	new := optimistic.Conditions{IfNoneMatch: "*", LeaseID: leaseID}
	box, block := s.Container("box"), s.BlockBlob("box", "n.json")
	return map[string]func(ctx context.Context) (optimistic.Result, error){
		"create": func(ctx context.Context) (optimistic.Result, error) {
			return optimistic.Create(ctx, blobs.NewBytes(block), []byte("new"), &optimistic.WriteOptions{Conditions: optimistic.Conditions{LeaseID: leaseID}})
		},
		"upload": func(ctx context.Context) (optimistic.Result, error) {
			return blobs.Upload(ctx, block, optest.Body("new"), &blobs.UploadOptions{Conditions: new})
		},
		"upload after a look": func(ctx context.Context) (optimistic.Result, error) {
			return blobs.Upload(ctx, block, optest.Body("new"), &blobs.UploadOptions{Conditions: new, LookFirst: true})
		},
		"upload in blocks": func(ctx context.Context) (optimistic.Result, error) {
			return blobs.Upload(ctx, block, optest.Body("new"), &blobs.UploadOptions{Conditions: new, BlockSize: 1})
		},
		"commit": func(ctx context.Context) (optimistic.Result, error) {
			return blobs.CommitBlocks(ctx, block, nil, &blobs.UploadOptions{Conditions: new})
		},
		"pages": func(ctx context.Context) (optimistic.Result, error) {
			return pages.Create(ctx, box.NewPageBlobClient("n.json"), 512, &pages.CreateOptions{Conditions: new})
		},
		"copy": func(ctx context.Context) (optimistic.Result, error) {
			r, err := blobs.Copy(ctx, block.BlobClient(), box.NewBlobClient("source"), &blobs.CopyOptions{Conditions: new})
			return r.Result, err
		},
	}
}

// leased stores a blob and its copy's source, and leases the blob.
func leased(t *testing.T) (s *aztest.Service, id string) {
	t.Helper()
	s, client := optest.Quiet(t, "old")
	optest.Put(t, s.BlockBlob("box", "source"), "source")
	id = "11111111-2222-3333-4444-555555555555"
	holder, err := lease.NewBlobClient(client, &lease.BlobClientOptions{LeaseID: &id})
	if err == nil {
		_, err = holder.AcquireLease(t.Context(), -1, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return s, id
}

// TestACreateOfALeasedBlobFindsIt: to a create without the lease's id an account answers 412 LeaseIdMissing instead of 409
// BlobAlreadyExists.
func TestACreateOfALeasedBlobFindsIt(t *testing.T) {
	for name := range onlyCreate(aztest.New(nil), "") {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := leased(t)
				bubble.Sleep(time.Minute) // so that the blob is known to be older than the create
				_, err := onlyCreate(s, "")[name](t.Context())
				conflict, ok := errors.AsType[*optimistic.ConflictError](err)
				if !ok || !errors.Is(err, optimistic.ErrExists) || conflict.Current != optest.ETagOf(t, s.BlockBlob("box", "n.json")) {
					t.Errorf("err = %v, want that it exists\n%v", err, s.Log())
				}
				if got := optest.Get(t, s.BlockBlob("box", "n.json")); got != "old" {
					t.Errorf("content %q", got)
				}
			})
		})
	}
}

// TestACreateOfALeasedBlobAfterALostRequestFindsIt: the second request is the one that meets the lease.
func TestACreateOfALeasedBlobAfterALostRequestFindsIt(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseRequest, aztest.Throttle, aztest.Refuse} {
		synctest.Test(t, func(t *testing.T) {
			s, _ := leased(t)
			bubble.Sleep(time.Minute)
			s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
			_, err := optimistic.Create(t.Context(), blobs.NewBytes(s.BlockBlob("box", "n.json")), []byte("new"), nil)
			// After a lost request nothing shows that the blob without a lineage is not a successor of ours.
			if !errors.Is(err, optimistic.ErrExists) && !(kind == aztest.LoseRequest && errors.Is(err, optimistic.ErrOutcomeUnknown)) {
				t.Errorf("%s: err = %v, want that it exists\n%v", kind, err, s.Log())
			}
		})
	}
}

// TestAnAppendToALeasedBlobDoesNotCreateIt: the blob was created and leased between the look and the create.
func TestAnAppendToALeasedBlobDoesNotCreateIt(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "any")
	client := s.Container("box").NewAppendBlobClient("log")
	id := "11111111-2222-3333-4444-555555555555"
	s.SetFaults(aztest.Fault{Kind: aztest.Answer, Match: aztest.Op("Get Blob Properties"), Status: 404, Code: "BlobNotFound", Count: 1})
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	holder, err := lease.NewBlobClient(client, &lease.BlobClientOptions{LeaseID: &id})
	if err == nil {
		_, err = holder.AcquireLease(t.Context(), -1, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	res, err := appends.Append(t.Context(), client, []byte("x"), &appends.AppendOptions{Create: true, Conditions: optimistic.Conditions{LeaseID: id}})
	if err != nil || res.Created || res.Offset != 0 {
		t.Errorf("Append = %+v, %v\n%v", res, err, s.Log())
	}
}

// TestACreateUnderALeaseIsRefused: with the id of its lease, an account overwrites an existing blob although the request
// only creates.
func TestACreateUnderALeaseIsRefused(t *testing.T) {
	s, id := leased(t)
	for name, create := range onlyCreate(s, id) {
		if _, err := create(t.Context()); err == nil || !strings.Contains(err.Error(), "lease id") || s.Requests() != 0 {
			t.Errorf("%s: err = %v after %v", name, err, s.Log())
			s.Reset()
		}
	}
	o := &optimistic.WriteOptions{Conditions: optimistic.Conditions{LeaseID: id}}
	if _, err := optimistic.Create(t.Context(), settings.NewContainerMetadata(s.Container("other")), nil, o); err == nil || s.Requests() != 0 {
		t.Errorf("container: err = %v after %v", err, s.Log())
	}
	// An update that may create writes under the lease as long as there is a blob.
	u := &optimistic.UpdateOptions{Create: true, Conditions: optimistic.Conditions{LeaseID: id}}
	set := func(_ context.Context, v *[]byte) error { *v = []byte("new"); return nil }
	if _, err := optimistic.Update(t.Context(), blobs.NewBytes(s.BlockBlob("box", "n.json")), set, u); err != nil {
		t.Error(err)
	}
	if _, err := optimistic.Update(t.Context(), blobs.NewBytes(s.BlockBlob("box", "none")), set, u); err == nil || !strings.Contains(err.Error(), "lease id") {
		t.Errorf("err = %v", err)
	}
	if got := optest.PropertiesOf(t, s.Container("box").NewBlobClient("n.json")); *got.LeaseState != lease.StateTypeLeased {
		t.Errorf("the blob is %s", *got.LeaseState)
	}
}
