package blobs

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/google/go-cmp/cmp"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/optest"
	"github.com/azconc/azconc/pkg/aztest"
	"github.com/azconc/azconc/pkg/ptr"
)

// TestEverythingElseSurvives: Put Blob replaces metadata, headers and tags along with the content.
func TestEverythingElseSurvives(t *testing.T) {
	s := aztest.New(nil)
	client := s.BlockBlob("box", "n.json")
	cool := blob.AccessTierCool
	_, err := client.Upload(t.Context(), optest.Body(`{"n":1}`), &blockblob.UploadOptions{
		HTTPHeaders: &blob.HTTPHeaders{
			BlobContentType: new("application/vnd.team+json"), BlobContentEncoding: new("identity"), BlobContentLanguage: new("de"),
			BlobCacheControl: new("no-cache"), BlobContentDisposition: new("inline"),
		},
		Metadata: map[string]*string{"owner": new("team a"), "zone": new("3")},
		Tags:     map[string]string{"state": "ready", "kind": "x y"},
		Tier:     &cool,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Reset()
	res, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), optest.Increment, nil)
	if err != nil {
		t.Fatal(err)
	}
	optest.Requests(t, s, res, 3) // the tags cost one
	props, err := client.GetProperties(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	tags, err := client.GetTags(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"type": *props.ContentType, "encoding": *props.ContentEncoding, "language": *props.ContentLanguage,
		"cache": *props.CacheControl, "disposition": *props.ContentDisposition, "tier": *props.AccessTier,
	}
	metadata, lineage := meta.Split(props.Metadata)
	for name, value := range metadata {
		got["meta "+name] = value
	}
	for _, tag := range tags.BlobTagSet {
		got["tag "+*tag.Key] = *tag.Value
	}
	want := map[string]string{
		"type": "application/vnd.team+json", "encoding": "identity", "language": "de", "cache": "no-cache", "disposition": "inline",
		"tier": "Cool", "meta owner": "team a", "meta zone": "3", "tag state": "ready", "tag kind": "x y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the update (-want +got):\n%s", diff)
	}
	if len(lineage.Writes) != 1 || lineage.Writes[0].ID != res.WriteID {
		t.Errorf("lineage = %v, want our write %s", lineage, res.WriteID)
	}
}

func TestAChangedTagIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := aztest.New(nil)
		client := s.BlockBlob("box", "n.json")
		if _, err := client.Upload(t.Context(), optest.Body(`{"n":1}`), &blockblob.UploadOptions{Tags: map[string]string{"state": "ready"}}); err != nil {
			t.Fatal(err)
		}
		first := true
		res, err := optimistic.Update(t.Context(), NewJSON[optest.Counter](client), func(_ context.Context, c *optest.Counter) error {
			if c.N++; first {
				first = false
				_, err := client.SetTags(context.Background(), map[string]string{"state": "busy"}, nil)
				return err
			}
			return nil
		}, nil)
		if err != nil || res.Conflicts != 1 {
			t.Fatalf("Update = %+v, %v", res, err)
		}
		tags, err := client.GetTags(t.Context(), nil)
		if err != nil || len(tags.BlobTagSet) != 1 || *tags.BlobTagSet[0].Value != "busy" {
			t.Errorf("the other writer's tag is lost: %v, %v", tags.BlobTagSet, err)
		}
	})
}

func TestHeadersAndMetadataOfTheTargetAreSet(t *testing.T) {
	s, client := optest.Quiet(t, `{"n":1}`)
	target := NewJSON[optest.Counter](client)
	target.HTTPHeaders = &blob.HTTPHeaders{BlobCacheControl: new("max-age=5")}
	target.Metadata = map[string]string{"Owner": "a", "gone": ""}
	res, err := optimistic.Update(t.Context(), target, func(context.Context, *optest.Counter) error { return nil }, nil)
	if err != nil || !res.Changed {
		t.Fatalf("Update = %+v, %v: new headers are a change", res, err)
	}
	s.Reset()
	res, err = optimistic.Update(t.Context(), target, func(context.Context, *optest.Counter) error { return nil }, nil)
	if err != nil || res.Changed {
		t.Fatalf("the same headers again: %+v, %v", res, err)
	}
	props, _ := client.GetProperties(t.Context(), nil)
	if *props.CacheControl != "max-age=5" || *props.Metadata["Owner"] != "a" {
		t.Errorf("cache control %v, metadata %v", props.CacheControl, props.Metadata)
	}
}

// TestGzippedContentStaysGzipped: a transport that negotiates gzip by itself unpacks the content and hides its encoding,
// and the write that follows would store it unpacked.
func TestGzippedContentStaysGzipped(t *testing.T) {
	s := aztest.New(nil)
	client := overHTTP(t, s, "box", "log.gz")
	const packed = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\xca\x48\xcd\xc9\xc9\x07\x04\x00\x00\xff\xff\x86\xa6\x10\x36\x05\x00\x00\x00"
	if _, err := client.Upload(t.Context(), optest.Body(packed), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentEncoding: new("gzip")}}); err != nil {
		t.Fatal(err)
	}
	var seen string
	target := NewBytes(client)
	target.Metadata = map[string]string{"touched": "yes"}
	if _, err := optimistic.Update(t.Context(), target, func(_ context.Context, b *[]byte) error { seen = string(*b); return nil }, nil); err != nil {
		t.Fatal(err)
	}
	if seen != packed {
		t.Errorf("the change saw %q, want the bytes as stored", seen)
	}
	props, _ := client.GetProperties(t.Context(), nil)
	if ptr.Value(props.ContentEncoding) != "gzip" || ptr.Value(props.ContentLength) != int64(len(packed)) {
		t.Errorf("encoding %q, length %d", ptr.Value(props.ContentEncoding), ptr.Value(props.ContentLength))
	}
}

func TestContentBeyondMaxSizeIsNotRead(t *testing.T) {
	_, client := optest.Quiet(t, `{"n":1}`)
	target := NewJSON[optest.Counter](client)
	target.MaxSize = 3
	_, err := optimistic.Update(t.Context(), target, optest.Increment, nil)
	if err == nil || !strings.Contains(err.Error(), "MaxSize 3") {
		t.Errorf("err = %v", err)
	}
}
