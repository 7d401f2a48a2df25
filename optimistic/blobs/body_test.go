package blobs

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// TestABodyWithoutALengthIsReadToItsEnd: an intermediary sends the response in chunks of its own and drops
// Content-Length. A body that it cuts is read again, and is never the content.
func TestABodyWithoutALengthIsReadToItsEnd(t *testing.T) {
	gets := aztest.Op("Get Blob")
	noSum := []string{"Content-MD5"}
	for _, tt := range []struct {
		name    string
		content string
		fault   aztest.Fault
		reads   int // requests until the content is known
	}{
		{"without a length", "0123456789", aztest.Fault{Kind: aztest.Rechunk}, 1},
		{"without a length and a checksum", "0123456789", aztest.Fault{Kind: aztest.Rechunk, Drop: noSum}, 2},
		{"empty, without a length and a checksum", "", aztest.Fault{Kind: aztest.Rechunk, Drop: noSum}, 2},
		{"cut", "0123456789", aztest.Fault{Kind: aztest.CutAnswer, Count: 1}, 2},
		{"cut, without an error and a length", "0123456789", aztest.Fault{Kind: aztest.Truncate, Count: 1}, 3},
		{"the same, without a checksum", "0123456789", aztest.Fault{Kind: aztest.Truncate, Drop: noSum, Count: 1}, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, tt.content)
				if tt.content == "" {
					optest.Put(t, client, "")
				}
				tt.fault.Match = gets
				s.SetFaults(tt.fault)
				s.Reset()
				v, err := optimistic.Read(t.Context(), NewBytes(client), nil)
				if err != nil || string(v.Value) != tt.content || s.Requests() != tt.reads {
					t.Errorf("Read: %+v, %v, %d requests, want %d\n%v", v, err, s.Requests(), tt.reads, s.Log())
				}
				s.SetFaults(tt.fault)
				s.Reset()
				res, err := optimistic.Update(t.Context(), NewBytes(client), func(_ context.Context, b *[]byte) error {
					*b = append(*b, '!')
					return nil
				}, nil)
				s.SetFaults()
				if err != nil || optest.Get(t, client) != tt.content+"!" {
					t.Errorf("Update = %+v, %v: the blob holds %q", res, err, optest.Get(t, client))
				}
				if res.Requests != tt.reads+1 {
					t.Errorf("Update sent %d requests, want %d", res.Requests, tt.reads+1)
				}
			})
		})
	}
}

// TestADownloadChecksTheLengthOfEachRange: a range names its length in Content-Range, which an intermediary keeps.
func TestADownloadChecksTheLengthOfEachRange(t *testing.T) {
	for _, kind := range []aztest.FaultKind{aztest.Rechunk, aztest.Truncate, aztest.CutAnswer} {
		for _, content := range []string{"", "0123456789"} {
			t.Run(fmt.Sprintf("%s of %d bytes", kind, len(content)), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, client := optest.Quiet(t, content)
					if content == "" {
						optest.Put(t, client, "")
					}
					for skip := range 4 {
						s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Op("Get Blob"), Drop: []string{"Content-MD5"}, Skip: skip, Count: 2})
						var got bytes.Buffer
						res, err := Download(t.Context(), client.BlobClient(), &got, &DownloadOptions{BlockSize: 3})
						if err != nil || got.String() != content || res.Size != int64(len(content)) {
							t.Errorf("Download: %q, %+v, %v", got.String(), res, err)
						}
					}
				})
			})
		}
	}
}

// otherRange asks for another range in place of the nth, once, as a cache does that keeps ranges under the wrong name.
type otherRange struct {
	to   policy.Transporter
	nth  int
	with string
}

func (o *otherRange) Do(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		if o.nth--; o.nth == 0 {
			r.Header["x-ms-range"] = []string{o.with} // as the SDK spells it
		}
	}
	return o.to.Do(r)
}

// TestAResponseWithAnotherRangeIsReadAgain: one of the same length was taken for the one that was asked for, and a part for all.
func TestAResponseWithAnotherRangeIsReadAgain(t *testing.T) {
	const content = "0123456789"
	for name, tt := range map[string]struct {
		nth  int
		with string
		read func(ctx context.Context, client *blockblob.Client) (string, error)
	}{
		"the first range of a download": {1, "bytes=3-5", downloaded},
		"a later range of a download":   {2, "bytes=6-8", downloaded},
		"all":                           {1, "bytes=0-2", read},
		"all, spooled": {1, "bytes=0-2", func(ctx context.Context, client *blockblob.Client) (string, error) {
			v, err := optimistic.Read(ctx, Spooled{Blob: NewBytes(client), Dir: "unused"}, nil)
			if err != nil {
				return "", err
			}
			return string(v.Value.Data), nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := optest.Quiet(t, content)
				credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
				if err != nil {
					t.Fatal(err)
				}
				client, err := blockblob.NewClientWithSharedKeyCredential(s.BlobURL()+"/box/n.json", credential,
					&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &otherRange{s, tt.nth, tt.with}}})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := tt.read(t.Context(), client); got != content || err != nil {
					t.Errorf("%q, %v\n%v", got, err, s.Log())
				}
			})
		})
	}
}

func downloaded(ctx context.Context, client *blockblob.Client) (string, error) {
	var got bytes.Buffer
	_, err := Download(ctx, client.BlobClient(), &got, &DownloadOptions{BlockSize: 3, Concurrency: 1})
	return got.String(), err
}

func read(ctx context.Context, client *blockblob.Client) (string, error) {
	v, err := optimistic.Read(ctx, NewBytes(client), nil)
	if err != nil {
		return "", err
	}
	return string(v.Value), nil
}

func TestABodyWithoutALengthIsLimited(t *testing.T) {
	s, client := optest.Quiet(t, strings.Repeat("x", 11))
	target := NewBytes(client)
	target.MaxSize = 10
	for _, kind := range []aztest.FaultKind{"", aztest.Rechunk} {
		s.SetFaults(aztest.Fault{Kind: kind})
		if _, err := optimistic.Read(t.Context(), target, nil); err == nil || !strings.Contains(err.Error(), "more bytes than MaxSize 10") {
			t.Errorf("%s: %v", kind, err)
		}
	}
	target.MaxSize = 11
	if v, err := optimistic.Read(t.Context(), target, nil); err != nil || len(v.Value) != 11 {
		t.Errorf("at the limit: %v", err)
	}
}

// TestAnUpdateOverASocketReadsABodyWithoutALength does what curl and a re-chunking proxy do, with net/http on both sides.
func TestAnUpdateOverASocketReadsABodyWithoutALength(t *testing.T) {
	s, _ := optest.Quiet(t, "")
	client := overHTTP(t, s, "box", "big")
	content := strings.Repeat("0123456789", 100_000)
	if _, err := client.Upload(t.Context(), optest.Body(content), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: new("text/plain")}}); err != nil {
		t.Fatal(err)
	}
	s.SetFaults(aztest.Fault{Kind: aztest.Rechunk, Drop: []string{"Content-MD5"}})
	if _, err := optimistic.Update(t.Context(), NewBytes(client), func(_ context.Context, b *[]byte) error {
		*b = append(*b, '!')
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
	if got := optest.Get(t, client); got != content+"!" {
		t.Errorf("the blob holds %d bytes, want %d", len(got), len(content)+1)
	}
}

// overHTTP returns a client that reaches s through a socket.
func overHTTP(t *testing.T, s *aztest.Service, container, name string) *blockblob.Client {
	t.Helper()
	s.BlockBlob(container, name) // makes the container
	server := httptest.NewServer(s.BlobHandler())
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential(server.URL+"/"+aztest.Account+"/"+container+"/"+name, credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: &http.Client{Transport: transport}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
