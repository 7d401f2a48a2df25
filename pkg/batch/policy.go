package batch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"weak"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	sdk "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Policy makes transactions cheaper: a client that has it sends the same requests. The SDK decodes and encodes each entity once
// more, and allocates 32 KiB for it. So Submit passes a stand-in of one entity to the SDK, which adds the URL, the headers and
// the signature, and the policy puts the body in its place. The stand-in itself is never sent: Submit uses it only with clients
// whose policy has seen a transaction before.
//
// It also reads the response, if all operations have succeeded. Every other response is left to the SDK.
type Policy struct{}

// pending is the key, in a context, of the order that a request is for.
type pending struct{}

// order is a transaction on its way through the pipeline of the SDK.
type order struct {
	actions []aztables.TransactionAction
	keys    []keys // of the actions, if the SDK was given a stand-in

	response *http.Response // to the last request; nil without one

	within  bool          // a policy has the request
	seen    bool          // the policy has seen the request
	fits    bool          // and can replace its body
	applied bool          // all operations have succeeded
	etags   []azcore.ETag // if they have
}

// standIn is the transaction that the SDK is given in place of another. No entity has this ETag.
var standIn = func() []aztables.TransactionAction {
	etag := azcore.ETag(`W/"azconc"`)
	return []aztables.TransactionAction{{ActionType: aztables.TransactionTypeDelete, Entity: []byte(`{"PartitionKey":"azconc","RowKey":"azconc"}`), IfMatch: &etag}}
}()

// errUnfit reports that the stand-in does not look as expected. Nothing was sent.
var errUnfit error = unfit{errors.New("the body of the transaction cannot be replaced")}

type unfit struct{ error }

// NonRetriable keeps the SDK from trying again.
func (unfit) NonRetriable() {}

// answeredAll is a response that the SDK takes for a success. It costs less to read than the one that was read already.
const answeredAll = "--b\r\n\r\n--c\r\n\r\n--b--\r\n"

// Pending reports whether a request with this context is one that Policy is for.
func Pending(ctx context.Context) bool {
	_, ok := ctx.Value(pending{}).(*order)
	return ok
}

// Do replaces the body of a transaction, and reads the response.
func (Policy) Do(r *policy.Request) (*http.Response, error) {
	raw := r.Raw()
	o, _ := raw.Context().Value(pending{}).(*order)
	if o == nil || o.within {
		return r.Next() // a client may have the policy twice, because a Worker adds it
	}
	o.within = true
	defer func() { o.within = false }()
	o.seen, o.applied = true, false // a request before this one may have been answered
	if o.fits = !cosmos(raw.URL.String()); o.keys == nil {
		return r.Next()
	}
	if !o.fits {
		return nil, errUnfit
	}
	given, err := io.ReadAll(r.Body())
	if err != nil {
		return nil, err
	}
	body, ok := o.body(given)
	if o.fits = ok; !ok {
		return nil, errUnfit
	}
	if err := r.SetBody(streaming.NopCloser(bytes.NewReader(body)), raw.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	response, err := r.Next()
	if err != nil || response.StatusCode != http.StatusAccepted {
		return response, err
	}
	text, err := sdk.Payload(response)
	if err != nil {
		return response, nil // as the SDK will find
	}
	if etags, ok := successes(response.Header.Get("Content-Type"), text, o.actions); ok {
		o.applied, o.etags = true, etags
		response.Body = io.NopCloser(strings.NewReader(answeredAll))
	}
	return response, nil
}

// cosmos reports whether a URL is one of Cosmos DB, whose transactions differ.
func cosmos(url string) bool {
	return strings.Contains(url, ".table.cosmos") || strings.Contains(url, "localhost") && strings.Contains(url, "8902")
}

// able holds the clients that have Policy.
var able sync.Map // of weak.Pointer[aztables.Client]

// learn records whether the client has Policy.
func learn(client *aztables.Client, has bool) {
	p := weak.Make(client)
	if !has {
		able.Store(p, false) // for good, so that it is not tried again and again
		return
	}
	if _, known := able.LoadOrStore(p, true); !known {
		runtime.AddCleanup(client, func(p weak.Pointer[aztables.Client]) { able.Delete(p) }, p)
	}
}

// hasPolicy reports whether the client is known to have Policy.
func hasPolicy(client *aztables.Client) bool {
	has, _ := able.Load(weak.Make(client))
	return has == true
}

// send sends the transaction, or its stand-in, once. The SDK reads the response and closes it.
func (o *order) send(ctx context.Context, client *aztables.Client) (err error) {
	actions := o.actions
	if o.keys != nil {
		actions = standIn
	}
	defer func() {
		if p := recover(); p != nil {
			err = &panicked{p}
		}
	}()
	_, err = client.SubmitTransaction(policy.WithCaptureResponse(context.WithValue(ctx, pending{}, o), &o.response), actions, nil)
	return err
}
