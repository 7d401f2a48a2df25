package tables

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/azconc/azconc/pkg/azerr"
)

// Submit sends an entity group transaction without conditions of its own: once, as far as the client's own retries allow. It returns
// the new ETags, in the order of the actions; a deletion has none. Transact is for changes.
//
// azerr.Transaction says which operation the service has refused. A response that cannot be read to its end leaves the outcome
// open: the error is that of a lost response. The SDK takes a truncated response for a success, also that of a refusal, or
// panics. Requests: 1.
func Submit(ctx context.Context, client *aztables.Client, actions []aztables.TransactionAction) (etags []azcore.ETag, err error) {
	var raw *http.Response
	defer func() {
		if p := recover(); p != nil {
			if raw == nil {
				panic(p) // not caused by a response
			}
			etags, err = nil, unreadable(fmt.Errorf("the SDK panics: %v", p))
		}
		err = azerr.Clean(err)
	}()
	_, err = client.SubmitTransaction(policy.WithCaptureResponse(ctx, &raw), actions, nil)
	if raw == nil || raw.StatusCode != http.StatusAccepted {
		return nil, err
	}
	if _, _, failed := azerr.Transaction(err); failed {
		return nil, err
	}
	if err == nil {
		etags, err = newETags(raw, actions)
	}
	if err != nil {
		return nil, unreadable(err)
	}
	return etags, nil
}

// unreadable reports a response that cannot be read. Its cause is kept as text only, because it must not be taken for a
// refusal by the service.
func unreadable(err error) error {
	return fmt.Errorf("the response to the transaction cannot be read: %v: %w", azerr.Summary(err), io.ErrUnexpectedEOF)
}

// newETags reads the ETags from a response in which all inner responses are successes.
func newETags(raw *http.Response, actions []aztables.TransactionAction) ([]azcore.ETag, error) {
	body, err := runtime.Payload(raw)
	if err != nil {
		return nil, err
	}
	whole, err := multipartReader(raw.Header.Get("Content-Type"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	changes, err := whole.NextPart()
	if err != nil {
		return nil, err
	}
	parts, err := multipartReader(changes.Header.Get("Content-Type"), changes)
	if err != nil {
		return nil, err
	}
	etags := make([]azcore.ETag, 0, len(actions))
	buffer := bufio.NewReader(nil) // one for all parts
	for {
		part, err := parts.NextPart()
		if err == io.EOF { //nolint:errorlint // wrapped, it is a response without its end
			break
		}
		if err != nil {
			return nil, err
		}
		buffer.Reset(part)
		answer, err := http.ReadResponse(buffer, nil)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		etag := azcore.ETag(answer.Header.Get("ETag"))
		if len(etags) == len(actions) || answer.StatusCode >= 300 || etag == "" && actions[len(etags)].ActionType != aztables.TransactionTypeDelete {
			return nil, fmt.Errorf("response %d is %s with the ETag %q", len(etags), answer.Status, etag)
		}
		etags = append(etags, etag)
	}
	if len(etags) < len(actions) {
		return nil, fmt.Errorf("%d responses to %d operations", len(etags), len(actions))
	}
	return etags, nil
}

func multipartReader(contentType string, r io.Reader) (*multipart.Reader, error) {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return nil, fmt.Errorf("%q is not multipart", contentType)
	}
	return multipart.NewReader(r, params["boundary"]), nil
}
