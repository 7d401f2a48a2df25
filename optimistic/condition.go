package optimistic

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/optimistic/internal/protocol"
	"github.com/azconc/azconc/optimistic/internal/sealed"
	"github.com/azconc/azconc/pkg/azerr"
)

// Conditions restrict an operation in addition to the conditions that the operation sets itself. The zero value is no
// condition.
//
// The service takes at most two of the headers on a write, and only these pairs: If-Match with If-Unmodified-Since, and
// If-None-Match with If-Modified-Since (REST: "Specifying conditional headers for Blob service operations"; other pairs
// are 400 MultipleConditionHeadersNotSupported). Other pairs are refused before anything is sent.
//
// So is IfNoneMatch "*" with a LeaseID: if the blob exists and is leased under that id, the service ignores the condition
// and overwrites the blob (recorded from an account; no REST page says so).
type Conditions struct {
	IfMatch           azcore.ETag // the resource must be at this version; "*": must exist
	IfNoneMatch       azcore.ETag // the resource must not be at this version; "*": must not exist
	IfModifiedSince   time.Time   // whole seconds of the service's clock: too coarse for compare-and-swap
	IfUnmodifiedSince time.Time   // whole seconds, as IfModifiedSince
	IfTags            string      // a predicate over the blob's index tags, such as "state" = 'ready'
	LeaseID           string      // the id of the lease that the caller holds
}

// narrow reports whether a write may be refused although the resource is at the version that was read.
func (c Conditions) narrow() bool {
	return c.IfTags != "" || !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero()
}

// Validate returns an error if the service does not support the combination of conditions, or if an ETag is neither
// quoted nor "*". It sends nothing.
func (c Conditions) Validate() error {
	type given struct {
		name string
		set  bool
	}
	all := []given{
		{"If-Match", c.IfMatch != ""},
		{"If-None-Match", c.IfNoneMatch != ""},
		{"If-Modified-Since", !c.IfModifiedSince.IsZero()},
		{"If-Unmodified-Since", !c.IfUnmodifiedSince.IsZero()},
	}
	var names []string
	for _, g := range all {
		if g.set {
			names = append(names, g.name)
		}
	}
	legal := len(names) < 2 ||
		len(names) == 2 && all[0].set && all[3].set ||
		len(names) == 2 && all[1].set && all[2].set
	if !legal {
		return fmt.Errorf("conditions: %s cannot be combined; the service takes one of them, or If-Match with If-Unmodified-Since, or If-None-Match with If-Modified-Since",
			strings.Join(names, " and "))
	}
	if c.IfNoneMatch == azcore.ETagAny && c.LeaseID != "" {
		return errors.New("conditions: a write that only creates (If-None-Match *) cannot have a lease id, because with it the service overwrites a leased blob")
	}
	return cmp.Or(checkETag("conditions: IfMatch", c.IfMatch), checkETag("conditions: IfNoneMatch", c.IfNoneMatch))
}

// checkETag returns an error for an ETag, which name is given for, that is neither quoted nor "*" nor empty.
func checkETag(name string, etag azcore.ETag) error {
	if etag == "" || validETag(string(etag)) {
		return nil
	}
	return fmt.Errorf(`%s: %q is not an ETag; give it as the service wrote it, in double quotes ("0x8D…"), or *`, name, etag)
}

// carried reports whether c has only conditions that a write carries beside its base.
func (c Conditions) carried() bool {
	return c.IfMatch == "" && c.IfNoneMatch == "" && c.IfModifiedSince.IsZero() && c.IfUnmodifiedSince.IsZero()
}

// besides returns the conditions that a write carries beside its base.
func (c Conditions) besides() sealed.Conditions {
	return sealed.Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}
}

// Check evaluates the ETags and the dates on a version that was read. A write that replaces that very version is then bound
// as strictly as by the headers. The error is a *ConflictError for the operation and the resource, which are named. Nothing
// is sent; the tags and the lease are not evaluated, and a missing resource satisfies every condition but an IfMatch.
func (c Conditions) Check(op, resource string, now State) error {
	if c.carried() {
		return nil
	}
	conflict := &ConflictError{Op: op, Resource: resource, Reason: azerr.Changed, Current: now.ETag}
	switch {
	case c.IfMatch != "" && c.IfMatch != azcore.ETagAny && c.IfMatch != now.ETag:
		conflict.Base = c.IfMatch
	case !now.Exists:
		return nil
	case c.IfNoneMatch == azcore.ETagAny:
		conflict.Reason = azerr.Exists
	case c.IfNoneMatch != "" && c.IfNoneMatch == now.ETag:
		conflict.Base = now.ETag
	case !c.IfModifiedSince.IsZero() && !now.LastModified.After(c.IfModifiedSince):
		conflict.Base = now.ETag
	case !c.IfUnmodifiedSince.IsZero() && now.LastModified.After(c.IfUnmodifiedSince):
	default:
		return nil
	}
	return conflict
}

// over returns an error if a write over base, under c, would not be conditional on base.
func (c Conditions) over(base protocol.State) error {
	if base.Exists && base.ETag == "" {
		return errNoETag
	}
	sent := Conditions{IfTags: c.IfTags, LeaseID: c.LeaseID}
	if !base.Exists {
		sent.IfNoneMatch = azcore.ETagAny
	}
	return sent.Validate()
}

var errNoETag = errors.New("the base has no ETag, so the write would have no condition: Read it again")

// validETag accepts "*" and a quoted ETag, weak or strong. An unquoted one is refused, because the service would treat
// some malformed values as no condition at all. The command line adds the quotes that a shell removes.
func validETag(s string) bool {
	if s == "*" {
		return true
	}
	s = strings.TrimPrefix(s, "W/")
	return len(s) > 2 && s[0] == '"' && s[len(s)-1] == '"' && !strings.ContainsAny(s[1:len(s)-1], "\"\r\n")
}
