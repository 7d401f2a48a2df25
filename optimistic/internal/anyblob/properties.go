// Package anyblob has what the packages blobs, appends and pages share: conditions, properties, bodies and whole writes of
// blobs of any type.
package anyblob

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/wire"
)

func Properties(ctx context.Context, client *blob.Client) (blob.GetPropertiesResponse, error) {
	return PropertiesIf(ctx, client, nil)
}

// PropertiesIf reads a blob's properties under conditions. The response has an ETag.
func PropertiesIf(ctx context.Context, client *blob.Client, access *blob.AccessConditions) (blob.GetPropertiesResponse, error) {
	resp, err := wire.Request(ctx, "Get Blob Properties", func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		return client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: access})
	})
	_, err = protocol.Sent("ETag", resp.ETag, err)
	return resp, err
}

// Look reads a blob's version and lineage without its content.
func Look(ctx context.Context, client *blob.Client) (protocol.State, error) {
	var response *http.Response
	now, err := StateOf(wire.Request(ctx, "Get Blob Properties", func(ctx context.Context) (blob.GetPropertiesResponse, error) {
		resp, err := client.GetProperties(policy.WithCaptureResponse(ctx, &response), nil)
		_, err = protocol.Sent("ETag", resp.ETag, err)
		return resp, err
	}))
	return protocol.Answered(now, response), err
}

// StateOf returns the state in a Get Blob Properties response.
func StateOf(resp blob.GetPropertiesResponse, err error) (protocol.State, error) {
	if err != nil {
		return AbsentState(err)
	}
	_, lineage := meta.Split(resp.Metadata)
	return protocol.Dated(protocol.State{
		Exists: true, ETag: ptr.Value(resp.ETag), LastModified: ptr.Value(resp.LastModified), Created: ptr.Value(resp.CreationTime), Lineage: lineage, Copied: resp.CopyID != nil,
	}, resp.Date), nil
}

// WriteConditions adds to c the condition on base, or on absence.
func WriteConditions(base protocol.State, c sealed.Conditions) *blob.AccessConditions {
	all := optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}
	if base.Exists {
		all.IfMatch = base.ETag
	} else {
		all.IfNoneMatch = azcore.ETagAny
	}
	return AccessConditions(all)
}

// AccessConditions translates conditions for the SDK. An empty ETag must not be passed as a pointer, because the
// service would take "If-Match:" without a value for no condition at all.
func AccessConditions(c optimistic.Conditions) *blob.AccessConditions {
	return &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)},
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{
			IfMatch:           ptr.Optional(c.IfMatch),
			IfNoneMatch:       ptr.Optional(c.IfNoneMatch),
			IfModifiedSince:   ptr.Optional(c.IfModifiedSince),
			IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince),
			IfTags:            ptr.Optional(c.IfTags),
		},
	}
}

// Absent returns the version of a blob that does not exist, if that is what err, the error of a read, reports.
func Absent[T any](err error) (*sealed.Version[T], error) {
	if azerr.Has(err, "BlobNotFound") {
		return &sealed.Version[T]{}, nil
	}
	return nil, err
}

// AbsentState is absent for a look.
func AbsentState(err error) (protocol.State, error) {
	if azerr.Has(err, "BlobNotFound") {
		err = nil
	}
	return protocol.State{}, err
}

// BaseGone reports whether err, a response to a read under c, means that the version in IfMatch no longer exists. For a
// missing blob the service answers 404, where emulators answer 412.
func BaseGone(c optimistic.Conditions, err error) bool {
	return c.IfMatch != "" && c.IfMatch != azcore.ETagAny && azerr.Has(err, "BlobNotFound")
}

// CheckType refuses a blob of another type than want with an *optimistic.TypeError. If the service does not name the type,
// the blob is accepted.
func CheckType(is *blob.BlobType, want blob.BlobType) error {
	if is == nil || *is == want {
		return nil
	}
	return &optimistic.TypeError{Type: string(*is), Want: string(want)}
}
