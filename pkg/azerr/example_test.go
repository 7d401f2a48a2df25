package azerr_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

func Example() {
	err := fmt.Errorf("renew: %w", &azcore.ResponseError{StatusCode: 409, ErrorCode: "LeaseIdMismatchWithLeaseOperation"})
	switch out := azerr.Classify(err); {
	case out.Kind == azerr.Lost:
		fmt.Println("another client holds it")
	case out.Ambiguous():
		fmt.Println("it may have been renewed")
	}
	// Output: another client holds it
}

func ExampleClean() {
	sent := "https://acct.blob.core.windows.net/jobs/nightly.json?sv=2024-11-04&sp=rw&sig=c2VjcmV0"
	err := azerr.Clean(fmt.Errorf("update: %w", &url.Error{Op: "Put", URL: sent, Err: http.ErrHandlerTimeout}))
	fmt.Println(err)
	fmt.Println(errors.Is(err, http.ErrHandlerTimeout))
	// Output:
	// update: PUT jobs/nightly.json: http: Handler timeout
	// true
}

func ExampleRedact() {
	fmt.Println(azerr.Redact("AccountName=acct;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"))
	fmt.Println(azerr.Redact("copied from https://acct.blob.core.windows.net/c/b?sp=r&sig=c2VjcmV0"))
	// Output:
	// AccountName=acct;AccountKey=REDACTED;EndpointSuffix=core.windows.net
	// copied from https://acct.blob.core.windows.net/c/b?sp=r&sig=REDACTED
}
