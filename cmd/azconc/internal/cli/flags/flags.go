// Package flags has the flags that several commands share, and the rules that hold for every flag.
package flags

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/ptr"
)

// EmptyAllowed annotates a flag for which an empty value says something that leaving the flag out says, too.
const EmptyAllowed = "azconc-empty-allowed"

// AllowEmpty lets a flag be given as an empty string. It is only for flags whose absence can do no harm: an empty
// condition, id or credential comes from a variable that is not set, and must not be taken for none.
func AllowEmpty(set *pflag.FlagSet, name string) { annotate(set, name, EmptyAllowed, "true") }

// Listing adds the flags of a list of nouns: --prefix and --max.
func Listing(set *pflag.FlagSet, nouns string) (prefix *string, most *int) {
	prefix, most = new(string), new(int)
	Prefix(set, prefix)
	Int(set, most, "max", 0, "stop after `n` "+nouns+"; 0 is all")
	return prefix, most
}

func annotate(set *pflag.FlagSet, name, key, value string) {
	if err := set.SetAnnotation(name, key, []string{value}); err != nil {
		panic(err) // the flag does not exist
	}
}

// CheckGiven refuses the flags and arguments that were given as an empty string, or are not UTF-8, before anything is sent. It covers
// every flag of every command; a flag is exempt only through allowEmpty, or because it names what is on this machine.
func CheckGiven(cmd *cobra.Command, args []string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		texts, empty := textsOf(f)
		what, _ := pflag.UnquoteUsage(f)
		switch {
		case err != nil:
		case empty && f.Annotations[EmptyAllowed] == nil:
			err = fail.WithHint(fail.Usagef("--%s is empty", f.Name), fmt.Sprintf(
				`is the variable set, and quoted? to run without --%s, omit the flag, as in ${VAR:+--%s "$VAR"}`, f.Name, f.Name))
		case !slices.Contains([]string{"file", "directory", "command"}, what):
			err = checkUTF8("--"+f.Name, strings.Join(texts, " "))
		}
	})
	if err != nil {
		return err
	}
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash] // what follows are the arguments of another program
	}
	for i, arg := range args {
		if strings.TrimSpace(arg) == "" {
			return fail.WithHint(fail.Usagef("argument %d is empty", i+1), "is the variable set, and quoted?")
		}
		if err := checkUTF8("argument", arg); err != nil {
			return err
		}
	}
	return nil
}

// textsOf returns the texts of a flag, and whether one of them is empty that says something.
func textsOf(f *pflag.Flag) (texts []string, empty bool) {
	blank := func(text string) bool { return strings.TrimSpace(text) == "" }
	switch v := f.Value.(type) {
	case pflag.SliceValue:
		return v.GetSlice(), len(v.GetSlice()) == 0 || slices.ContainsFunc(v.GetSlice(), blank)
	case *pairsValue:
		return v.given, slices.ContainsFunc(v.given, blank)
	}
	text := f.Value.String()
	return []string{text}, f.Value.Type() == "string" && blank(text)
}

// checkUTF8 refuses a text that a document, or an id that is compared, would hold with other characters in place of some bytes: two
// such texts could become one.
func checkUTF8(what, text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	return fail.WithHint(fail.Usagef("%s %q is not UTF-8, and cannot be stored as it is", what, text), "encode it, such as in hex")
}

// FlagError is the usage error of a command line that pflag refused.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		letters := unknown.GetSpecifiedShortnames()
		name := nearest(cmd, unknown.GetSpecifiedName())
		switch {
		case letters != "" && strings.Trim(letters, "0123456789.") == "":
			return fail.WithHint(fail.Usagef("-%s is no flag", letters), "a negative number comes after --, as in -- -"+letters)
		case letters == "" && name != "":
			return fail.WithHint(&fail.UsageError{Err: err}, "did you mean --"+name+"?")
		}
	}
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return &fail.UsageError{Err: err}
	}
	f, value, cause := invalid.GetFlag(), invalid.GetValue(), errors.Unwrap(invalid)
	kind := strings.TrimPrefix(f.Value.Type(), "u")
	switch {
	case fail.Judge(cause).Code == fail.ExitUsage:
		return cause
	case kind == "duration":
		return fail.WithHint(fail.Usagef("--%s %q is not a duration", f.Name, value), durationHint)
	case strings.HasPrefix(kind, "int"):
		return fail.Usagef("--%s %q is not a whole number", f.Name, value)
	case kind == "bool":
		return fail.Usagef("--%s %q is neither true nor false", f.Name, value)
	}
	return fail.Usagef("--%s %q: %v", f.Name, value, cause)
}

// nearest returns the flag of cmd whose name the user may have meant. It compares names as cobra compares those of commands.
func nearest(cmd *cobra.Command, name string) string {
	names := &cobra.Command{SuggestionsMinimumDistance: 2}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if found := names.SuggestionsFor(name); len(found) > 0 {
		return found[0]
	}
	return ""
}

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
	return ParsePairs("metadata", pairs, func(name, value string) (string, error) {
		if !metadataName.MatchString(name) {
			return "", fail.WithHint(fail.Usagef("metadata %q is not a name", name), "a name has letters, digits and underscores, and does not begin with a digit")
		}
		name = strings.ToLower(name)
		if name == optimistic.LineageKey || name == optimistic.OperationsKey {
			return "", fail.Usagef("metadata %s: the name is reserved for azconc", name)
		}
		return name, headerText("metadata "+name, value)
	})
}

// ParsePairs reads name=value pairs. check refuses one, or returns the name under which it is stored.
func ParsePairs(what string, pairs []string, check func(name, value string) (string, error)) (map[string]string, error) {
	if len(pairs) == 0 {
		return nil, nil
	}
	out := make(map[string]string, len(pairs))
	for _, p := range pairs {
		name, value, ok := strings.Cut(p, "=")
		if !ok || name == "" {
			return nil, fail.Usagef("%s %q is not name=value", what, p)
		}
		name, err := check(name, value)
		if err != nil {
			return nil, err
		}
		if _, twice := out[name]; twice {
			return nil, fail.Usagef("%s %s is given twice", what, name)
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
