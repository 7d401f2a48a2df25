package fail

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/resource"
)

func Object(err error, v Verdict, on, message, hint string) map[string]any {
	out := map[string]any{"outcome": v.Outcome, "error": message, "exit_code": v.Code}
	put := func(name string, value any) {
		if s := fmt.Sprint(value); s != "" && s != "0" {
			out[name] = value
		}
	}
	put("resource", on)
	put("hint", hint)
	if _, ok := errors.AsType[*azcore.ResponseError](err); ok {
		answer := azerr.Classify(err)
		put("code", answer.Code)
		put("status", answer.Status)
		put("request_id", answer.RequestID)
	}
	if c, ok := errors.AsType[*optimistic.ConflictError](err); ok {
		out["base_etag"], out["current_etag"] = string(c.Base), string(c.Current)
		put("reason", c.Reason.String())
		put("attempts", c.Attempts)
	}
	if h, ok := errors.AsType[*pessimistic.HeldError](err); ok {
		put("owner", h.Holder)
		put("fence", int64(h.Fence))
		put("since", show.Time(h.Since))
		out["waited_ms"] = h.Waited.Milliseconds()
	}
	if l, ok := errors.AsType[*pessimistic.LostError](err); ok {
		put("reason", l.Reason.String())
	}
	if u, ok := errors.AsType[*optimistic.UnknownError](err); ok {
		put("base_etag", string(u.Base))
		put("write_id", u.WriteID)
	}
	allFacts(err, out)
	return out
}

var (
	statusFirst = regexp.MustCompile(`^[1-5][0-9][0-9] `)
	verbFirst   = regexp.MustCompile(`^[a-z]+ `)
)

// Message returns the message without its prefix, since the command and the resource are named once. The service's response
// follows its meaning.
func Message(err error, v Verdict, command, on string) string {
	if v.Code == ExitNotFound {
		if noun, name := missing(err, command, on); noun != "" {
			return "not found: there is no " + noun + " " + name
		}
		if noun, name := absent(err, command, on); noun != "" {
			return "not found: there is no " + noun + " " + name
		}
	}
	if why := signInFailure(err); why != "" && v.Code == ExitUnauthorised {
		return "not authorised: " + why
	}
	text := azerr.Clean(err).Error()
	if _, way := azerr.Explain(err); way != "" && v.Code != ExitUnknown {
		text = strings.Replace(text, "; "+way, "", 1) // the hint says it
	}
	for on != "" {
		verb := verbFirst.FindString(text)
		rest, found := strings.CutPrefix(text[len(verb):], on+": ")
		if !found {
			break
		}
		text = rest
	}
	switch {
	case v.Outcome == "not_modified":
		text = "not modified"
	case statusFirst.MatchString(text):
		meaning := map[int]string{
			ExitNotFound: "not found: ", ExitConflict: "a condition did not hold: ", ExitHeld: "held by another holder: ", exitExists: "already exists: ",
			ExitLost: "the lease is not valid: ", ExitUnauthorised: "not authorised: ",
		}
		if azerr.Has(err, "MessageNotFound", "PopReceiptMismatch") { // the service says the first of a receipt, emulators the second
			meaning[ExitLost] = "the pop receipt is stale: the message was received or extended since, or is gone: "
		}
		text = meaning[v.Code] + text
	}
	return strings.TrimSuffix(show.FirstLine(text), ".")
}

// allFacts gathers the facts of every error in the tree; those of an outer error take precedence.
func allFacts(err error, into map[string]any) {
	switch e := err.(type) { //nolint:errorlint // walks the tree itself, error by error
	case interface{ Unwrap() error }:
		allFacts(e.Unwrap(), into)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			allFacts(inner, into)
		}
	}
	if e, ok := err.(facter); ok { //nolint:errorlint // this error's own facts; the others' have been gathered
		maps.Copy(into, e.Facts())
	}
}

// Hint returns the error's own hint, or the usual one for its kind.
func Hint(err error, v Verdict, command, on string) string {
	noun, name := missing(err, command, on)
	if h := HintOf(err); h != "" && (v.Code != ExitNotFound || noun == "") {
		return h
	}
	if _, theirs := errors.AsType[*CommandStatus](err); theirs {
		return "" // the exit code is the command's own
	}
	_, inUse := errors.AsType[*files.InUseError](err)
	_, content := errors.AsType[*pessimistic.ContentError](err)
	switch {
	case errors.Is(err, files.ErrTorn):
		return "part of the file is new, and the rest old or zeros: write it again"
	case content:
		return "a lock needs a blob of its own: give it another name, or --allow-content to use this blob's lease"
	case inUse:
		return "azconc file wait waits until clients have closed it; azconc file handles close closes their handles"
	case leased(err, command, on) != "" && v.Code != ExitUnknown:
		return leased(err, command, on)
	case v.Code == ExitUnknown:
		return "the write may or may not have been applied: check the resource before trying again"
	case v.Code == ExitNotFound && noun != "":
		return createHint(command, noun, name)
	case signInFailure(err) != "":
		return "sign in with az login, or give a key or a SAS: see azconc help environment"
	case azerr.Has(err, "KeyBasedAuthenticationNotPermitted"):
		return "--auth-mode login signs in with Entra ID"
	case azerr.Has(err, "NoAuthenticationInformation"):
		return "azconc help environment lists the ways to give one"
	}
	_, way := azerr.Explain(err)
	if way == "" && v.Code == ExitUnauthorised {
		way = "azconc help environment lists the ways to give a credential"
	}
	return way
}

// missing returns the container, table, queue or share that does not exist, if err reports that: by its code, or because the
// command is about that resource.
func missing(err error, command, on string) (noun, name string) {
	name, _, _ = strings.Cut(on, "/")
	if noun = azerr.Absent(err); noun == "" {
		group, _, _ := strings.Cut(command, " ")
		if on == "" || strings.Contains(on, "/") || group != "container" && group != "table" && group != "share" {
			return "", ""
		}
		return group, name
	}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.RawResponse != nil && answer.RawResponse.Request != nil {
		path, _, _ := strings.Cut(resource.Path(answer.RawResponse.Request.URL.String()), "/")
		if path, _, _ = strings.Cut(path, "("); !strings.HasPrefix(path, "$batch") && path != "" {
			name = path
		}
	}
	return noun, name
}

// absent returns what does not exist, if err reports that of one resource: the name of the command's group need not be that of a blob,
// and a command may read another blob than it is about. A version or a snapshot may be missing of a blob that exists.
func absent(err error, command, on string) (noun, name string) {
	group, _, _ := strings.Cut(command, " ")
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	switch {
	case !ok || answer.RawResponse == nil || answer.RawResponse.Request == nil:
		return "", ""
	case azerr.Has(err, "BlobNotFound") && group != "blob":
		return map[string]string{"lock": "lock", "tf": "state"}[group], on
	case azerr.Has(err, "BlobNotFound"), azerr.Has(err, "ResourceNotFound") && group == "file":
		asked := answer.RawResponse.Request
		if q := asked.URL.Query(); !q.Has("snapshot") && !q.Has("versionid") && asked.Header.Get("x-ms-copy-source") == "" {
			return group, resource.Path(asked.URL.String())
		}
	}
	return "", ""
}

// createHint returns the command that creates the missing resource, unless the failed command was a deletion.
func createHint(command, noun, name string) string {
	if noun == "" || strings.HasSuffix(command, "delete") && strings.HasPrefix(command, noun) {
		return ""
	}
	return "azconc " + noun + " create " + show.Quote(name) + " creates it"
}
