package queues

import (
	"context"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// Policy is the policy of package idempotent.
type Policy struct{}

type (
	bodiless   struct{} // in a context: the request is an update without a text
	unrepeated struct{} // in a context: the transport must not repeat the request
	substitute struct{} // in a context: a *substitution
)

// substitution is the real pop receipt of an update that must not be sent without the policy. The request of the SDK has
// standIn in its place: without the policy, the service refuses it, and the text of the message stays.
type substitution struct {
	pop  string
	made bool // the policy has seen the request
}

// standIn is a pop receipt that no message has.
const standIn = "AAAAAAAA"

// Do changes requests that are marked in their context.
func (Policy) Do(r *policy.Request) (*http.Response, error) {
	ctx, raw := r.Raw().Context(), r.Raw()
	if s, ok := ctx.Value(substitute{}).(*substitution); ok {
		query := raw.URL.Query()
		query.Set("popreceipt", s.pop)
		raw.URL.RawQuery = query.Encode()
		s.made = true
	}
	if ctx.Value(bodiless{}) != nil {
		if err := r.SetBody(nil, ""); err != nil {
			return nil, err
		}
		raw.Header.Del("Content-Type")
	}
	if ctx.Value(unrepeated{}) != nil && raw.Body == nil {
		// net/http repeats a GET only if it has no body; this one has an empty body, of which nothing is sent.
		raw.Body = io.NopCloser(eof{})
	}
	return r.Next()
}

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// marked sets a mark for Policy in the context of a request.
func marked(ctx context.Context, mark any) context.Context { return context.WithValue(ctx, mark, true) }
