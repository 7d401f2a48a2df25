package anyblob

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
)

// WriteConditions adds to c the condition on base, or on absence.
func WriteConditions(base optimistic.State, c sealed.Conditions) *blob.AccessConditions {
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
func Absent[T any](err error) (*optimistic.Version[T], error) {
	if azerr.NoBlob(err) {
		return &optimistic.Version[T]{}, nil
	}
	return nil, err
}

// AbsentState is absent for a look.
func AbsentState(err error) (optimistic.State, error) {
	if azerr.NoBlob(err) {
		err = nil
	}
	return optimistic.State{}, err
}

// BaseGone reports whether err, a response to a read under c, means that the version in IfMatch no longer exists. For a
// missing blob the service answers 404, where emulators answer 412.
func BaseGone(c optimistic.Conditions, err error) bool {
	return c.IfMatch != "" && c.IfMatch != azcore.ETagAny && azerr.NoBlob(err)
}
