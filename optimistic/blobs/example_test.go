package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/azconc/azconc/optimistic/appends"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/aztest"
)

// Upload streams content of any size. Here it is stored only if the blob does not exist.
func ExampleUpload() {
	ctx := context.Background()
	blob := aztest.New(nil).BlockBlob("jobs", "report.txt")
	onlyNew := &blobs.UploadOptions{Conditions: optimistic.Conditions{IfNoneMatch: "*"}}

	_, err := blobs.Upload(ctx, blob, strings.NewReader("first"), onlyNew)
	fmt.Println(err)
	_, err = blobs.Upload(ctx, blob, strings.NewReader("second"), onlyNew)
	fmt.Println(errors.Is(err, optimistic.ErrExists))
	// Output:
	// <nil>
	// true
}

// Append finds the end of an append blob, and appends there exactly once. Here it also creates the blob.
func ExampleAppend() {
	ctx := context.Background()
	service := aztest.New(nil)
	service.BlockBlob("logs", "other") // makes the container
	log := service.Container("logs").NewAppendBlobClient("deploy.log")

	for _, line := range []string{"deployed\n", "rolled back\n"} {
		r, err := appends.Append(ctx, log, []byte(line), &appends.AppendOptions{Create: true})
		fmt.Println(r.Offset, r.End, err)
	}
	// Output:
	// 0 9 <nil>
	// 9 21 <nil>
}
