package fail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

// PlainJSON describes an error in a JSON document without naming Go types.
func PlainJSON(err error) string {
	text := strings.TrimPrefix(err.Error(), "not an entity: ")
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind, _, _ := strings.Cut(wrong.Value, " ")
		plain := "the document cannot be of type " + kind
		if wrong.Field != "" {
			plain = fmt.Sprintf("%q cannot be of type %s", wrong.Field, kind)
		}
		return strings.Replace(text, wrong.Error(), plain, 1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || strings.HasSuffix(text, "unexpected end of JSON input") {
		return "it is incomplete"
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "json: "), "unknown field", "unknown member")
}

// ByteOrderMark returns an error if data begins with a byte order mark, as Windows programs write it. JSON has none (RFC 8259,
// section 8.1).
func ByteOrderMark(data []byte) error {
	for mark, in := range map[string]string{"\xef\xbb\xbf": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		if bytes.HasPrefix(data, []byte(mark)) {
			return fmt.Errorf("it begins with a byte order mark, in %s: save it as UTF-8 without one", in)
		}
	}
	return nil
}

// StrictJSON parses a document and refuses unknown members.
func StrictJSON(data []byte, what string, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := cmp.Or(ByteOrderMark(data), d.Decode(into)); err != nil {
		return Usagef("the file is not %s: %s", what, show.OneLine(PlainJSON(err)))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Usagef("the file is not %s: it is more than one JSON value", what)
	}
	return nil
}

// FilterError reports a change that failed. Nothing was written.
type FilterError struct {
	What   string
	Status int
	Stderr string
	Err    error
}

func (e *FilterError) Error() string {
	if e.Err == nil {
		return e.What + ": nothing was written"
	}
	return fmt.Sprintf("%s: %s: nothing was written", e.What, show.OneLine(e.Err.Error()))
}

func (e *FilterError) Unwrap() error { return e.Err }

func (e *FilterError) Verdict() Verdict { return Verdict{Code: ExitFilter, Outcome: "filter_failed"} }

func (e *FilterError) Facts() map[string]any {
	out := map[string]any{}
	if e.Status != 0 {
		out["filter_status"] = e.Status
	}
	if e.Stderr != "" {
		out["filter_stderr"] = e.Stderr
	}
	return out
}

// BadDocument turns a *FilterError about a given document into a usage error, because nothing has been sent.
func BadDocument(err error) error {
	bad, ok := errors.AsType[*FilterError](err)
	switch {
	case !ok:
		return err
	case bad.Err == nil:
		return keepHint(Usagef("%s", bad.What), err)
	}
	return keepHint(Usagef("%s: %s", bad.What, show.OneLine(PlainJSON(bad.Err))), err)
}

// keepHint adds the hint of another error, if there is one.
func keepHint(err, of error) error {
	if hint := HintOf(of); hint != "" {
		return WithHint(err, hint)
	}
	return err
}
