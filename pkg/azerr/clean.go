package azerr

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/pkg/resource"
)

// Clean returns an error with the chain of err and a text that is safe to show: one line, without a URL's query,
// without keys. errors.Is and errors.As see everything that they saw before. Clean(nil) is nil.
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

// Summary describes err in one line for a person: "412 ConditionNotMet: The condition … is not met (request 1a2b…)".
func Summary(err error) string {
	if err == nil {
		return ""
	}
	// An error of azconc that wraps the service's answer has said what matters in its own words already.
	if clean, ok := err.(*cleanError); ok {
		return clean.text
	}
	text := err.Error()
	if response, ok := errors.AsType[*azcore.ResponseError](err); ok {
		text = strings.ReplaceAll(text, response.Error(), answer(response))
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		text = strings.ReplaceAll(text, failed.Error(), fmt.Sprintf("%s %s: %v", strings.ToUpper(failed.Op), resource.Path(failed.URL), failed.Err))
	}
	return strings.Join(strings.Fields(Redact(text)), " ")
}

// answer says in one line what the SDK's own text says in ten.
func answer(r *azcore.ResponseError) string {
	o := Classify(r)
	code := o.Code
	if code == "" {
		code = http.StatusText(o.Status)
	}
	text := fmt.Sprintf("%d %s", o.Status, code)
	if o.Index >= 0 {
		text += fmt.Sprintf(", operation %d of the transaction", o.Index)
	}
	if o.RequestID != "" {
		text += fmt.Sprintf(" (request %s)", o.RequestID)
	}
	return text
}

const blanked = "REDACTED"

// secrets finds the values that must never be shown, in URLs, connection strings and headers.
var secrets = []*regexp.Regexp{
	// The signature of a shared access signature, plain or escaped in another URL.
	regexp.MustCompile(`(?i)((?:^|[^a-z]|%[0-9a-f]{2})sig(?:=|%3d|%253d))[^&\s"'<>;,)]+`),
	regexp.MustCompile(`(?i)((?:SharedKeyLite|SharedKey|Bearer)[ \t]+)[^\s"',;]+`),
	regexp.MustCompile(`(?i)((?:AccountKey|SharedAccessKey|AccessKey|Account-Key)[ \t]*=[ \t]*"?)[^;\s"']+`),
}

// Redact blanks every secret in s: signatures of shared access signatures, account keys, authorization headers. What
// else a shared access signature says (permissions, times) stays, because it explains refusals.
func Redact(s string) string {
	for _, secret := range secrets {
		s = secret.ReplaceAllString(s, "${1}"+blanked)
	}
	return s
}
