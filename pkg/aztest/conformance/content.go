package conformance

import (
	"context"
	"crypto/md5"
	"hash/crc64"
	"io"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
)

// Content tests ranges, checksums and metadata.
func Content(t T, h Harness) {
	c := h.Container(t)
	t.Run("ranges", func(t T) { ranges(t, h, target{container: c, name: "ranges"}) })
	t.Run("checksums", func(t T) { checksums(t, h, target{container: c, name: "sums"}) })
	t.Run("metadata", func(t T) { metadata(t, h, target{container: c, name: "metadata"}) })
}

func ranges(t T, h Harness, x target) {
	put, err := x.block().Upload(context.Background(), text("0123456789"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		first, count int64
		match        *azcore.ETag
		content      string
		bounds       string
		want         said
	}{
		{2, 3, nil, "234", "bytes 2-4/10", success},
		{7, 0, nil, "789", "bytes 7-9/10", success},
		{8, 99, nil, "89", "bytes 8-9/10", success},
		{0, 10, put.ETag, "0123456789", "bytes 0-9/10", success},
		{2, 3, new(azcore.ETag(`"0x8D0000000000001"`)), "", "", notMet},
		{11, 1, nil, "", "", "416 InvalidRange"},
	} {
		var got, bounds string
		answer := call(func(ctx context.Context) error {
			r, err := x.any().DownloadStream(ctx, &blob.DownloadStreamOptions{
				Range:            blob.HTTPRange{Offset: q.first, Count: q.count},
				AccessConditions: &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: q.match}},
			})
			if err != nil {
				return err
			}
			defer r.Body.Close()
			data, err := io.ReadAll(r.Body)
			got, bounds = string(data), *r.ContentRange
			return err
		})
		question := "Get Blob " + q.bounds
		expect{service: q.want}.check(t, h, question, answer)
		if got != q.content || bounds != q.bounds {
			t.Errorf("%s: %q, %s, want %q", question, got, bounds, q.content)
		}
	}
	atTheEnd := call(func(ctx context.Context) error {
		_, err := x.any().DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: 10, Count: 1}})
		return err
	})
	expect{service: "416 InvalidRange", emulator: success, why: "right behind the end it sees an empty range"}.check(t, h, "Get Blob from its end on", atTheEnd)
}

func checksums(t T, h Harness, x target) {
	const body = "the body"
	put := func(v blob.TransferValidationType) said {
		return call(func(ctx context.Context) error {
			_, err := x.block().StageBlock(ctx, blockID, text(body), &blockblob.StageBlockOptions{TransactionalValidation: v})
			return err
		})
	}
	sum, other := md5.Sum([]byte(body)), md5.Sum(nil)
	ecma := crc64.Checksum([]byte(body), crc64.MakeTable(crc64.ECMA)) // another polynomial than the service's
	for _, q := range []struct {
		question string
		sum      blob.TransferValidationType
		want     said
	}{
		{"its MD5", blob.TransferValidationTypeMD5(sum[:]), success},
		{"the MD5 of other content", blob.TransferValidationTypeMD5(other[:]), "400 Md5Mismatch"},
		{"half an MD5", blob.TransferValidationTypeMD5(sum[:8]), "400 InvalidMd5"},
		{"its CRC64", blob.TransferValidationTypeComputeCRC64(), success},
		{"a CRC64 of another kind", blob.TransferValidationTypeCRC64(ecma), "400 Crc64Mismatch"},
	} {
		expect{service: q.want}.check(t, h, "Put Block with "+q.question, put(q.sum))
	}
	expect{service: "400 Md5Mismatch"}.check(t, h, "Put Blob, to store the MD5 of other content", call(func(ctx context.Context) error {
		_, err := x.block().Upload(ctx, text(body), &blockblob.UploadOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentMD5: other[:]}})
		return err
	}))
}

func metadata(t T, h Harness, x target) {
	x.create(t, "")
	set := func(m map[string]*string) said {
		return call(func(ctx context.Context) error { _, err := x.any().SetMetadata(ctx, m, nil); return err })
	}
	long := strings.Repeat("x", 8<<10)
	for _, q := range []struct {
		question string
		metadata map[string]*string
		e        expect
	}{
		{"a name", map[string]*string{"name_1": new("v")}, expect{service: success}},
		{"a name with a dash", map[string]*string{"a-b": new("v")}, expect{service: "400 InvalidMetadata"}},
		{"a name that starts with a digit", map[string]*string{"1a": new("v")}, expect{service: "400 InvalidMetadata"}},
		{"8 KiB and a name", map[string]*string{"a": &long}, expect{service: "400 MetadataTooLarge", emulator: success, why: "it has no limit"}},
	} {
		q.e.check(t, h, q.question, set(q.metadata))
	}
	// Names are compared without case, because HTTP does not keep it: the SDK returns them capitalized.
	if got := set(map[string]*string{"camelCase": new("v")}); got != success {
		t.Fatal(got)
	}
	p, err := x.any().GetProperties(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Metadata) != 1 || p.Metadata["Camelcase"] == nil {
		t.Errorf("metadata is %v, want Camelcase alone", p.Metadata)
	}
}
