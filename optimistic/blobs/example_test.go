package blobs_test

import (
	"context"
	"encoding/json"
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

// job names one member of a document, and keeps those of other programs.
type job struct {
	Runs int
	rest map[string]json.RawMessage
}

func (j *job) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &j.rest); err != nil {
		return err
	}
	return json.Unmarshal(data, &struct{ Runs *int }{&j.Runs})
}

func (j job) MarshalJSON() ([]byte, error) {
	all := map[string]any{"Runs": j.Runs}
	for name, value := range j.rest {
		if name != "Runs" {
			all[name] = value
		}
	}
	return json.Marshal(all)
}

// A plain struct keeps the members that it names. One that keeps the rest decodes them into a map.
func ExampleNewJSON() {
	ctx := context.Background()
	client := aztest.New(nil).BlockBlob("jobs", "job.json")
	if _, err := blobs.Upload(ctx, client, strings.NewReader(`{"Owner":"web","Runs":1}`), nil); err != nil {
		fmt.Println(err)
		return
	}
	_, err := optimistic.Update(ctx, blobs.NewJSON[job](client), func(_ context.Context, j *job) error {
		j.Runs++
		return nil
	}, nil)
	v, _ := optimistic.Read(ctx, blobs.NewBytes(client), nil)
	fmt.Println(string(v.Value), err)
	// Output: {"Owner":"web","Runs":2} <nil>
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
