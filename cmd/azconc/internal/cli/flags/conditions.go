package flags

import (
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// Conditions are the conditional headers. A verb takes those that the service lets its request carry.
type Conditions struct {
	IfMatch           string
	IfNoneMatch       string
	IfModifiedSince   string
	IfUnmodifiedSince string
	IfTags            string
	LeaseID           string
}

type ConditionSet uint8

const (
	condETag ConditionSet = 1 << iota
	CondDates
	CondTags
	CondLease
	CondAll = condETag | CondDates | CondTags | CondLease
)

func (c *Conditions) Add(set *pflag.FlagSet, which ConditionSet) {
	if which&condETag != 0 {
		set.StringVar(&c.IfMatch, "if-match", "", "only if the blob has this `ETag`; '*': only if it exists")
		set.StringVar(&c.IfNoneMatch, "if-none-match", "", "only if it does not have this `ETag`; '*': only if it does not exist")
	}
	if which&CondDates != 0 {
		set.StringVar(&c.IfModifiedSince, "if-modified-since", "", "only if it changed after this `time`, in whole seconds")
		set.StringVar(&c.IfUnmodifiedSince, "if-unmodified-since", "", "only if it did not change after this `time`")
	}
	if which&CondTags != 0 {
		set.StringVar(&c.IfTags, "if-tags", "", "only if its index tags satisfy this `predicate`")
	}
	if which&CondLease != 0 {
		set.StringVar(&c.LeaseID, "lease-id", "", "`id` of the lease that you hold on it")
	}
}

// ForRead parses the conditions of a request that only reads: there the service takes every combination.
func (c *Conditions) ForRead() (optimistic.Conditions, error) {
	if c.IfNoneMatch == "*" {
		return optimistic.Conditions{}, fail.WithHint(fail.Usagef("--if-none-match '*' can never hold for a read"), "azconc blob show reports whether a blob exists (exit code 3 if not)")
	}
	return c.parse()
}

// ForWrite parses the conditions of a request that writes, which may carry one of two pairs at most.
func (c *Conditions) ForWrite() (optimistic.Conditions, error) {
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
			return optimistic.Conditions{}, fail.WithHint(fail.Usagef("%s and %s cannot both be given on a write", pair.a.name, pair.b.name), pair.way)
		}
	}
	return c.parse()
}

func (c *Conditions) parse() (out optimistic.Conditions, err error) {
	if out.IfMatch, err = ParseETag("--if-match", c.IfMatch); err != nil {
		return out, err
	}
	if out.IfNoneMatch, err = ParseETag("--if-none-match", c.IfNoneMatch); err != nil {
		return out, err
	}
	if out.IfModifiedSince, err = ParseTime("--if-modified-since", c.IfModifiedSince); err != nil {
		return out, err
	}
	if out.IfUnmodifiedSince, err = ParseTime("--if-unmodified-since", c.IfUnmodifiedSince); err != nil {
		return out, err
	}
	out.IfTags = c.IfTags
	out.LeaseID, err = ParseLeaseID(c.LeaseID)
	return out, err
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

func ContainerAccess(c optimistic.Conditions) *container.AccessConditions {
	return &container.AccessConditions{
		LeaseAccessConditions: &container.LeaseAccessConditions{LeaseID: ptr.Optional(c.LeaseID)},
		ModifiedAccessConditions: &container.ModifiedAccessConditions{
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

// AddSnapshot adds the flag that names a snapshot of the blob.
func AddSnapshot(set *pflag.FlagSet, of *string, which string) {
	set.StringVar(of, "snapshot", "", "the snapshot of this `time`"+which+", as blob snapshot prints it")
}
