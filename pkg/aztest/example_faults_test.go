package aztest_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// withdraw is the loop that one finds everywhere: read, change, write if no other writer has, and try again if one
// has, with the SDK's retries in the middle of it.
func withdraw(ctx context.Context, client *blockblob.Client, amount int) error {
	for {
		balance, version, err := balance(ctx, client)
		if err != nil {
			return err
		}
		unchanged := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: version}}
		text := strconv.Itoa(balance - amount)
		_, err = client.Upload(ctx, streaming.NopCloser(strings.NewReader(text)), &blockblob.UploadOptions{AccessConditions: unchanged})
		if !bloberror.HasCode(err, bloberror.ConditionNotMet) {
			return err
		}
	}
}

func balance(ctx context.Context, client *blockblob.Client) (int, *azcore.ETag, error) {
	resp, err := client.DownloadStream(ctx, nil)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err
	}
	n, err := strconv.Atoi(string(data))
	return n, resp.ETag, err
}

// Run one operation under each kind of fault and compare what it says with what it did.
func Example_everyFault() {
	ctx := policy.WithRetryOptions(context.Background(), policy.RetryOptions{RetryDelay: time.Nanosecond})
	for _, kind := range []aztest.FaultKind{
		aztest.Refuse, aztest.Throttle, aztest.LoseRequest, aztest.LoseAnswer, aztest.FailAfterCommit, aztest.AnswerTwice,
	} {
		s := aztest.New(nil)
		account := s.BlockBlob("bank", "account")
		_, _ = account.Upload(ctx, streaming.NopCloser(strings.NewReader("100")), nil)
		s.SetFaults(aztest.Fault{Kind: kind, Match: aztest.Writes, Count: 1})
		err := withdraw(ctx, account, 30)
		left, _, _ := balance(ctx, account)
		verdict := "ok"
		if err == nil && left != 70 || err != nil && left != 100 {
			verdict = "WRONG"
		}
		fmt.Printf("%-18s error: %v, withdrawn: %d  %s\n", kind, err, 100-left, verdict)
	}
	// Output:
	// refuse             error: <nil>, withdrawn: 30  ok
	// throttle           error: <nil>, withdrawn: 30  ok
	// lose-request       error: <nil>, withdrawn: 30  ok
	// lose-answer        error: <nil>, withdrawn: 60  WRONG
	// fail-after-commit  error: <nil>, withdrawn: 60  WRONG
	// answer-twice       error: <nil>, withdrawn: 60  WRONG
}
