package conformance

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
)

// Tags tests the grammar of x-ms-if-tags, the characters of tags, and conditions on the version of the blob that the
// tags belong to.
func Tags(t T, h Harness) {
	c := h.Container(t)
	x := target{container: c, name: "tagged"}
	x.create(t, "")
	set := func(tags map[string]string, o *blob.SetTagsOptions) said {
		return call(func(ctx context.Context) error { _, err := x.any().SetTags(ctx, tags, o); return err })
	}
	if got := set(map[string]string{"state": "ready", "n": "5", "a b": "c/d"}, nil); got != success {
		t.Fatal(got)
	}
	const bad said = "400 InvalidHeaderValue"
	for _, q := range []struct {
		predicate string
		e         expect
	}{
		{`"state" = 'ready'`, expect{service: success}},
		{`"state"='ready'`, expect{service: success}},
		{`"state" <> 'ready'`, expect{service: notMet}},
		{`"state" = 'READY'`, expect{service: notMet}},
		{`"n" >= '5' AND "state" = 'ready'`, expect{service: success}},
		{`"n" > '5' or "state" = 'ready'`, expect{service: success}},
		{`"n" < '4' AND "n" > '1' OR "state" = 'ready'`, expect{service: success}},
		{`"n" < '4' AND ("n" > '1' OR "state" = 'ready')`, expect{service: notMet}},
		{`"n" > '10'`, expect{service: success}}, // as text
		{`"a b" = 'c/d'`, expect{service: success}},
		{`"nobody" = 'x'`, expect{service: notMet}},
		{`"state" = 'ready' AND`, expect{service: bad}},
		{`"state" = 'ready' "n" = '5'`, expect{service: bad}},
		{`"state" = "ready"`, expect{service: bad}},
	} {
		q.e.check(t, h, q.predicate, call(func(ctx context.Context) error {
			_, err := x.any().GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: &blob.AccessConditions{
				ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfTags: &q.predicate}}})
			return err
		}))
	}

	many := map[string]string{}
	for _, r := range "abcdefghijk" {
		many[string(r)] = ""
	}
	uncoded := expect{emulator: "400 ", why: "its error has no code"}
	uncoded.service = "400 TagsTooLarge"
	uncoded.check(t, h, "eleven tags", set(many, nil))
	uncoded.service = "400 EmptyTagName"
	uncoded.check(t, h, "a tag without a name", set(map[string]string{"": "v"}, nil))

	stale := azcore.ETag(`"0x8D0000000000001"`)
	expect{service: notMet, emulator: success, why: "it does not know x-ms-blob-if-match"}.
		check(t, h, "Set Blob Tags, x-ms-blob-if-match: another", set(nil, &blob.SetTagsOptions{BlobModifiedAccessConditions: &blob.BlobModifiedAccessConditions{IfMatch: &stale}}))
	p, err := x.any().GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	expect{service: success}.
		check(t, h, "Set Blob Tags, x-ms-blob-if-match: the current", set(nil, &blob.SetTagsOptions{BlobModifiedAccessConditions: &blob.BlobModifiedAccessConditions{IfMatch: p.ETag}}))
}
