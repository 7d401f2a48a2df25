// Package begin begins the operations of the packages below optimistic.
package begin

import (
	"context"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/resource"
)

// Call begins an operation with these options. The error names the field that is out of range.
func Call(o optimistic.SendOptions, op, resource string) (*protocol.Call, error) {
	return sealed.Begin(o, op, resource)
}

// On is Call for an operation on the resource of an SDK client. It also opens the operation's span, whose name is
// package.Operation; end ends it with *err.
func On(ctx context.Context, o optimistic.SendOptions, span, op string, client interface{ URL() string }) (_ context.Context, _ *protocol.Call, end func(err *error), err error) {
	if err := sealed.NotNil(op, "client", client); err != nil {
		return nil, nil, nil, err
	}
	c, err := Call(o, op, resource.Path(client.URL()))
	if err != nil {
		return nil, nil, nil, err
	}
	ctx, end = c.Start(ctx, span)
	return ctx, c, end, nil
}
