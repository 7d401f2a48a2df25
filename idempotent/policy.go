package idempotent

import (
	"context"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Policy makes a queue client fit for consuming. Give it to the client as one of its PerRetryPolicies:
//
//	azqueue.NewServiceClient(url, credential, &azqueue.ClientOptions{ClientOptions: policy.ClientOptions{
//		PerRetryPolicies: []policy.Policy{idempotent.Policy()}}})
//
// A Consumer works without it too, at a price. The SDK cannot renew a message without sending its text anew (an empty one
// would wipe it); with the policy the text stays at home. And a Get Messages is a GET, which net/http repeats by itself
// when a kept connection turns out to be dead: the messages of the answer that was lost stay hidden until their visibility
// timeout is over, and nobody is told. With the policy it does not, and the Consumer counts and reports the loss.
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
		// net/http repeats a GET only if it has no body; this one has an empty one, of which nothing is sent.
		r.Raw().Body = io.NopCloser(eof{})
	}
	return r.Next()
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

func with(ctx context.Context, mark any) context.Context {
	return context.WithValue(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), mark, true)
}

// plain switches the SDK's retries off.
func plain(ctx context.Context) context.Context {
	return policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1})
}
