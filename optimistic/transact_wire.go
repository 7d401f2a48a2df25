package optimistic

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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

// submit sends an entity group transaction once and returns the new ETags, in the order of the actions; a deletion has
// none. The SDK does not report them, and it takes an answer that was cut off for a success, or panics over it: what
// cannot be read to the end leaves the outcome open.
func submit(ctx context.Context, client *aztables.Client, actions []aztables.TransactionAction) (etags []azcore.ETag, err error) {
	var raw *http.Response
	defer func() {
		if p := recover(); p != nil && raw != nil {
			err = unreadable(fmt.Errorf("%v", p))
		} else if p != nil {
			panic(p) // not over an answer
		}
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

// unreadable is an answer that says too little. What was wrong with it is kept as text only: it must not be taken for
// the service's refusal.
func unreadable(err error) error {
	return fmt.Errorf("the answer to the transaction cannot be read: %v: %w", azerr.Summary(err), io.ErrUnexpectedEOF)
}

// newETags reads the ETags out of an answer inside of which all answers are successes.
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
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		answer, err := http.ReadResponse(bufio.NewReader(part), nil)
		if err != nil {
			return nil, err
		}
		answer.Body.Close()
		etag := azcore.ETag(answer.Header.Get("ETag"))
		if len(etags) == len(actions) || answer.StatusCode >= 300 || etag == "" && actions[len(etags)].ActionType != aztables.TransactionTypeDelete {
			return nil, fmt.Errorf("answer %d is %s with the ETag %q", len(etags), answer.Status, etag)
		}
		etags = append(etags, etag)
	}
	if len(etags) < len(actions) {
		return nil, fmt.Errorf("%d answers to %d operations", len(etags), len(actions))
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
