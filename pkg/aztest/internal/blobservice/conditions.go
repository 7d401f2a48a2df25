package blobservice

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/azconc/azconc/pkg/aztest/internal/storage"
)

// conditions are the conditional headers of a request (REST: "Specifying conditional headers for Blob service
// operations").
type conditions struct {
	match, noneMatch     string
	modified, unmodified time.Time // zero if not given
	tags                 string
}

// conditionsOf returns those whose headers have a prefix: "" for a blob, ofSource for the source of a copy.
func conditionsOf(r *storage.Request, prefix string) (conditions, *storage.Answer) {
	c := conditions{
		match:     strings.TrimSpace(r.Header.Get(prefix + "If-Match")),
		noneMatch: strings.TrimSpace(r.Header.Get(prefix + "If-None-Match")),
		tags:      r.Header.Get("X-Ms-If-Tags"),
	}
	if prefix == ofSource {
		c.tags = r.Header.Get(prefix + "If-Tags")
	}
	var bad *storage.Answer
	date := func(name string) time.Time {
		value := r.Header.Get(prefix + name)
		t, err := http.ParseTime(value)
		if err != nil && value != "" && !r.Reads() { // a read ignores it
			bad = storage.InvalidHeader(name, value)
		}
		return t
	}
	c.modified, c.unmodified = date("If-Modified-Since"), date("If-Unmodified-Since")
	return c, bad
}

const ofSource = "X-Ms-Source-"

func conditionNotMet(status int) *storage.Answer {
	return storage.Fail(status, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

// write evaluates the conditions of a write on b, which is nil if there is no blob. create marks the operations that
// make a blob: for them If-None-Match: * is a guard against overwriting, except for a blob with an active lease,
// where the lease id decides.
func (c conditions) write(b *blobState, create bool) *storage.Answer {
	given := 0
	for _, set := range []bool{c.match != "", c.noneMatch != "", !c.modified.IsZero(), !c.unmodified.IsZero()} {
		if set {
			given++
		}
	}
	legal := given < 2 || given == 2 && (c.match != "" && !c.unmodified.IsZero() || c.noneMatch != "" && !c.modified.IsZero())
	if !legal || strings.Contains(c.match, ",") || strings.Contains(c.noneMatch, ",") {
		return storage.Fail(http.StatusBadRequest, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.")
	}
	unmet := func() *storage.Answer { return conditionNotMet(http.StatusPreconditionFailed) }
	switch {
	case c.match != "" && (b == nil || !matches(c.match, b.ETag)):
		return unmet()
	case c.noneMatch == "*" && b != nil && create:
		if !b.Lease.Active() {
			return storage.Fail(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
		}
	case c.noneMatch != "" && b != nil && matches(c.noneMatch, b.ETag):
		return unmet()
	}
	// In a legal pair the ETag decides and the date is ignored.
	if c.match == "" && c.noneMatch == "" && b != nil && !c.dated(&b.Versioned) {
		return unmet()
	}
	return c.tagged(b)
}

// dated reports whether the dates are met.
func (c conditions) dated(v *storage.Versioned) bool {
	return v.LastModified.After(c.modified) && (c.unmodified.IsZero() || !v.LastModified.After(c.unmodified))
}

// tagged evaluates x-ms-if-tags, even together with an ETag, which an emulator does not do.
func (c conditions) tagged(b *blobState) *storage.Answer {
	if c.tags == "" {
		return nil
	}
	predicate, err := parseTags(c.tags)
	if err != nil {
		return storage.InvalidHeader("x-ms-if-tags", c.tags)
	}
	if b == nil || !predicate(b.tags) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	return nil
}

// read evaluates the conditions of a read on an existing blob. A read takes them in any combination, and requires
// If-Match && If-Unmodified-Since && (If-None-Match || If-Modified-Since).
func (c conditions) read(b *blobState) *storage.Answer {
	changed := c.noneMatch != "" && !matches(c.noneMatch, b.ETag) || !c.modified.IsZero() && b.LastModified.After(c.modified)
	switch {
	case c.noneMatch == "*":
		return storage.Fail(http.StatusBadRequest, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation.")
	case c.match != "" && !matches(c.match, b.ETag),
		!c.unmodified.IsZero() && b.LastModified.After(c.unmodified):
		return conditionNotMet(http.StatusPreconditionFailed)
	case (c.noneMatch != "" || !c.modified.IsZero()) && !changed:
		return conditionNotMet(http.StatusNotModified)
	}
	return c.tagged(b)
}

// block is fetch for Put Block From URL, which has another code for an If-Match that is no ETag.
func (c conditions) block(b *blobState) *storage.Answer {
	a := c.fetch(b)
	if a != nil && !wellFormed(c.match) {
		return c.source(b)
	}
	return a
}

// put is source for Put Blob From URL, to which a date is a condition on reading the source.
func (c conditions) put(b *blobState) *storage.Answer {
	a := c.source(b)
	if a != nil && a.Status == http.StatusPreconditionFailed && c.match == "" && c.noneMatch == "" {
		return c.fetch(b)
	}
	return a
}

// source evaluates the conditions on the source of a copy. The response is the same for all of them, so that it cannot
// be mistaken for one about the destination, where an emulator sends ConditionNotMet or 304 (REST: "Copy Blob").
func (c conditions) source(b *blobState) *storage.Answer {
	a := c.write(b, false)
	if a != nil && a.Status == http.StatusPreconditionFailed {
		return storage.Fail(http.StatusPreconditionFailed, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met.")
	}
	return a
}

// fetch evaluates the conditions on a source that is read like any blob, by Put Block From URL, Append Block From URL
// and Put Page From URL. They pass on the status of that read under a code of their own.
func (c conditions) fetch(b *blobState) *storage.Answer {
	if a := c.read(b); a != nil {
		return storage.Fail(a.Status, "CannotVerifyCopySource", "The source condition specified using HTTP conditional header(s) is not met.")
	}
	return nil
}

var etagForm = regexp.MustCompile(`^"?0x[0-9A-Fa-f]+"?$`)

// wellFormed reports whether the value of an If-Match header can be one of the service's ETags. Some
// operations that read from a URL answer another code if not.
func wellFormed(match string) bool { return match == "" || match == "*" || etagForm.MatchString(match) }

// matches compares a header value, which on a read may list several ETags, quoted or bare.
func matches(header, etag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.Trim(one, `"`) == strings.Trim(etag, `"`) && !strings.HasPrefix(one, "W/") {
			return true
		}
	}
	return false
}
