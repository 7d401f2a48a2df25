package blobs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

// growing returns an append blob of 300 bytes, and a writer that appends to it after each range that is read.
func growing(t *testing.T) (*aztest.Service, *appendblob.Client, *watcher) {
	t.Helper()
	s := aztest.New(nil)
	s.BlockBlob("box", "any") // makes the container
	client := s.Container("box").NewAppendBlobClient("log")
	if _, err := client.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	appendTo(t, client, strings.Repeat("0123456789", 30))
	s.Reset()
	return s, client, &watcher{change: func() { appendTo(t, client, "more") }}
}

func appendTo(t *testing.T, client *appendblob.Client, content string) {
	t.Helper()
	if _, err := client.AppendBlock(t.Context(), optest.Body(content), nil); err != nil {
		t.Error(err)
	}
}

// TestAnAppendBlobThatGrowsIsReadUpToItsFirstLength: its bytes never change, but the read ended with a conflict.
func TestAnAppendBlobThatGrowsIsReadUpToItsFirstLength(t *testing.T) {
	s, client, w := growing(t)
	o := &DownloadOptions{BlockSize: 50, Concurrency: 1}
	got, err := Download(t.Context(), client.BlobClient(), w, o)
	if err != nil || got.Size != 300 || w.String() != strings.Repeat("0123456789", 30) || got.Restarts != 0 || got.Requests != 6 || got.Sealed {
		t.Fatalf("Download = %+v, %v: %q", got, err, w.String())
	}
	for offset, requests := range map[int64]int{300: 1, 304: 1, 1: 7, 299: 1, 324: 1, 0: 7} {
		s.Reset()
		var rest bytes.Buffer
		o.Offset = offset
		got, err := Download(t.Context(), client.BlobClient(), &rest, o)
		if all := w.String() + strings.Repeat("more", 6); err != nil || rest.String() != all[offset:] || got.Size != 324 || s.Requests() != requests {
			t.Errorf("from %d on: %+v, %v: %q with %d requests", offset, got, err, rest.String(), s.Requests())
		}
	}
	o.Offset = 325
	if _, err := Download(t.Context(), client.BlobClient(), w, o); err == nil || !strings.Contains(err.Error(), "fewer than 325 bytes") {
		t.Errorf("past the end: %v", err)
	}
	o.Offset = -1
	if _, err := Download(t.Context(), client.BlobClient(), w, o); err == nil || !strings.Contains(err.Error(), "Offset: -1") {
		t.Errorf("before the beginning: %v", err)
	}
	s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"Content-Range"}})
	o.Offset = 100
	o.Tries = 2
	if _, err := Download(t.Context(), client.BlobClient(), w, o); err == nil || !strings.Contains(err.Error(), "Content-Range") {
		t.Errorf("a range that may be another one: %v", err)
	}
	s.SetFaults()
	if _, err := client.Seal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	o.Offset = 324
	if got, err := Download(t.Context(), client.BlobClient(), &w.Buffer, o); err != nil || !got.Sealed || got.Size != 324 {
		t.Errorf("sealed: %+v, %v", got, err)
	}
}

// TestAnAppendBlobThatIsCreatedAgainHasChanged while it is read, however long it is then. One that is replaced keeps its time of
// creation, so it is recognized by its fewer blocks.
func TestAnAppendBlobThatIsCreatedAgainHasChanged(t *testing.T) {
	for name, again := range map[string]func(t *testing.T, client *appendblob.Client) error{
		"replaced": func(t *testing.T, client *appendblob.Client) error {
			return optest.ErrorOf(client.Create(t.Context(), nil))
		},
		"deleted": func(t *testing.T, client *appendblob.Client) error {
			return optest.ErrorOf(client.Delete(t.Context(), nil))
		},
		"deleted and created": func(t *testing.T, client *appendblob.Client) error {
			return errors.Join(optest.ErrorOf(client.Delete(t.Context(), nil)), optest.ErrorOf(client.Create(t.Context(), nil)))
		},
	} {
		for _, blocks := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(name, " with ", blocks), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, client, w := growing(t)
					appendTo(t, client, "second") // so that one block is fewer
					bubble.Sleep(2 * time.Second)
					n := 0
					w.change = func() {
						if n++; n != 2 {
							return
						}
						if err := again(t, client); err != nil {
							t.Error(err)
						}
						for range blocks {
							if name == "deleted and created" || name == "replaced" && blocks == 1 {
								appendTo(t, client, strings.Repeat("x", 400))
							}
						}
					}
					_, err := Download(t.Context(), client.BlobClient(), w, &DownloadOptions{BlockSize: 50, Concurrency: 1})
					if !errors.Is(err, optimistic.ErrConflict) {
						t.Errorf("err = %v, want a conflict: %q", err, w.String())
					}
				})
			})
		}
	}
}
