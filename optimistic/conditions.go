package optimistic

import (
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/pkg/azerr"
)

// writeConditions adds to c the condition on base, or on absence.
func writeConditions(base State, c Conditions) *blob.AccessConditions {
	if base.Exists {
		c.IfMatch = base.ETag
	} else {
		c.IfNoneMatch = azcore.ETagAny
	}
	return accessConditions(c)
}

// accessConditions translates conditions for the SDK. An empty ETag must not be passed as a pointer, because the
// service would take "If-Match:" without a value for no condition at all.
func accessConditions(c Conditions) *blob.AccessConditions {
	return &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: optional(c.LeaseID)},
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{
			IfMatch:           optional(c.IfMatch),
			IfNoneMatch:       optional(c.IfNoneMatch),
			IfModifiedSince:   optionalTime(c.IfModifiedSince),
			IfUnmodifiedSince: optionalTime(c.IfUnmodifiedSince),
			IfTags:            optional(c.IfTags),
		},
	}
}

func optional[S ~string](s S) *S {
	if s == "" {
		return nil
	}
	return &s
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// baseGone reports whether err, a response to a read under c, means that the version in IfMatch no longer exists. For a
// missing blob the service answers 404, where emulators answer 412.
func baseGone(c Conditions, err error) bool {
	return c.IfMatch != "" && c.IfMatch != azcore.ETagAny && azerr.Has(err, "BlobNotFound")
}
