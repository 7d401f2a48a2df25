package flags

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// metadataName is the form of a metadata name (REST: "Naming and referencing containers, blobs, and metadata").
var metadataName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Metadata adds the flag --metadata, which may be repeated.
func Metadata(set *pflag.FlagSet, to *map[string]string, usage string) {
	Pairs(set, to, "metadata", usage, ParseMetadata)
}

// Pairs adds a flag that takes name=value and may be repeated.
func Pairs(set *pflag.FlagSet, to *map[string]string, name, usage string, parse func(pairs []string) (map[string]string, error)) {
	set.Var(&pairsValue{to: to, parse: parse}, name, usage+"; may be repeated")
}

// pairsValue is a flag that collects name=value pairs.
type pairsValue struct {
	given []string
	to    *map[string]string
	parse func(pairs []string) (map[string]string, error)
}

func (p *pairsValue) String() string { return strings.Join(p.given, " ") }
func (p *pairsValue) Type() string   { return "stringArray" }

// Set leaves an empty text to CheckGiven, which explains it.
func (p *pairsValue) Set(text string) (err error) {
	if p.given = append(p.given, text); strings.TrimSpace(text) != "" {
		*p.to, err = p.parse(p.given)
	}
	return err
}

// ParseMetadata reads metadata, given as name=value.
func ParseMetadata(pairs []string) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fail.Usagef("metadata %q is not name=value", p)
		}
		if !metadataName.MatchString(name) {
			return nil, fail.WithHint(fail.Usagef("metadata %q is not a name", name), "a name has letters, digits and underscores, and does not begin with a digit")
		}
		name = strings.ToLower(name)
		if _, twice := out[name]; twice {
			return nil, fail.Usagef("metadata %s is given twice", name)
		}
		if name == optimistic.LineageKey || name == optimistic.OperationsKey {
			return nil, fail.Usagef("metadata %s: the name is reserved for azconc", name)
		}
		if err := headerText("metadata "+name, value); err != nil {
			return nil, err
		}
		out[name] = value
	}
	return out, nil
}

// Headers are the properties that a write can set in addition to the content.
type Headers struct {
	ContentType     string
	ContentEncoding string
	CacheControl    string
	Metadata        map[string]string
}

func (h *Headers) Add(set *pflag.FlagSet) {
	Header(set, &h.ContentType, "content-type", "Content-Type to store")
	Header(set, &h.ContentEncoding, "content-encoding", "Content-Encoding to store")
	Header(set, &h.CacheControl, "cache-control", "Cache-Control to store")
	Metadata(set, &h.Metadata, "`name=value` to store as metadata")
}

func (h *Headers) Headers() *blob.HTTPHeaders {
	return &blob.HTTPHeaders{
		BlobContentType: ptr.Optional(h.ContentType), BlobContentEncoding: ptr.Optional(h.ContentEncoding), BlobCacheControl: ptr.Optional(h.CacheControl),
	}
}

// Header adds a flag whose text is sent in an HTTP header.
func Header(set *pflag.FlagSet, to *string, name, usage string) {
	Text(set, to, name, usage, func(text string) (string, error) { return text, headerText("--"+name, text) })
}

// headerText refuses a text that an HTTP header cannot carry. Go refuses a control character when it sends, which looks like a
// failure of the network. A text that is not ASCII, or has white space at an end, arrives as another one than was signed, so that
// the credential looks wrong.
func headerText(what, text string) error {
	if strings.TrimSpace(text) != text {
		return fail.WithHint(fail.Usagef("%s begins or ends with white space, which an HTTP header does not keep", what), "omit it, or encode it, such as a space as %20")
	}
	if i := strings.IndexFunc(text, func(c rune) bool { return c != '\t' && (c < ' ' || c > '~') }); i >= 0 {
		_, size := utf8.DecodeRuneInString(text[i:])
		c := text[i : i+size]
		return fail.WithHint(fail.Usagef("%s has the character %q, which an HTTP header cannot carry", what, c), fmt.Sprintf("encode it, such as %q as %s", c, url.PathEscape(c)))
	}
	return nil
}
