package aztest_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/pkg/aztest"
)

func TestListsComeInPagesAndFolders(t *testing.T) {
	s := aztest.New(nil)
	c := s.Container("box")
	for _, name := range []string{"a", "dir/x", "dir/y", "z"} {
		owner := "me"
		if _, err := s.BlockBlob("box", name).Upload(t.Context(), content(name), &blockblob.UploadOptions{Metadata: map[string]*string{"owner": &owner}}); err != nil {
			t.Fatal(err)
		}
	}
	two := int32(2)
	var names []string
	pages := 0
	for pager := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: &two, Include: container.ListBlobsInclude{Metadata: true}}); pager.More(); pages++ {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range page.Segment.BlobItems {
			names = append(names, fmt.Sprintf("%s=%s", *item.Name, *item.Metadata["owner"]))
			if etag := string(*item.Properties.ETag); etag[0] == '"' {
				t.Errorf("the ETag %s is quoted in a list", etag)
			}
		}
	}
	if want := []string{"a=me", "dir/x=me", "dir/y=me", "z=me"}; !slices.Equal(names, want) || pages != 2 {
		t.Errorf("%v in %d pages, want %v in 2", names, pages, want)
	}
	page, err := c.NewListBlobsHierarchyPager("/", nil).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Segment.BlobPrefixes) != 1 || *page.Segment.BlobPrefixes[0].Name != "dir/" || len(page.Segment.BlobItems) != 2 {
		t.Errorf("hierarchy: %d folders, %d blobs", len(page.Segment.BlobPrefixes), len(page.Segment.BlobItems))
	}
}

func TestTagPredicates(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "blob")
	if _, err := client.Upload(t.Context(), content("x"), &blockblob.UploadOptions{Tags: map[string]string{"state": "ready", "n": "5"}}); err != nil {
		t.Fatal(err)
	}
	for predicate, want := range map[string]string{
		`"state" = 'ready'`:                              "",
		`"state" <> 'ready'`:                             "ConditionNotMet",
		`"n" >= '5' AND "state" = 'ready'`:               "",
		`"n" > '5' or "state" = 'ready'`:                 "",
		`"n" < '4' AND "n" > '1' OR "state" = 'ready'`:   "",
		`"n" < '4' AND ("n" > '1' OR "state" = 'ready')`: "ConditionNotMet",
		`"nobody" = 'x'`:                                 "ConditionNotMet",
		`state = 'ready'`:                                "InvalidHeaderValue",
		`"state" = 'ready' AND`:                          "InvalidHeaderValue",
		`"state" = 'ready' "n" = '5'`:                    "InvalidHeaderValue",
	} {
		c := &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfTags: &predicate}}
		_, err := client.GetProperties(t.Context(), &blob.GetPropertiesOptions{AccessConditions: c})
		if code(err) != want {
			t.Errorf("%s: %q, want %q", predicate, code(err), want)
		}
	}
}
