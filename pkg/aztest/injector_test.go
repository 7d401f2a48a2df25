package aztest_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/aztest/bubble"
)

func TestMetCountsFaultsAcrossResets(t *testing.T) {
	s := aztest.New(nil)
	s.BlockBlob("box", "a")
	i := aztest.Inject(s, 1, aztest.Fault{Kind: aztest.LoseAnswer, Count: 2})
	client := blobOver(t, i)
	for range 3 {
		_, _ = client.Upload(once(t.Context()), content("x"), nil)
		i.Reset()
	}
	if got, want := i.Met(), (map[aztest.FaultKind]int{aztest.LoseAnswer: 2, "": 1}); !maps.Equal(got, want) {
		t.Errorf("met %v, want %v", got, want)
	}
}

// The answer to a request that was under way during a Reset was written to another request's entry.
func TestAResetDoesNotMixUpRequestsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		s.BlockBlob("box", "a")
		i := aztest.Inject(s, 1, aztest.Fault{Kind: aztest.Slow, Delay: time.Second, Count: 1}, aztest.Fault{Kind: aztest.Hang})
		client := blobOver(t, i)
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = client.Upload(once(context.Background()), content("x"), nil)
		}()
		bubble.Sleep(time.Millisecond)
		i.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, _ = client.Upload(once(ctx), content("y"), nil)
		<-done
		if log := i.Log(); len(log) != 1 || log[0].Status != 0 {
			t.Errorf("log %+v, want one request without an answer", log)
		}
	})
}

// blobOver returns a client for box/a over a transport.
func blobOver(t *testing.T, transport policy.Transporter) *blockblob.Client {
	t.Helper()
	credential, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		t.Fatal(err)
	}
	client, err := blockblob.NewClientWithSharedKeyCredential("http://127.0.0.1:10000/"+aztest.Account+"/box/a", credential,
		&blockblob.ClientOptions{ClientOptions: policy.ClientOptions{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
