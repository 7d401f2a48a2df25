package azerr

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
)

var (
	unreached   = Outcome{Kind: Unreachable, transient: true} // nothing was sent
	interrupted = Outcome{Kind: Unknown, ambiguous: true}     // by the caller, which does not want another try
)

// unanswered classifies errors of the network and of waiting. It distinguishes three cases: nothing was sent; the
// request may have been applied; the error has nothing to do with the service.
func unanswered(err error) Outcome {
	if m, ok := beforeSending(err); ok {
		return m
	}
	switch {
	case errors.Is(err, context.Canceled):
		return interrupted
	case errors.Is(err, context.DeadlineExceeded):
		// It may be the deadline of the try. The caller knows whether its own context has ended as well.
		return unclear
	case local(err):
		return Outcome{}
	case onTheWay(err):
		return unclear
	}
	if mark, ok := errors.AsType[nonRetriable](err); ok {
		if strings.HasPrefix(mark.Error(), "body download policy") {
			return unclear // the response to a POST was cut off
		}
		// Every other error that the SDK marks so concerns credentials: there is no token, or it must not be sent
		// without TLS.
		return unauthorised
	}
	return Outcome{}
}

// beforeSending recognizes errors which prove that the service has not received the request.
func beforeSending(err error) (Outcome, bool) {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return unreached, true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		if errors.Is(err, context.Canceled) {
			return Outcome{Kind: Unreachable}, true
		}
		return unreached, true
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return permanent, true
	}
	if u, ok := errors.AsType[*url.Error](err); ok && (u.Op == "parse" || u.Err != nil && strings.HasPrefix(u.Err.Error(), invalidHeader)) {
		return badInput, true
	}
	return Outcome{}, false
}

// notSent marks an error of azconc's own: the request has not left.
type notSent interface {
	error
	NotSent()
}

// invalidHeader begins the error with which net/http refuses a header that it cannot send. It has no type.
const invalidHeader = "net/http: invalid header field"

// local recognizes errors of this machine's files and processes. Their innermost error is an errno which, taken alone,
// looks like a network error.
func local(err error) bool {
	if _, ok := errors.AsType[*url.Error](err); ok {
		return false // a request whose body could not be read: part of it was sent
	}
	_, ok := errors.AsType[*fs.PathError](err)
	return ok
}

// onTheWay recognizes errors of a connection that was established, in all forms in which the SDK passes them on: as
// http.Client returned them, or bare if they occurred while the body of the response was read.
func onTheWay(err error) bool {
	for _, end := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, os.ErrDeadlineExceeded,
		syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	if network, ok := errors.AsType[net.Error](err); ok {
		_, number := network.(syscall.Errno)
		return !number
	}
	if _, ok := errors.AsType[http2StreamError](err); ok {
		return true
	}
	// Only responses are parsed as XML.
	if _, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return true
	}
	return unparsed(err)
}

// unparsed reports whether the SDK could not parse the body of a success, for example because an intermediary truncated
// it: the request was applied, and its result is lost. The SDK has no type for this, and does not wrap the parser's
// error (runtime.UnmarshalAsJSON, runtime.UnmarshalAsXML).
func unparsed(err error) bool {
	if err == nil {
		return false
	}
	if strings.HasPrefix(err.Error(), "unmarshalling type ") {
		return true
	}
	switch wrapped := err.(type) {
	case interface{ Unwrap() error }:
		return unparsed(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), unparsed)
	}
	return false
}

// nonRetriable is the SDK's mark, which is in an internal package there.
type nonRetriable interface {
	error
	NonRetriable()
}

// http2StreamError matches net/http's stream reset: its type is not exported, but lets errors.As fill any struct with
// these fields. It is not wrapped if a stream is reset in the middle of a response's body.
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (http2StreamError) Error() string { return "stream error" }
