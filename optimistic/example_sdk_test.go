package optimistic_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest"
)

// increment is the loop that most programs have. It is wrong.
func increment(ctx context.Context, client *blockblob.Client) error {
	for {
		s, etag, err := read(ctx, client)
		if err != nil {
			return err
		}
		s.N++
		err = write(ctx, client, s, etag) // with If-Match
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
}

func read(ctx context.Context, client *blockblob.Client) (s State, etag *azcore.ETag, err error) {
	resp, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return s, nil, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&s)
	return s, resp.ETag, err
}

func write(ctx context.Context, client *blockblob.Client, s State, etag *azcore.ETag) error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = client.UploadBuffer(ctx, content, &blockblob.UploadBufferOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag},
	}})
	return err
}

// The plain loop and Update, with one response of five writes lost.
func ExampleUpdate_insteadOfALoop() {
	ctx := context.Background()
	service := aztest.New(nil)
	options := service.ClientOptions()
	options.Retry = policy.RetryOptions{RetryDelay: 1} // so that the example is quick
	client, err := blockblob.NewClientWithSharedKeyCredential(service.BlobURL()+"/jobs/state.json", credential(), &blockblob.ClientOptions{ClientOptions: options})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, change := range []func() error{
		func() error { return increment(ctx, client) },
		func() error {
			_, err := optimistic.Update(ctx, blobs.NewJSON[State](client), func(ctx context.Context, s *State) error {
				s.N++
				return nil
			}, nil)
			return err
		},
	} {
		service.SetFaults()
		if _, err := service.BlockBlob("jobs", "state.json").UploadBuffer(ctx, []byte(`{"n":0}`), nil); err != nil {
			fmt.Println(err)
			return
		}
		service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})
		reported := 0
		for range 60 {
			if err := change(); err == nil {
				reported++
			}
		}
		service.SetFaults()
		v, err := optimistic.Read(ctx, blobs.NewJSON[State](client), nil)
		fmt.Println(reported, "reported,", v.Value.N, "in the blob,", err)
	}
	// Output:
	// 60 reported, 78 in the blob, <nil>
	// 60 reported, 60 in the blob, <nil>
}

func credential() *blob.SharedKeyCredential {
	c, err := blob.NewSharedKeyCredential(aztest.Account, aztest.Key)
	if err != nil {
		panic(err)
	}
	return c
}
