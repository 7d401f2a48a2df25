package settings

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/meta"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/ptr"
	"github.com/azconc/azconc/pkg/resource"
	"github.com/azconc/azconc/pkg/wire"
)

// NewLastWriterWinsQueueMetadata returns the user metadata of a queue as a Target. The queue must exist.
//
// Last writer wins: the service has no version of a queue and supports no condition (REST: "Set Queue Metadata"). A
// write replaces all metadata, including changes by others since the read, and two concurrent writers can both succeed
// although only one change is left. Use it if the queue has one writer, or if lost changes do not matter.
//
// azconc stores the lineage in the metadata. The lineage resolves lost responses, so a change is not run again on its
// own result. Before a write is sent again, azconc looks whether another writer has written meanwhile, and then reports
// a conflict (Update runs the change again) instead of overwriting. A delayed request may still be applied later, over
// any other write.
//
// azconc computes Version.ETag from the metadata. It can be used for IfMatch only here, and is compared when the
// metadata are read, not when they are written. IfTags and LeaseID are refused.
//
// Cost: 1 request to read, 1 to write.
func NewLastWriterWinsQueueMetadata(client *azqueue.QueueClient) optimistic.Target[map[string]string] {
	return lastWriter[map[string]string]{
		client: client, resource: func() string { return resource.Path(client.URL()) },
		get: func(ctx context.Context) (map[string]string, protocol.Lineage, error) {
			resp, err := wire.Request(ctx, "Get Queue Metadata", func(ctx context.Context) (azqueue.GetQueuePropertiesResponse, error) {
				return client.GetProperties(ctx, nil)
			})
			value, lineage := meta.Split(resp.Metadata)
			return value, lineage, err
		},
		set: func(base protocol.State, before, value map[string]string, lineage protocol.Lineage) (map[string]string, protocol.Lineage, setter, error) {
			value, metadata, stored, err := meta.Changed(base, before, value, lineage)
			if metadata == nil || err != nil {
				return nil, stored, nil, err
			}
			_, stored = meta.Split(metadata) // it may have been shortened
			return value, stored, func(ctx context.Context) error {
				_, err := wire.Request(ctx, "Set Queue Metadata", func(ctx context.Context) (azqueue.SetMetadataResponse, error) {
					return client.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: metadata})
				})
				return err
			}, nil
		},
	}
}

// NewLastWriterWinsQueueACL returns the stored access policies of a queue as a Target. The queue must exist.
//
// Last writer wins, as with NewLastWriterWinsQueueMetadata, and there is no room for a lineage. After a lost response azconc looks
// before it sends the request again. If the policies are as requested, that is a success, no matter who set them. If
// they are neither that nor the old ones, the error is ErrOutcomeUnknown. OperationID, IfTags and LeaseID are refused.
//
// A write that an intermediary delivers twice may overwrite a change that another client has made in between.
//
// Cost: 1 request to read, 1 to write.
func NewLastWriterWinsQueueACL(client *azqueue.QueueClient) optimistic.Target[[]AccessPolicy] {
	return lastWriter[[]AccessPolicy]{
		client: client, resource: func() string { return resource.Path(client.URL()) },
		get: func(ctx context.Context) (policies []AccessPolicy, _ protocol.Lineage, err error) {
			resp, err := wire.Request(ctx, "Get Queue ACL", func(ctx context.Context) (azqueue.GetAccessPolicyResponse, error) {
				return client.GetAccessPolicy(ctx, nil)
			})
			for _, s := range resp.SignedIdentifiers {
				p := ptr.Value(s.AccessPolicy)
				policies = append(policies, policyOf(s.ID, p.Start, p.Expiry, p.Permission))
			}
			return policies, protocol.Lineage{}, err
		},
		set: func(_ protocol.State, before, value []AccessPolicy, _ protocol.Lineage) ([]AccessPolicy, protocol.Lineage, setter, error) {
			policies, none := normal(value), protocol.Lineage{}
			if slices.Equal(before, policies) {
				return nil, none, nil, nil
			}
			if err := validPolicies(policies); err != nil {
				return nil, none, nil, err
			}
			return policies, none, func(ctx context.Context) error {
				opts := azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{}}
				for _, p := range policies {
					opts.QueueACL = append(opts.QueueACL, &azqueue.SignedIdentifier{ID: &p.ID, AccessPolicy: &azqueue.AccessPolicy{
						Start: ptr.Optional(p.Start), Expiry: ptr.Optional(p.Expiry), Permission: ptr.Optional(p.Permissions),
					}})
				}
				_, err := wire.Request(ctx, "Set Queue ACL", func(ctx context.Context) (azqueue.SetAccessPolicyResponse, error) {
					return client.SetAccessPolicy(ctx, &opts)
				})
				return err
			}, nil
		},
	}
}

// NewLastWriterWinsQueueService returns the settings of an account's Queue service (analytics logging, metrics and CORS rules) as a
// Target.
//
// Last writer wins, as with NewLastWriterWinsQueueMetadata: there is no version, no condition and no room for a lineage. The service
// keeps sections that a request leaves out (REST: "Set Queue Service Properties"), so a write sends only the sections
// that have changed, and writers of different sections do not affect each other. To empty a list of CORS rules, set it
// to an empty slice, not nil. Lost responses are handled as with NewLastWriterWinsQueueACL. OperationID, IfTags and LeaseID are refused.
// Settings may take up to 30 s to take effect.
//
// A write that an intermediary delivers twice may overwrite a change that another client has made in between.
//
// Cost: 1 request to read, 1 to write.
func NewLastWriterWinsQueueService(client *azqueue.ServiceClient) optimistic.Target[azqueue.SetPropertiesOptions] {
	type properties = azqueue.SetPropertiesOptions
	return lastWriter[properties]{
		client: client, resource: func() string { return "(queue service)" },
		get: func(ctx context.Context) (properties, protocol.Lineage, error) {
			resp, err := wire.Request(ctx, "Get Queue Service Properties", func(ctx context.Context) (azqueue.GetServicePropertiesResponse, error) {
				return client.GetServiceProperties(ctx, nil)
			})
			return stated(properties{CORS: resp.CORS, HourMetrics: resp.HourMetrics, Logging: resp.Logging, MinuteMetrics: resp.MinuteMetrics}), protocol.Lineage{}, err
		},
		set: func(_ protocol.State, was, value properties, _ protocol.Lineage) (properties, protocol.Lineage, setter, error) {
			value = stated(value)
			before, err := sections(was)
			if err != nil {
				return value, protocol.Lineage{}, nil, err
			}
			after, err := sections(value)
			if err != nil {
				return value, protocol.Lineage{}, nil, err
			}
			for name, text := range after {
				switch {
				case bytes.Equal(text, before[name]):
					delete(after, name)
				case string(text) == "null":
					return value, protocol.Lineage{}, nil, fmt.Errorf("service properties: %s cannot be unset, because the service keeps what a request leaves out; set it to a value that disables it", name)
				}
			}
			if len(after) == 0 {
				return value, protocol.Lineage{}, nil, nil
			}
			text, err := json.Marshal(after)
			return value, protocol.Lineage{}, func(ctx context.Context) error {
				var changed properties // a new one each time, because the SDK sets defaults in it
				if err := json.Unmarshal(text, &changed); err != nil {
					return fmt.Errorf("decode: %w", err)
				}
				_, err := wire.Request(ctx, "Set Queue Service Properties", func(ctx context.Context) (azqueue.SetPropertiesResponse, error) {
					return client.SetProperties(ctx, &changed)
				})
				return err
			}, err
		},
	}
}

// stated returns properties with the values that the SDK sends for fields that are not set, so that what is wanted can be
// compared with what is stored.
func stated(p azqueue.SetPropertiesOptions) azqueue.SetPropertiesOptions {
	p.CORS = slices.Clone(p.CORS)
	for i, rule := range p.CORS {
		r := ptr.Value(rule)
		r.AllowedHeaders, r.ExposedHeaders = cmp.Or(r.AllowedHeaders, new("")), cmp.Or(r.ExposedHeaders, new(""))
		r.MaxAgeInSeconds = cmp.Or(r.MaxAgeInSeconds, new(int32(0)))
		p.CORS[i] = &r
	}
	for _, m := range []**azqueue.Metrics{&p.HourMetrics, &p.MinuteMetrics} {
		if *m != nil {
			of := **m
			of.Version = cmp.Or(of.Version, new("1.0"))
			*m = &of
		}
	}
	if p.Logging != nil {
		of := *p.Logging
		of.Version = cmp.Or(of.Version, new("1.0"))
		p.Logging = &of
	}
	return p
}

// sections returns the settings' fields as JSON.
func sections(value any) (map[string]json.RawMessage, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return parts, nil
}

// setter sends the request that writes settings.
type setter func(ctx context.Context) error

// lastWriter is settings to which the service gives no version, and of whose writers the last wins. azconc computes a version from
// the settings, and looks at it before it sends a write again.
type lastWriter[T any] struct {
	optimistic.Sealed[T]
	client   any
	resource func() string

	// get reads the settings, and their lineage if they have room for one.
	get func(context.Context) (T, protocol.Lineage, error)

	// set returns the request that writes value, or nil if it equals before, with what will be stored.
	set func(base protocol.State, before, value T, lineage protocol.Lineage) (T, protocol.Lineage, setter, error)
}

func (s lastWriter[T]) Resource() string { return s.resource() }

func (s lastWriter[T]) Traits() sealed.Traits { return sealed.Traits{Client: s.client} }

// Read implements Target: one request.
func (s lastWriter[T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	value, lineage, err := s.get(ctx)
	if azerr.Has(err, "QueueNotFound") {
		return &sealed.Version[T]{}, nil
	}
	if err != nil {
		return nil, err
	}
	etag, text, err := settingsTag(value, lineage)
	return sealed.Carry(&sealed.Version[T]{State: protocol.State{Exists: true, ETag: etag, Lineage: lineage}, Value: value}, text), err
}

// Look implements Target: one request.
func (s lastWriter[T]) Look(ctx context.Context) (protocol.State, error) { return stateOf(s.Read(ctx)) }

// stateOf returns the state that a read found.
func stateOf[T any](v *sealed.Version[T], err error) (protocol.State, error) {
	if err != nil {
		return protocol.State{}, err
	}
	return v.State, nil
}

// Prepare implements Target: one request.
func (s lastWriter[T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if !base.Exists {
		return protocol.Prepared{}, errors.New("settings cannot be created without the resource they belong to")
	}
	if c.IfTags != "" || c.LeaseID != "" {
		return protocol.Prepared{}, errors.New("Conditions: these settings have neither index tags nor leases; last writer wins")
	}
	var before T // a version that a caller made has none
	if text, read := sealed.Carried(base).([]byte); read {
		if err := json.Unmarshal(text, &before); err != nil {
			return protocol.Prepared{}, fmt.Errorf("decode: %w", err)
		}
	}
	after, stored, send, err := s.set(base.State, before, value, lineage)
	if send == nil || err != nil {
		return protocol.Prepared{}, err
	}
	produced, _, err := settingsTag(after, stored)
	return protocol.Prepared{Stored: stored, Send: protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		return produced, send(ctx)
	}, base.State, produced, s.Look)}, err
}

// settingsTag computes a version for settings to which the service gives none, and returns them as JSON. Equal settings have
// equal versions.
func settingsTag(settings any, lineage protocol.Lineage) (azcore.ETag, []byte, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return "", nil, fmt.Errorf("encode: %w", err)
	}
	sum := sha256.Sum256([]byte(string(text) + lineage.String() + lineage.OperationsString()))
	return azcore.ETag(`"settings-` + hex.EncodeToString(sum[:16]) + `"`), text, nil
}
