package aztest_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"

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

// TestAPageOfNothingIsRefused: the service in memory took it for a page of any size, which hid a mistake that an account refuses.
func TestAPageOfNothingIsRefused(t *testing.T) {
	s := aztest.New(nil)
	if _, err := s.Container("box").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int32{0, -1} {
		_, blobs := s.Container("box").NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: &size}).NextPage(t.Context())
		_, shares := s.FileService().NewListSharesPager(&service.ListSharesOptions{MaxResults: &size}).NextPage(t.Context())
		for list, err := range map[string]error{"blobs": blobs, "shares": shares} {
			if r, ok := errors.AsType[*azcore.ResponseError](err); !ok || r.StatusCode != 400 || r.ErrorCode != "OutOfRangeQueryParameterValue" {
				t.Errorf("%s, maxresults=%d: %v", list, size, err)
			}
		}
	}
}

// TestFilesAndHandlesAreListedWithinLimits: a marker below zero, or a page that ends beyond the largest number, made the service panic.
func TestFilesAndHandlesAreListedWithinLimits(t *testing.T) {
	s := aztest.New(nil)
	for i := range 3 {
		if _, err := s.File("reports", fmt.Sprint(i)).Create(t.Context(), 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	files := s.FileURL() + "/reports?sig=any&restype=directory&comp=list&"
	handles, forced := s.FileURL()+"/reports/1?sig=any&comp=listhandles&", s.FileURL()+"/reports/1?sig=any&comp=forceclosehandles&"
	for _, tt := range []struct{ method, at, want string }{
		{"GET", files + "marker=1&maxresults=9223372036854775807", ""},
		{"GET", files + "marker=-1", "OutOfRangeInput"},
		{"GET", files + "marker=x", "OutOfRangeInput"},
		{"GET", files + "maxresults=0", "OutOfRangeQueryParameterValue"},
		{"GET", handles + "marker=-1", "OutOfRangeInput"},
		{"GET", handles + "maxresults=x", "OutOfRangeQueryParameterValue"},
		{"PUT", forced + "marker=-1", "OutOfRangeInput"},
		{"PUT", forced + "marker=7", ""},
	} {
		if status, code, _ := send(t, s, tt.method, tt.at, "X-Ms-Handle-Id", "*"); code != tt.want || status >= 500 {
			t.Errorf("%s %s: %d %s, want %q", tt.method, tt.at, status, code, tt.want)
		}
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
		`state = 'ready'`:                                "",
		`state = 'done'`:                                 "ConditionNotMet",
		`= 'ready'`:                                      "InvalidHeaderValue",
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

func TestAListTellsWhatThePropertiesTell(t *testing.T) {
	s := aztest.New(nil)
	c, client := s.Container("box"), s.BlockBlob("box", "blob")
	owner, kind := "me", "text/plain"
	if _, err := client.Upload(t.Context(), content("x"), &blockblob.UploadOptions{
		Metadata: map[string]*string{"owner": &owner}, Tags: map[string]string{"b": "2", "a": "1"}, HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CreateSnapshot(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	expectCode(t, "lease", leased{t, client}.acquire(mine, -1), "")
	id := mine
	held := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}}
	if _, err := client.StartCopyFromURL(t.Context(), client.URL(), &blob.StartCopyFromURLOptions{AccessConditions: held, BlobTags: map[string]string{"b": "2", "a": "1"}}); err != nil {
		t.Fatal(err)
	}
	page, err := c.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Include: container.ListBlobsInclude{Metadata: true, Tags: true, Copy: true, Snapshots: true},
	}).NextPage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Segment.BlobItems) != 2 {
		t.Fatalf("%d items, want a snapshot and its base", len(page.Segment.BlobItems))
	}
	p, err := client.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	snapshot, base := page.Segment.BlobItems[0], page.Segment.BlobItems[1]
	if snapshot.Snapshot == nil || snapshot.Properties.LeaseState != nil || *snapshot.Properties.TagCount != 2 {
		t.Errorf("the snapshot: %v", snapshot)
	}
	got := base.Properties
	if string(*got.ETag) != strings.Trim(string(*p.ETag), `"`) || !got.LastModified.Equal(*p.LastModified) || !got.CreationTime.Equal(*p.CreationTime) ||
		*got.ContentLength != *p.ContentLength || *got.ContentType != kind || !bytes.Equal(got.ContentMD5, p.ContentMD5) {
		t.Errorf("the list says %+v, the properties say %+v", got, p)
	}
	if *got.LeaseDuration != *p.LeaseDuration || *got.LeaseState != *p.LeaseState || *got.LeaseStatus != *p.LeaseStatus {
		t.Errorf("lease: %s %s %s", *got.LeaseDuration, *got.LeaseState, *got.LeaseStatus)
	}
	if *got.CopyID != *p.CopyID || string(*got.CopyStatus) != "success" || *got.CopyProgress != "1/1" {
		t.Errorf("copy: %s %s %s", *got.CopyID, *got.CopyStatus, *got.CopyProgress)
	}
	if tags := base.BlobTags.BlobTagSet; len(tags) != 2 || *tags[0].Key != "a" || *base.Metadata["owner"] != owner {
		t.Errorf("%d tags, metadata %v", len(tags), base.Metadata)
	}
}
