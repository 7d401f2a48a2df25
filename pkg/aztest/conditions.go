package aztest

import (
	"net/http"
	"regexp"
	"strings"
	"time"
)

// conditions are the conditional headers of a request (REST: "Specifying conditional headers for Blob service
// operations").
type conditions struct {
	match, noneMatch           string
	modified, unmodified       time.Time
	hasModified, hasUnmodified bool
	tags                       string
}

func conditionsOf(r *request, prefix string) (conditions, *answer) {
	c := conditions{
		match:     strings.TrimSpace(r.header.Get(prefix + "If-Match")),
		noneMatch: strings.TrimSpace(r.header.Get(prefix + "If-None-Match")),
		tags:      r.header.Get(prefix + "If-Tags"),
	}
	if prefix == "" {
		c.tags = r.header.Get("X-Ms-If-Tags")
	}
	var bad *answer
	date := func(name string) (time.Time, bool) {
		value := r.header.Get(prefix + name)
		if value == "" {
			return time.Time{}, false
		}
		t, err := http.ParseTime(value)
		if err != nil && r.method != http.MethodGet && r.method != http.MethodHead { // a read ignores it
			bad = invalidHeader(name, value)
		}
		return t, err == nil
	}
	c.modified, c.hasModified = date("If-Modified-Since")
	c.unmodified, c.hasUnmodified = date("If-Unmodified-Since")
	return c, bad
}

func conditionNotMet(status int) *answer {
	return fail(status, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.")
}

// write evaluates the conditions of a write on b, which is nil if there is no blob. create marks the operations that
// make a blob: for them If-None-Match: * is a guard against overwriting, except for a blob with an active lease,
// where the lease id decides.
func (c conditions) write(b *blobState, create bool) *answer {
	given := 0
	for _, set := range []bool{c.match != "", c.noneMatch != "", c.hasModified, c.hasUnmodified} {
		if set {
			given++
		}
	}
	legal := given < 2 || given == 2 && (c.match != "" && c.hasUnmodified || c.noneMatch != "" && c.hasModified)
	if !legal || strings.Contains(c.match, ",") || strings.Contains(c.noneMatch, ",") {
		return fail(http.StatusBadRequest, "MultipleConditionHeadersNotSupported", "Multiple condition headers are not supported.")
	}
	unmet := func() *answer { return conditionNotMet(http.StatusPreconditionFailed) }
	switch {
	case c.match != "" && (b == nil || !matches(c.match, b.etag)):
		return unmet()
	case c.noneMatch == "*" && b != nil && create:
		if !b.lease.active() {
			return fail(http.StatusConflict, "BlobAlreadyExists", "The specified blob already exists.")
		}
	case c.noneMatch != "" && b != nil && matches(c.noneMatch, b.etag):
		return unmet()
	}
	// In a legal pair the ETag decides and the date is ignored.
	if c.match == "" && c.noneMatch == "" && b != nil {
		if c.hasModified && !b.lastModified.After(c.modified) || c.hasUnmodified && b.lastModified.After(c.unmodified) {
			return unmet()
		}
	}
	return c.tagged(b)
}

// tagged evaluates x-ms-if-tags, even together with an ETag, which an emulator does not do.
func (c conditions) tagged(b *blobState) *answer {
	if c.tags == "" {
		return nil
	}
	predicate, err := parseTags(c.tags)
	if err != nil {
		return invalidHeader("x-ms-if-tags", c.tags)
	}
	if b == nil || !predicate(b.tags) {
		return conditionNotMet(http.StatusPreconditionFailed)
	}
	return nil
}

// read evaluates the conditions of a read on an existing blob. A read takes them in any combination, and requires
// If-Match && If-Unmodified-Since && (If-None-Match || If-Modified-Since).
func (c conditions) read(b *blobState) *answer {
	changed := c.noneMatch != "" && !matches(c.noneMatch, b.etag) || c.hasModified && b.lastModified.After(c.modified)
	switch {
	case c.noneMatch == "*":
		return fail(http.StatusBadRequest, "UnsatisfiableCondition", "The request includes an unsatisfiable condition for this operation.")
	case c.match != "" && !matches(c.match, b.etag),
		c.hasUnmodified && b.lastModified.After(c.unmodified):
		return conditionNotMet(http.StatusPreconditionFailed)
	case (c.noneMatch != "" || c.hasModified) && !changed:
		return conditionNotMet(http.StatusNotModified)
	}
	return c.tagged(b)
}

// block is fetch for Put Block From URL, which has another code for an If-Match that is no ETag.
func (c conditions) block(b *blobState) *answer {
	a := c.fetch(b)
	if a != nil && !wellFormed(c.match) {
		return c.source(b)
	}
	return a
}

// put is source for Put Blob From URL, to which a date is a condition on reading the source.
func (c conditions) put(b *blobState) *answer {
	a := c.source(b)
	if a != nil && a.status == http.StatusPreconditionFailed && c.match == "" && c.noneMatch == "" {
		return c.fetch(b)
	}
	return a
}

// source evaluates the conditions on the source of a copy. The response is the same for all of them, so that it cannot
// be mistaken for one about the destination, where an emulator sends ConditionNotMet or 304 (REST: "Copy Blob").
func (c conditions) source(b *blobState) *answer {
	a := c.write(b, false)
	if a != nil && a.status == http.StatusPreconditionFailed {
		return fail(http.StatusPreconditionFailed, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met.")
	}
	return a
}

// fetch evaluates the conditions on a source that is read like any blob, by Put Block From URL, Append Block From URL
// and Put Page From URL. They pass on the status of that read under a code of their own.
func (c conditions) fetch(b *blobState) *answer {
	if a := c.read(b); a != nil {
		return fail(a.status, "CannotVerifyCopySource", "The source condition specified using HTTP conditional header(s) is not met.")
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
