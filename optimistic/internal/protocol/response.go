package protocol

import (
	"context"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// current returns a context in which a look asks caches between the client and the service for the current version. An
// older version would be taken for one that was written since. It replaces the headers that the caller's context adds.
func current(ctx context.Context) context.Context {
	return policy.WithHTTPHeader(ctx, currentHeader)
}

// AsStored is current for a read of content. It also asks for the stored bytes: a transport that asks for gzip decompresses
// the response, and hides both the stored bytes and their Content-Encoding, so that a write would store the decompressed
// content.
func AsStored(ctx context.Context) context.Context {
	return policy.WithHTTPHeader(ctx, asStoredHeader)
}

// The SDK copies these, and never writes to them.
var (
	currentHeader  = http.Header{"Cache-Control": {"no-cache"}}
	asStoredHeader = http.Header{"Cache-Control": {"no-cache"}, "Accept-Encoding": {"identity"}}
)

// Sent returns the value of a header that the service sends with every success. err is the error of the request. A
// success without the header is not the service's: an intermediary has dropped a part of it. So its error counts as that
// of a response that was cut off: a read is repeated, and a write may have been applied. Without an ETag in particular,
// the next write would have no condition.
func Sent[T any](header string, value *T, err error) (T, error) {
	var none T
	switch {
	case err != nil:
		return none, err
	case value == nil:
		return none, lacking(header)
	}
	return *value, nil
}

// lacking is the error of a success without a header.
type lacking string

func (header lacking) Error() string {
	return "the response has no " + string(header) + ", which the service always sends: a proxy may have dropped it"
}

func (lacking) Unwrap() error { return io.ErrUnexpectedEOF }
