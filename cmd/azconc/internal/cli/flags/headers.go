package flags

import (
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/pkg/ptr"
)

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
