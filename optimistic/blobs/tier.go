package blobs

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/anyblob"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// TierOptions tunes SetTier. The zero value is the default.
type TierOptions struct {
	// Conditions: the service takes IfTags and LeaseID only (REST: "Set Blob Tier"), because the tier is no part of the
	// version. Others are refused. Defaults to none.
	Conditions optimistic.Conditions

	// Priority is that of moving the blob out of the archive tier. Defaults to the service's, which is the standard one: up
	// to 15 hours.
	Priority blob.RehydratePriority

	optimistic.SendOptions

	_ struct{}
}

// SetTierResult describes the change of a tier, and the cost. The ETag is empty, because the tier is no part of the version.
type SetTierResult struct {
	optimistic.Result

	Pending bool // the service moves the blob out of the archive tier, which takes hours; until then it cannot be read
}

// SetTier sets the access tier of a blob, or of the snapshot or version that the client names: last writer wins, because
// the service accepts no condition on the version here. Content, metadata and ETag are not changed.
//
// A repetition sets the same tier again, so a lost response does no harm, unless another client sets another tier in
// between. So before each repetition SetTier looks at the blob. A blob that has the tier is a success, no matter who set it;
// with IfTags that is no proof, and the request is sent again under the condition. The error is ErrOutcomeUnknown if no
// response arrives, or if the tags no longer satisfy IfTags after a lost one. Other errors are *NotFoundError,
// *ConflictError (IfTags) and those of the service: it refuses another tier while a blob is moved out of the archive (409
// BlobBeingRehydrated), and refuses to move a snapshot out of it (409).
//
// Cost: 1 request; after a lost response 2 for each repetition. Safe for concurrent use.
func SetTier(ctx context.Context, client *blob.Client, tier blob.AccessTier, opts *TierOptions) (_ SetTierResult, err error) {
	if err := sealed.NotNil("set tier", "client", client); err != nil {
		return SetTierResult{}, err
	}
	o := ptr.Value(opts)
	if !slices.Contains(blob.PossibleAccessTierValues(), tier) {
		return SetTierResult{}, errors.New("set tier: " + string(tier) + " is not a tier; those of block blobs are Hot, Cool, Cold and Archive")
	}
	if c := o.Conditions; c != (optimistic.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}) {
		return SetTierResult{}, errors.New("TierOptions.Conditions: the service takes only IfTags and LeaseID here")
	}
	call, err := o.Begin("set tier", resource.Path(client.URL()))
	if err != nil {
		return SetTierResult{}, err
	}
	t := &tiering{Call: call, client: client, tier: tier, o: o}
	ctx, end := t.Start(ctx, "blobs.SetTier")
	defer end(&err)
	err = t.CarryOut(ctx, t.write())
	return SetTierResult{Result: optimistic.Result(t.Finish()), Pending: err == nil && t.pending}, err
}

// tiering is one SetTier in progress.
type tiering struct {
	*protocol.Call
	client  *blob.Client
	tier    blob.AccessTier
	o       TierOptions
	pending bool
}

func (t *tiering) write() protocol.Change {
	w := protocol.Change{AnyBase: true, Silent: true}
	opts := blob.SetTierOptions{AccessConditions: anyblob.AccessConditions(t.o.Conditions), RehydratePriority: ptr.Optional(t.o.Priority)}
	w.Send = func(ctx context.Context) (azcore.ETag, error) {
		var raw *http.Response
		_, err := wire.Request(ctx, "Set Blob Tier", func(ctx context.Context) (blob.SetTierResponse, error) {
			o := opts
			return t.client.SetTier(policy.WithCaptureResponse(ctx, &raw), t.tier, &o)
		})
		if err = wire.Genuine(raw, err); err == nil {
			t.pending = raw.StatusCode == http.StatusAccepted
		}
		return "", err
	}
	w.Look = func(ctx context.Context) (protocol.State, error) {
		props, err := anyblob.Properties(ctx, t.client, nil)
		if err != nil {
			return anyblob.AbsentState(err)
		}
		now := protocol.State{Exists: true, ETag: ptr.Value(props.ETag)}
		pending := strings.EqualFold(ptr.Value(props.ArchiveStatus), "rehydrate-pending-to-"+string(t.tier))
		has := ptr.Value(props.AccessTier) == string(t.tier) && !ptr.Value(props.AccessTierInferred)
		if t.o.Conditions.IfTags == "" && (has || pending) {
			t.pending = pending
			now = now.Decide(protocol.Committed, "") // as requested, no matter by whom
		}
		return now, nil
	}
	return w
}
