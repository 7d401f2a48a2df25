package aztest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/azconc/azconc/pkg/aztest"
)

// yourLoop stands for the code under test.
func yourLoop(*blockblob.Client) error { return nil }

// Every fifth write is applied, and its response is lost.
func ExampleService_SetFaults() {
	service := aztest.New(nil)
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Writes, Probability: 0.2})
	err := yourLoop(service.BlockBlob("jobs", "state.json"))
	fmt.Println(err)
	// Output: <nil>
}

// A loop that relies on the SDK's retries meets its own write and reports a conflict with another writer.
func Example() {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "state.json")
	first, _ := client.Upload(context.Background(), streaming.NopCloser(strings.NewReader(`1`)), nil)

	s.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Match: aztest.Op("Put Blob"), Count: 1})
	ifUnchanged := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: first.ETag}}
	_, err := client.Upload(context.Background(), streaming.NopCloser(strings.NewReader(`2`)), &blockblob.UploadOptions{AccessConditions: ifUnchanged})

	fmt.Println("the caller sees:", strings.Contains(err.Error(), "ConditionNotMet"))
	for _, r := range s.Log() {
		fmt.Println(r)
	}
	// Output:
	// the caller sees: true
	// Put Blob box/state.json: 201
	// Put Blob box/state.json: [lose-answer]
	// Put Blob box/state.json: 412 ConditionNotMet
}
