package idempotent

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue"

	"github.com/azconc/azconc/idempotent/internal/send"
)

// Policy prepares a queue client for consuming. Pass it to the client as one of its PerRetryPolicies:
//
//	azqueue.NewServiceClient(url, credential, &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{
//		PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
//
// A Consumer works without it too, at a price. The SDK cannot renew a message without sending its text again (an empty
// one would erase it); with the policy, the text is not sent. Also, a Get Messages request is a GET, which net/http
// repeats by itself when a reused connection turns out to be closed: the messages of the lost response then stay hidden
// until their visibility timeout, unnoticed. The policy prevents this repetition, and the Consumer counts and reports
// the loss.
func Policy() policy.Policy { return keepText{} }

type (
	bodiless   struct{} // in a context: the request is an update without a text
	unrepeated struct{} // in a context: the transport must not repeat the request
)

type keepText struct{}

func (keepText) Do(r *policy.Request) (*http.Response, error) {
	ctx := r.Raw().Context()
	if ctx.Value(probed{}) != nil {
		return nil, errProbed
	}
	if ctx.Value(bodiless{}) != nil {
		if err := r.SetBody(nil, ""); err != nil {
			return nil, err
		}
		r.Raw().Header.Del("Content-Type")
	}
	if ctx.Value(unrepeated{}) != nil && r.Raw().Body == nil {
		// net/http repeats a GET only if it has no body; this one has an empty body, of which nothing is sent.
		r.Raw().Body = io.NopCloser(eof{})
	}
	return r.Next()
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// marked sets a mark for Policy in the context of a request.
func marked(ctx context.Context, mark any) context.Context { return context.WithValue(ctx, mark, true) }

// probed is set in the context of a request that Policy answers by itself. A client without Policy sends that request,
// which is for a message that no queue has.
type probed struct{}

var errProbed = errors.New("the policy is there")

const nobody = "00000000-0000-0000-0000-000000000000"

func hasPolicy(ctx context.Context, queue *azqueue.QueueClient) bool {
	err := send.Once(ctx, func(ctx context.Context) error {
		_, err := queue.UpdateMessage(marked(ctx, probed{}), nobody, "AAAAAAAA", "", nil)
		return err
	})
	return errors.Is(err, errProbed)
}
