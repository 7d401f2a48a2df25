package optimistic_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
)

// slowLine carries the bodies of requests and responses at a rate, in bytes per second.
type slowLine struct {
	next policy.Transporter
	rate int
}

func (l slowLine) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		select {
		case <-time.After(l.takes(len(data))):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
	}
	response, err := l.next.Do(r)
	if err == nil {
		response.Body = slowBody{response.Body, l, r.Context()}
	}
	return response, err
}

func (l slowLine) takes(n int) time.Duration {
	return time.Duration(n) * time.Second / time.Duration(l.rate)
}

type slowBody struct {
	io.ReadCloser
	line slowLine
	ctx  context.Context
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 64<<10)])
	select {
	case <-time.After(b.line.takes(n)):
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	}
	return n, err
}

// over returns a client of the blob whose line is slow.
func over(t *testing.T, s *aztest.Service, rate int) *blockblob.Client {
	t.Helper()
	client, err := blockblob.NewClientWithNoCredential(s.BlockBlob("box", "n.json").URL()+"?sig=x",
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: slowLine{s, rate}}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func swap(_ context.Context, content *[]byte) error {
	(*content)[0]++
	return nil
}

// TestATryLastsAsLongAsItsContentTakes: 36 MB at 1 MB/s take 36 s each way, and the service's time for a response is 30 s.
func TestATryLastsAsLongAsItsContentTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := optest.Quiet(t, "")
		content := make([]byte, 36<<20)
		optest.Put(t, client, string(content))
		s.Reset()
		began := time.Now()
		res, err := optimistic.Update(t.Context(), blobs.NewBytes(over(t, s, 1<<20)), swap, nil)
		if err != nil || res.Ambiguous != 0 {
			t.Errorf("Update = %+v, %v after %v", res, err, time.Since(began))
		}
		optest.Requests(t, s, res, 2)
		if took := time.Since(began); took < 72*time.Second || took > 73*time.Second {
			t.Errorf("it took %v, want 36 s each way", took)
		}
	})
}

// TestATryEndsWhenItsContentComesTooSlowly: at an eighth of MinRate a MiB would take 128 s, and a try has 30 + 16 s.
func TestATryEndsWhenItsContentComesTooSlowly(t *testing.T) {
	for name, tt := range map[string]struct {
		rate    int
		sending optimistic.SendOptions
		took    time.Duration // from the first request to the end
	}{
		"as fast as MinRate":         {optimistic.DefaultMinRate, optimistic.SendOptions{Tries: 1}, 32 * time.Second},
		"slower than MinRate":        {optimistic.DefaultMinRate / 8, optimistic.SendOptions{Tries: 1}, 0},
		"a lower MinRate":            {optimistic.DefaultMinRate / 8, optimistic.SendOptions{Tries: 1, MinRate: optimistic.DefaultMinRate / 8}, 256 * time.Second},
		"no growth":                  {40 << 10, optimistic.SendOptions{Tries: 1, MinRate: -1, TryTimeout: 20 * time.Second}, 0},
		"no growth, and time enough": {40 << 10, optimistic.SendOptions{Tries: 1, MinRate: -1, TryTimeout: 30 * time.Second}, 2 * 25600 * time.Millisecond},
		"no bound":                   {1 << 10, optimistic.SendOptions{Tries: 1, TryTimeout: -1}, 2048 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := optest.Quiet(t, "")
				optest.Put(t, client, string(make([]byte, 1<<20)))
				began := time.Now()
				_, err := optimistic.Update(t.Context(), blobs.NewBytes(over(t, s, tt.rate)), swap, &optimistic.UpdateOptions{SendOptions: tt.sending})
				took := time.Since(began)
				if tt.took == 0 {
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("err = %v after %v, want a timeout", err, took)
					}
					return
				}
				if err != nil || took != tt.took {
					t.Errorf("err = %v after %v, want %v", err, took, tt.took)
				}
			})
		})
	}
}
