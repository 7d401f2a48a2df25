package cli

import (
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
)

// conditionFlags are the conditional headers. A verb takes those that the service lets its request carry.
type conditionFlags struct {
	IfMatch           string
	IfNoneMatch       string
	IfModifiedSince   string
	IfUnmodifiedSince string
	IfTags            string
	LeaseID           string
}

type conditionSet uint8

const (
	condETag conditionSet = 1 << iota
	condDates
	condTags
	condLease
	condAll = condETag | condDates | condTags | condLease
)

func (c *conditionFlags) add(cmd *cobra.Command, which conditionSet) {
	f := cmd.Flags()
	if which&condETag != 0 {
		f.StringVar(&c.IfMatch, "if-match", "", "only if the blob has this `ETag`; '*': only if it exists")
		f.StringVar(&c.IfNoneMatch, "if-none-match", "", "only if it does not have this `ETag`; '*': only if it does not exist")
	}
	if which&condDates != 0 {
		f.StringVar(&c.IfModifiedSince, "if-modified-since", "", "only if it changed after this `time`, in whole seconds")
		f.StringVar(&c.IfUnmodifiedSince, "if-unmodified-since", "", "only if it did not change after this `time`")
	}
	if which&condTags != 0 {
		f.StringVar(&c.IfTags, "if-tags", "", "only if its index tags satisfy this `predicate`")
	}
	if which&condLease != 0 {
		f.StringVar(&c.LeaseID, "lease-id", "", "`id` of the lease that you hold on it")
	}
}

// forRead parses the conditions of a request that only reads: there the service takes every combination.
func (c *conditionFlags) forRead() (optimistic.Conditions, error) {
	if c.IfNoneMatch == "*" {
		return optimistic.Conditions{}, withHint(usagef("--if-none-match '*' can never hold for a read"), "azconc blob show reports whether a blob exists (exit code 3 if not)")
	}
	return c.parse()
}

// forWrite parses the conditions of a request that writes, which may carry one of two pairs at most.
func (c *conditionFlags) forWrite() (optimistic.Conditions, error) {
	type flag struct{ name, value string }
	match, none := flag{"--if-match", c.IfMatch}, flag{"--if-none-match", c.IfNoneMatch}
	modified, unmodified := flag{"--if-modified-since", c.IfModifiedSince}, flag{"--if-unmodified-since", c.IfUnmodifiedSince}
	for _, pair := range []struct {
		a, b flag
		way  string
	}{
		{match, none, "--if-match alone replaces one version; --if-none-match '*' alone creates"},
		{match, modified, "an ETag is stricter than a time: keep --if-match"},
		{none, unmodified, "an ETag is stricter than a time: keep --if-none-match"},
		{modified, unmodified, "to pin a version use --if-match with its ETag"},
	} {
		if pair.a.value != "" && pair.b.value != "" {
			return optimistic.Conditions{}, withHint(usagef("%s and %s cannot both be given on a write", pair.a.name, pair.b.name), pair.way)
		}
	}
	return c.parse()
}

func (c *conditionFlags) parse() (out optimistic.Conditions, err error) {
	if out.IfMatch, err = parseETag("--if-match", c.IfMatch); err != nil {
		return out, err
	}
	if out.IfNoneMatch, err = parseETag("--if-none-match", c.IfNoneMatch); err != nil {
		return out, err
	}
	if out.IfModifiedSince, err = parseTime("--if-modified-since", c.IfModifiedSince); err != nil {
		return out, err
	}
	if out.IfUnmodifiedSince, err = parseTime("--if-unmodified-since", c.IfUnmodifiedSince); err != nil {
		return out, err
	}
	out.IfTags = c.IfTags
	out.LeaseID, err = parseLeaseID(c.LeaseID)
	return out, err
}

var (
	bareETag = regexp.MustCompile(`^[!#-)+-~]+$`)
	guid     = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// parseETag takes an ETag as the service writes it, or without the quotes that a shell swallowed, or *.
func parseETag(flag, s string) (azcore.ETag, error) {
	s = strings.TrimSpace(s)
	strong := strings.TrimPrefix(s, "W/")
	switch {
	case s == "", s == "*":
		return azcore.ETag(s), nil
	case len(strong) > 2 && strong[0] == '"' && strong[len(strong)-1] == '"' && bareETag.MatchString(strong[1:len(strong)-1]):
		return azcore.ETag(s), nil
	case bareETag.MatchString(s) && !strings.Contains(s, ","):
		return azcore.ETag(`"` + s + `"`), nil
	}
	return "", withHint(usagef("%s %s is not a single ETag", flag, s), `an ETag looks like "0x8DE0A1B2C3D4E5F", with or without the quotes; or '*'`)
}

func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.RFC1123, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, withHint(usagef("%s %q is not a time", flag, s), "a time looks like 2026-01-31T12:00:05Z or Sat, 31 Jan 2026 12:00:05 GMT")
}

// parseLeaseID lower-cases the id, because the service compares it by letter on some operations and not on others.
func parseLeaseID(s string) (string, error) {
	id := strings.ToLower(strings.TrimSpace(s))
	if id != "" && !guid.MatchString(id) {
		return "", usagef("--lease-id is not a GUID")
	}
	return id, nil
}

func blobAccess(c optimistic.Conditions) *blob.AccessConditions {
	return &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: optional(c.LeaseID)},
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{
			IfMatch: optional(c.IfMatch), IfNoneMatch: optional(c.IfNoneMatch), IfTags: optional(c.IfTags),
			IfModifiedSince: optionalTime(c.IfModifiedSince), IfUnmodifiedSince: optionalTime(c.IfUnmodifiedSince),
		},
	}
}

func containerAccess(c optimistic.Conditions) *container.AccessConditions {
	return &container.AccessConditions{
		LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: optional(c.LeaseID)},
		ModifiedAccessConditions: &container.ModifiedAccessConditions{
			IfModifiedSince: optionalTime(c.IfModifiedSince), IfUnmodifiedSince: optionalTime(c.IfUnmodifiedSince),
		},
	}
}

// optional keeps an empty value off the wire: an empty If-Match would be taken for none.
func optional[S ~string](s S) *S {
	if s == "" {
		return nil
	}
	return &s
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// quoted gives an ETag the quotes that listings leave out.
func quoted(e azcore.ETag) string {
	s := string(e)
	if s == "" || strings.HasSuffix(s, `"`) {
		return s
	}
	return `"` + s + `"`
}
