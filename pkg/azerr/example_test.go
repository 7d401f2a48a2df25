package azerr_test

import (
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/azerr"
)

func Example() {
	err := fmt.Errorf("renew: %w", &azcore.ResponseError{StatusCode: 409, ErrorCode: "LeaseIdMismatchWithLeaseOperation"})
	switch out := azerr.Classify(err); {
	case out.Kind == azerr.Lost:
		fmt.Println("somebody else has it now")
	case out.Ambiguous():
		fmt.Println("it may have been renewed")
	}
	// Output: somebody else has it now
}
