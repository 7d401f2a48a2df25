package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/wire"
)

// NewLastWriterWinsBlobService returns the settings of an account's Blob service (analytics logging, metrics, CORS rules and
// so on) as a Target.
//
// Last writer wins, as with NewLastWriterWinsQueueMetadata: there is no version, no condition and no room for a lineage. The service
// keeps sections that a request leaves out (REST: "Set Blob Service Properties"), so a write sends only the sections
// that have changed, and writers of different sections do not affect each other. To empty a list of CORS rules, set it
// to an empty slice, not nil. Lost responses are handled as with NewLastWriterWinsQueueACL. OperationID, IfTags and LeaseID are refused.
// Settings may take up to 30 s to take effect.
//
// A write that an intermediary delivers twice may overwrite a change that another client has made in between.
//
// Cost: 1 request to read, 1 to write.
func NewLastWriterWinsBlobService(client *service.Client) optimistic.Target[service.SetPropertiesOptions] {
	return serviceTarget[service.SetPropertiesOptions]{
		name: "(blob service)", op: "Blob Service Properties", key: client,
		get: func(ctx context.Context) (service.SetPropertiesOptions, error) {
			resp, err := client.GetProperties(ctx, nil)
			return service.SetPropertiesOptions{
				CORS: resp.CORS, DefaultServiceVersion: resp.DefaultServiceVersion, DeleteRetentionPolicy: resp.DeleteRetentionPolicy,
				HourMetrics: resp.HourMetrics, Logging: resp.Logging, MinuteMetrics: resp.MinuteMetrics, StaticWebsite: resp.StaticWebsite,
			}, err
		},
		set: func(ctx context.Context, changed service.SetPropertiesOptions) error {
			_, err := client.SetProperties(ctx, &changed)
			return err
		},
	}
}

// NewLastWriterWinsQueueService returns the settings of an account's Queue service as a Target. The name warns of lost
// changes, and the limits are those of NewLastWriterWinsBlobService.
func NewLastWriterWinsQueueService(client *azqueue.ServiceClient) optimistic.Target[azqueue.SetPropertiesOptions] {
	return serviceTarget[azqueue.SetPropertiesOptions]{
		name: "(queue service)", op: "Queue Service Properties", key: client,
		get: func(ctx context.Context) (azqueue.SetPropertiesOptions, error) {
			resp, err := client.GetServiceProperties(ctx, nil)
			return azqueue.SetPropertiesOptions{
				CORS: resp.CORS, HourMetrics: resp.HourMetrics, Logging: resp.Logging, MinuteMetrics: resp.MinuteMetrics,
			}, err
		},
		set: func(ctx context.Context, changed azqueue.SetPropertiesOptions) error {
			_, err := client.SetProperties(ctx, &changed)
			return err
		},
	}
}

// serviceTarget is the settings of a service.
type serviceTarget[T any] struct {
	name string
	op   string // what the REST operations get and set
	key  any
	get  func(ctx context.Context) (T, error)
	set  func(ctx context.Context, changed T) error
}

// Protocol implements optimistic.Target.
func (p serviceTarget[T]) Protocol() sealed.Target[T] { return p }

// Resource implements Target.
func (p serviceTarget[T]) Resource() string { return p.name }

// Traits describes the target to the calls of package optimistic.
func (p serviceTarget[T]) Traits() sealed.Traits { return sealed.Traits{Client: p.key} }

// Read implements Target: one request.
func (p serviceTarget[T]) Read(ctx context.Context) (*sealed.Version[T], error) {
	value, err := wire.Request(ctx, "Get "+p.op, p.get)
	if err != nil {
		return nil, err
	}
	before, err := sections(value)
	if err != nil {
		return nil, err
	}
	v := sealed.Carry(&sealed.Version[T]{State: protocol.State{Exists: true}, Value: value}, before)
	v.ETag, err = settingsTag(value, protocol.Lineage{})
	return v, err
}

// Look implements Target: one request.
func (p serviceTarget[T]) Look(ctx context.Context) (protocol.State, error) {
	return stateOf(p.Read(ctx))
}

// Prepare implements Target: one request, with the sections that have changed.
func (p serviceTarget[T]) Prepare(base *sealed.Version[T], value T, lineage protocol.Lineage, c sealed.Conditions) (protocol.Prepared, error) {
	if err := plainSetting(base.Exists, c); err != nil {
		return protocol.Prepared{}, err
	}
	before, _ := sealed.Carried(base).(map[string]json.RawMessage)
	after, err := sections(value)
	if err != nil {
		return protocol.Prepared{}, err
	}
	for name, text := range after {
		switch {
		case bytes.Equal(text, before[name]):
			delete(after, name)
		case string(text) == "null":
			return protocol.Prepared{}, fmt.Errorf("service properties: %s cannot be unset, because the service keeps what a request leaves out; set it to a value that disables it", name)
		}
	}
	if len(after) == 0 {
		return protocol.Prepared{}, nil
	}
	text, err := json.Marshal(after)
	if err != nil {
		return protocol.Prepared{}, fmt.Errorf("encode: %w", err)
	}
	produced, err := settingsTag(value, protocol.Lineage{})
	if err != nil {
		return protocol.Prepared{}, err
	}
	send := protocol.LookFirst(func(ctx context.Context) (azcore.ETag, error) {
		var changed T // a new one each time, because the SDK sets defaults in it
		if err := json.Unmarshal(text, &changed); err != nil {
			return "", fmt.Errorf("decode: %w", err)
		}
		_, err := wire.Request(ctx, "Set "+p.op, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.set(ctx, changed) })
		return produced, err
	}, base.State, produced, p.Look)
	return protocol.Prepared{Send: send}, nil
}

// Remove implements Target: it refuses, because the settings of a service always exist.
func (p serviceTarget[T]) Remove(protocol.State, sealed.Conditions) (protocol.Write, error) {
	return nil, errors.New("service properties cannot be deleted")
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
