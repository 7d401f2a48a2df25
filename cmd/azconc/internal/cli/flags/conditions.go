package flags

import (
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// ConditionSet is a set of conditional headers. A verb takes those that the service lets its request carry.
type ConditionSet uint8

const (
	condETag ConditionSet = 1 << iota
	CondDates
	CondTags
	CondLease
	CondAll = condETag | CondDates | CondTags | CondLease
)

// ReadConditions adds the conditions of a request that only reads, for which the service takes every combination.
func ReadConditions(set *pflag.FlagSet, c *optimistic.Conditions, which ConditionSet) {
	addConditions(set, c, which, func() error {
		if c.IfNoneMatch == azcore.ETagAny {
			return fail.WithHint(fail.Usagef("--if-none-match '*' can never hold for a read"), "azconc blob show reports whether a blob exists (exit code 3 if not)")
		}
		return nil
	})
}

// WriteConditions adds the conditions of a request that writes.
func WriteConditions(set *pflag.FlagSet, c *optimistic.Conditions, which ConditionSet) {
	addConditions(set, c, which, func() error { return CheckWrite(*c, "--") })
}

func addConditions(set *pflag.FlagSet, c *optimistic.Conditions, which ConditionSet, check func() error) {
	var last interface{ whenDone(check func() error) } // conditions include dates or a lease id, unless there are none
	if which&condETag != 0 {
		ETag(set, &c.IfMatch, "if-match", "only if the blob has this `ETag`; '*': only if it exists")
		ETag(set, &c.IfNoneMatch, "if-none-match", "only if it does not have this `ETag`; '*': only if it does not exist")
	}
	if which&CondDates != 0 {
		Time(set, &c.IfModifiedSince, "if-modified-since", "only if it changed after this `time`, in whole seconds")
		last = Time(set, &c.IfUnmodifiedSince, "if-unmodified-since", "only if it did not change after this `time`")
	}
	if which&CondTags != 0 {
		Header(set, &c.IfTags, "if-tags", "only if its index tags satisfy this `predicate`")
	}
	if which&CondLease != 0 {
		last = LeaseID(set, &c.LeaseID, "`id` of the lease that you hold on it")
	}
	if last != nil {
		last.whenDone(check)
	}
}

// CheckWrite refuses conditions that the service does not accept together on a write. Their flags begin with prefix.
func CheckWrite(c optimistic.Conditions, prefix string) error {
	named := strings.NewReplacer("--", prefix).Replace
	match, none := c.IfMatch != "", c.IfNoneMatch != ""
	modified, unmodified := !c.IfModifiedSince.IsZero(), !c.IfUnmodifiedSince.IsZero()
	for _, pair := range []struct {
		given   bool
		a, b    string
		instead string
	}{
		{match && none, "--if-match", "--if-none-match", "keep one of them: --if-match asks for one version, --if-none-match for any other"},
		{match && modified, "--if-match", "--if-modified-since", "an ETag is stricter than a time: keep --if-match"},
		{none && unmodified, "--if-none-match", "--if-unmodified-since", "an ETag is stricter than a time: keep --if-none-match"},
		{modified && unmodified, "--if-modified-since", "--if-unmodified-since", "to pin a version use --if-match with its ETag"},
		{c.IfNoneMatch == azcore.ETagAny && c.LeaseID != "", "--if-none-match '*'", "--lease-id", "with the id of its lease the service overwrites an existing blob: to create one, leave --lease-id out"},
	} {
		if pair.given {
			return fail.WithHint(fail.Usagef("%s and %s cannot both be given on a write", named(pair.a), named(pair.b)), named(pair.instead))
		}
	}
	return nil
}

var (
	bareETag = regexp.MustCompile(`^[!#-)+-~]+$`)
	GUID     = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// ParseETag takes an ETag as the service writes it, or without the quotes that a shell swallowed, or *.
func ParseETag(flag, s string) (azcore.ETag, error) {
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
	return "", fail.WithHint(fail.Usagef("%s %s is not a single ETag", flag, s), `an ETag looks like "0x8DE0A1B2C3D4E5F", with or without the quotes; or '*'`)
}

func ParseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.RFC1123, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fail.WithHint(fail.Usagef("%s %q is not a time", flag, s), "a time looks like 2026-01-31T12:00:05Z or Sat, 31 Jan 2026 12:00:05 GMT")
}

// ParseLeaseID lower-cases the id, because the service compares it by letter on some operations and not on others.
func ParseLeaseID(s string) (string, error) {
	id := strings.ToLower(strings.TrimSpace(s))
	if id != "" && !GUID.MatchString(id) {
		return "", fail.Usagef("--lease-id is not a GUID")
	}
	return id, nil
}

func BlobAccess(c optimistic.Conditions) *blob.AccessConditions {
	return &blob.AccessConditions{
		LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)},
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{
			IfMatch: ptr.Optional(c.IfMatch), IfNoneMatch: ptr.Optional(c.IfNoneMatch), IfTags: ptr.Optional(c.IfTags),
			IfModifiedSince: ptr.Optional(c.IfModifiedSince), IfUnmodifiedSince: ptr.Optional(c.IfUnmodifiedSince),
		},
	}
}

// Quoted gives an ETag the quotes that listings leave out.
func Quoted(e azcore.ETag) string {
	s := string(e)
	if s == "" || strings.HasSuffix(s, `"`) {
		return s
	}
	return `"` + s + `"`
}
