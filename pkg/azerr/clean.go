package azerr

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/resource"
)

// Clean returns an error with the chain of err and a text that is safe to show: one line, without keys and without the
// query of a URL. errors.Is, errors.As and Classify find everything that they found before. Clean(nil) is nil.
//
// The text is computed once. Wrapping a clean error with %w keeps it clean. Only a program that unwraps it down to the
// SDK's own error, and prints that, prints the secret.
func Clean(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*cleanError); ok {
		return err
	}
	return &cleanError{text: Summary(err), err: err}
}

type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

// GoString keeps %#v from printing the fields, which include the original error.
func (e *cleanError) GoString() string { return fmt.Sprintf("azerr.Clean(%q)", e.text) }

// Summary describes err in one line for a person. A response of the service becomes "412 ConditionNotMet (request
// 1a2b…)", a request without a response "PUT container/blob: connection reset by peer". Text that callers wrapped
// around them is kept, without secrets and control characters. What Explain says of err follows. Summary(nil) is empty.
func Summary(err error) string {
	if err == nil {
		return ""
	}
	if clean, ok := err.(*cleanError); ok {
		return clean.text
	}
	return oneLine(Redact(explained(shorten(err.Error(), err), err)))
}

// shorten replaces, in text, the text of every error below err by a shorter one that is safe to show. Outer errors come
// first: their texts contain those of the inner ones, which are then found in the replacement.
func shorten(text string, err error) string {
	switch e := err.(type) {
	case *cleanError:
		return text // and so are all below it
	case *azcore.ResponseError:
		text = strings.ReplaceAll(text, e.Error(), answer(e))
	case *url.Error:
		text = strings.ReplaceAll(text, e.Error(), fmt.Sprintf("%s %s: %v", strings.ToUpper(e.Op), resource.Path(e.URL), e.Err))
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			text = shorten(text, inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if inner != nil {
				text = shorten(text, inner)
			}
		}
	}
	return text
}

// answer puts into one line what the SDK puts into ten.
func answer(r *azcore.ResponseError) string {
	o := Classify(r)
	text := fmt.Sprint(o.Status)
	if name := o.Code; name != "" {
		text += " " + name
	} else if name := http.StatusText(o.Status); name != "" {
		text += " " + name
	}
	if o.Index >= 0 {
		text += fmt.Sprintf(", operation %d of the transaction", o.Index)
	}
	if o.RequestID != "" {
		text += fmt.Sprintf(" (request %s)", o.RequestID)
	}
	return text
}

// oneLine joins lines and words by single spaces. It removes control characters, because names and messages come from
// other writers and could move a terminal's cursor.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}
