package optimistic_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/pageblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/pages"
	"github.com/azconc/azconc/pkg/aztest"
)

// slowSender is a transport that still has the body of the last write when it gives up, as net/http may.
type slowSender struct {
	to   policy.Transporter
	body io.Reader
}

func (s *slowSender) Do(r *http.Request) (*http.Response, error) {
	if r.ContentLength <= 0 {
		return s.to.Do(r)
	}
	s.body = r.Body
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestTheCallersMemoryIsNotReadAfterTheCall: net/http went on to send what the caller had put there since.
func TestTheCallersMemoryIsNotReadAfterTheCall(t *testing.T) {
	const at = "https://" + aztest.Account + ".blob.core.windows.net/box/b"
	for name, write := range map[string]func(ctx context.Context, o policy.ClientOptions, data []byte) error{
		"a block": func(ctx context.Context, o policy.ClientOptions, data []byte) error {
			client, err := blockblob.NewClientWithNoCredential(at, &blockblob.ClientOptions{ClientOptions: o})
			_, staged := blobs.StageBlock(ctx, client, "a", data, nil)
			return errors.Join(err, staged)
		},
		"an append": func(ctx context.Context, o policy.ClientOptions, data []byte) error {
			client, err := appendblob.NewClientWithNoCredential(at, &appendblob.ClientOptions{ClientOptions: o})
			_, appended := appends.Append(ctx, client, data, &appends.AppendOptions{Pinned: true})
			return errors.Join(err, appended)
		},
		"pages": func(ctx context.Context, o policy.ClientOptions, data []byte) error {
			client, err := pageblob.NewClientWithNoCredential(at, &pageblob.ClientOptions{ClientOptions: o})
			_, put := pages.Put(ctx, client, 0, data, nil)
			return errors.Join(err, put)
		},
		"content": func(ctx context.Context, o policy.ClientOptions, data []byte) error {
			client, err := blockblob.NewClientWithNoCredential(at, &blockblob.ClientOptions{ClientOptions: o})
			_, created := optimistic.Create(ctx, blobs.NewBytes(client), data, nil)
			return errors.Join(err, created)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sender := &slowSender{to: aztest.New(nil)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				data := []byte(strings.Repeat("x", pages.PageSize))
				if err := write(ctx, policy.ClientOptions{Transport: sender}, data); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				copy(data, "another's")
				if got, _ := io.ReadAll(sender.body); strings.HasPrefix(string(got), "another's") {
					t.Errorf("%d bytes were read", len(got))
				}
			})
		})
	}
}
