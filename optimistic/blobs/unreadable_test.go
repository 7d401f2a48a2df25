package blobs

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// writeOnly returns a service that verifies signatures, and a client of box/n.json with a SAS that grants c and w.
func writeOnly(t *testing.T, content string) (*aztest.Service, *blockblob.Client, *blockblob.Client) {
	t.Helper()
	s := aztest.New(&aztest.Options{VerifySignatures: true})
	owner := s.BlockBlob("box", "n.json")
	if content != "" {
		optest.Put(t, owner, content)
	}
	url, err := owner.BlobClient().GetSASURL(sas.BlobPermissions{Create: true, Write: true}, time.Now().Add(time.Hour), nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithNoCredential(url, &blockblob.ClientOptions{ClientOptions: s.ClientOptions()})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	return s, owner, client
}

// TestAnUploadNeedsNoRightToRead: it looked first, got 403, and uploaded nothing.
func TestAnUploadNeedsNoRightToRead(t *testing.T) {
	for name, tt := range map[string]struct {
		content  string
		o        func(version azcore.ETag) UploadOptions
		requests int
	}{
		"create": {"", func(azcore.ETag) UploadOptions {
			return UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}
		}, 1},
		"create, looking first": {"", func(azcore.ETag) UploadOptions {
			return UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, LookFirst: true}
		}, 1},
		"create in blocks": {"", func(azcore.ETag) UploadOptions {
			return UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}, BlockSize: 4}
		}, 4},
		"replace any":            {"old", func(azcore.ETag) UploadOptions { return UploadOptions{} }, 1},
		"replace, looking first": {"old", func(azcore.ETag) UploadOptions { return UploadOptions{LookFirst: true} }, 2},
		"replace a version":      {"old", func(v azcore.ETag) UploadOptions { return UploadOptions{Conditions: optimistic.Conditions{IfMatch: v}} }, 2},
		"replace it in blocks": {"old", func(v azcore.ETag) UploadOptions {
			return UploadOptions{Conditions: optimistic.Conditions{IfMatch: v}, BlockSize: 4}
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s, owner, client := writeOnly(t, tt.content)
			var version azcore.ETag
			if tt.content != "" {
				version = optest.ETagOf(t, owner)
			}
			s.Reset()
			o := tt.o(version)
			res, err := Upload(t.Context(), client, optest.Body("new text"), &o)
			if err != nil || !res.Changed || res.Created != (tt.content == "") || optest.Get(t, owner) != "new text" {
				t.Errorf("%+v, %v", res, err)
			}
			if res.Requests != tt.requests {
				t.Errorf("%d requests, want %d: %v", res.Requests, tt.requests, s.Log())
			}
			if res, err = Upload(t.Context(), client, optest.Body("newer"), &o); o.Conditions != (optimistic.Conditions{}) && !errors.Is(err, optimistic.ErrConflict) {
				t.Errorf("again: %+v, %v", res, err)
			}
		})
	}
}

// TestALostResponseThatMayNotBeLookedIntoNamesTheRight: the outcome is unknown, and the message says what would show it.
func TestALostResponseThatMayNotBeLookedIntoNamesTheRight(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.LoseAnswer, aztest.LoseRequest} {
		synctest.Test(t, func(t *testing.T) {
			s, owner, client := writeOnly(t, "")
			s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
			res, err := Upload(t.Context(), client, optest.Body("new"), &UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}})
			if !errors.Is(err, optimistic.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "the right to read it (r in a SAS)") || !strings.Contains(err.Error(), `it grants "cw"`) || res.Requests != 2 {
				t.Errorf("%s: %+v, %v", kind, res, err)
			}
			if there := kind == aztest.LoseAnswer; there && optest.Get(t, owner) != "new" {
				t.Errorf("%s: it was sent again", kind)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, owner, client := writeOnly(t, "old")
		version := optest.ETagOf(t, owner)
		s.Reset()
		s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Count: 1})
		_, err := Upload(t.Context(), client, optest.Body("new"), &UploadOptions{Conditions: optimistic.Conditions{IfMatch: version}})
		if !errors.Is(err, optimistic.ErrOutcomeUnknown) || !strings.Contains(err.Error(), "the right to read it (r in a SAS)") {
			t.Errorf("a version: %v", err)
		}
	})
}
