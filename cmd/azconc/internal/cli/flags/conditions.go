package flags

import (
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
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

// GivenConditions returns the flags of conditions that were given.
func GivenConditions(set *pflag.FlagSet) (names []string) {
	set.Visit(func(f *pflag.Flag) {
		if strings.HasPrefix(strings.TrimPrefix(f.Name, "source-"), "if-") {
			names = append(names, "--"+f.Name)
		}
	})
	return names
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

// The forms of ETags. The service writes those of blobs, containers and files as "0x8D…", and those of entities as W/"datetime'…'".
var (
	blobETag  = regexp.MustCompile(`^()("[!#-&()+\-.0-~]+"|[!#-&()+\-.0-~]+)$`)
	tableETag = regexp.MustCompile(`^(W/)("[ !#-~]+"|[!#-~]+)$`)
	GUID      = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
)

// passed returns what a script passes on of the output of a command: a text or a JSON string, perhaps with the end of the line.
func passed(text string) string { return show.Unquoted(strings.TrimSpace(text)) }

// ParseETag takes the ETag of a blob, a container or a file in every form in which azconc prints it, or without its quotes, or *.
func ParseETag(flag, text string) (azcore.ETag, error) {
	return parseETag(flag, text, blobETag, "an ETag", `an ETag looks like "0x8DE0A1B2C3D4E5F", with or without the quotes; or '*'`)
}

// ParseTableETag is ParseETag for an entity, whose ETag is weak.
func ParseTableETag(flag, text string) (azcore.ETag, error) {
	return parseETag(flag, text, tableETag, "a table's ETag", `it looks like W/"datetime'2026-01-31T12%3A00%3A05.1234567Z'", as azconc table get -o json prints it`)
}

func parseETag(flag, text string, form *regexp.Regexp, what, hint string) (azcore.ETag, error) {
	s := passed(text)
	m := form.FindStringSubmatch(s)
	switch {
	case s == "*":
		return azcore.ETagAny, nil
	case strings.TrimSpace(text) == "":
		return "", fail.Usagef("%s is empty", flag)
	case m == nil, s == noValue:
		return "", fail.WithHint(fail.Usagef("%s %s is not %s", flag, text, what), hint)
	}
	return azcore.ETag(m[1] + `"` + strings.Trim(m[2], `"`) + `"`), nil
}

// noValue is what a query prints, as JSON, of a member that is not there.
const noValue = "null"

// ParseID takes an id or a receipt of the service in every form in which azconc prints it.
func ParseID(what, text string) (string, error) {
	id := passed(text)
	if id == "" || id == noValue {
		return "", fail.Usagef("%s %s is none", what, text)
	}
	return id, nil
}

func ParseTime(flag, s string) (time.Time, error) {
	s = passed(s)
	for _, layout := range []string{time.RFC3339, time.RFC1123, "2006-01-02T15:04Z", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fail.WithHint(fail.Usagef("%s %q is not a time", flag, s), "a time looks like 2026-01-31T12:00:05Z or Sat, 31 Jan 2026 12:00:05 GMT")
}

// ParseLeaseID lower-cases the id, because the service compares it by letter on some operations and not on others.
func ParseLeaseID(s string) (string, error) {
	id := strings.ToLower(passed(s))
	if !GUID.MatchString(id) {
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
