package fail

import (
	"errors"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Refused says which of the conditions that the flags given name does not hold, and the way out of that. Both are empty if err is no such
// refusal, or shows that another writer has changed the resource. The service does not say which condition it is.
func Refused(err error, v Verdict, on string, given []string) (message, hint string) {
	conflict, _ := errors.AsType[*optimistic.ConflictError](err)
	reason := azerr.Classify(err).Reason
	if conflict != nil {
		reason = conflict.Reason
	} else {
		conflict = new(optimistic.ConflictError)
	}
	source := reason == azerr.SourceChanged
	if v.Code != ExitConflict || reason != azerr.Changed && !source {
		return "", ""
	}
	var open []string
	for _, name := range given {
		own := source == strings.HasPrefix(name, "--source-")
		holds := name == "--if-match" && conflict.Base != "" && conflict.Base == conflict.Current
		if own && !holds {
			open = append(open, name)
		}
	}
	changed := conflict.Base != "" && conflict.Current != "" && conflict.Base != conflict.Current
	if len(open) == 0 || changed && !source {
		return "", ""
	}
	message = strings.Join(open, " or ") + " does not hold"
	if conflict.Current != "" {
		message += ": found ETag " + string(conflict.Current)
	}
	if len(open) > 1 {
		return message, "the service does not say which: give one of them at a time"
	}
	again := "the source was changed: read it again, and give the ETag that it has then"
	if conflict.Current != "" {
		again = "to copy the current version, give --source-if-match " + show.Quote(string(conflict.Current))
	}
	return message, map[string]string{
		"--if-match":            "read it again, and give the ETag that it has then",
		"--if-none-match":       "it still has that ETag: it has not been changed since",
		"--if-modified-since":   "it has not been changed since then, in whole seconds",
		"--if-unmodified-since": "it was changed since then: read it again, and give its ETag by --if-match, which misses no change",
		"--if-tags":             "azconc blob tags show " + show.Quote(on) + " shows its index tags",

		"--source-if-match":            again,
		"--source-if-none-match":       "the source still has that ETag",
		"--source-if-modified-since":   "the source has not been changed since then, in whole seconds",
		"--source-if-unmodified-since": "the source was changed since then: give its ETag by --source-if-match, which misses no change",
		"--source-if-tags":             "azconc blob tags show shows the index tags of the source",
	}[open[0]]
}

// Gone returns the conflict that err is, which says that a resource does not exist, when --if-match names a version of it.
func Gone(err error, op, on string, etag azcore.ETag) error {
	facts := map[string]any{}
	allFacts(err, facts)
	conflict := &optimistic.ConflictError{Op: op, Resource: on, Reason: azerr.Gone, Base: etag}
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		conflict.Err = answer
	}
	return WithFacts(conflict, facts)
}

// leased returns the way out of a refusal for the lease on a resource, by its code.
func leased(err error, command, on string) string {
	noun, _, _ := strings.Cut(command, " ")
	if noun != "container" && noun != "share" && noun != "file" {
		noun = "blob"
	}
	lease, at := "azconc "+noun+" lease ", " "+show.Quote(on)
	ends := lease + "break" + at + " ends that of another holder, once its work is certainly over"
	switch code := azerr.Classify(err).Code; {
	case code == "LeaseAlreadyPresent" && command == noun+" lease acquire":
		return ends
	case code == "LeaseIdMissing", code == "LeaseAlreadyPresent" && strings.HasPrefix(command, noun+" "):
		return "--lease-id writes under the lease, if you hold it; " + ends
	case strings.HasPrefix(code, "LeaseNotPresentWith") && !strings.HasSuffix(code, "LeaseOperation"):
		return "it is not leased now: without --lease-id the request does not depend on a lease; " + lease + "acquire" + at + " takes one"
	case strings.HasPrefix(code, "LeaseIdMismatchWith") && !strings.HasSuffix(code, "LeaseOperation"):
		return "another lease is on it than --lease-id names; " + lease + "show" + at + " shows its state"
	}
	return ""
}
