package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/optimistic"
)

func content(s string) io.ReadSeekCloser { return streaming.NopCloser(strings.NewReader(s)) }

// plainLoop is what many programs do: read, change, write with If-Match, start over on 412, and leave the rest to the
// SDK's retries. It applies a change again when a response was lost.
func plainLoop(ctx context.Context, client *blockblob.Client, change func(context.Context, *tally) error) error {
	ctx = policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: 5, RetryDelay: 20 * time.Millisecond, MaxRetryDelay: 200 * time.Millisecond})
	for range 50 {
		resp, err := client.DownloadStream(ctx, nil)
		if err != nil {
			return err
		}
		data, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		var t tally
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err == nil {
			err = change(ctx, &t)
		}
		if err != nil {
			return err
		}
		data, err = json.Marshal(t)
		if err != nil {
			return err
		}
		_, err = client.Upload(ctx, content(string(data)), &blockblob.UploadOptions{Metadata: resp.Metadata, AccessConditions: &blob.AccessConditions{
			ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: resp.ETag}}})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
	return optimistic.ErrConflict
}
