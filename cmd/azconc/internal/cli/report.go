package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"strings"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/spf13/cobra"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Report says on stderr, and with -o json on stdout too, how a command failed, and returns its exit code.
func (f *Factory) Report(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	if f.ctx != nil {
		ctx = f.ctx
	}
	err = ended(ctx, err)
	v := Judge(err)
	command, on := f.where(cmd)
	message, hint := explain(err, v, command, on), hintFor(err, v, command, on)
	if message != "" {
		f.Notef("%s", strings.TrimPrefix(strings.TrimSpace(command+" "+on)+": "+message, ": "))
	}
	if hint != "" {
		f.Notef("hint: %s", hint)
	}
	if _, wrong := errors.AsType[*UsageError](err); wrong {
		fmt.Fprintf(f.Err, "usage: %s\n", cmd.UseLine())
	} else if f.JSON() && !f.Quiet {
		_ = f.printJSON(failure(err, v, on, message, hint))
	}
	return v.Code
}

// where names the command and its resource as messages begin: "blob update", "c/n.json".
func (f *Factory) where(cmd *cobra.Command) (command, on string) {
	command = strings.TrimPrefix(strings.TrimPrefix(cmd.CommandPath(), "azconc"), " ")
	if cmd.HasSubCommands() {
		return command, ""
	}
	arg := 0
	if cmd.Annotations[ResourceArg] != "" {
		arg = 1
	}
	return command, display(cmd.Flags().Arg(arg))
}

// ResourceArg annotates a command whose resource is its second argument: the one that it changes.
const ResourceArg = "azconc-resource-is-second"

func failure(err error, v Verdict, on, message, hint string) map[string]any {
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
		put("since", TimeText(h.Since))
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

// explain returns the message without its prefix, since the command and the resource are named once. The service's response
// follows its meaning.
func explain(err error, v Verdict, command, on string) string {
	if v.Code == ExitNotFound {
		if noun, name := missing(err, command, on); noun != "" {
			return "not found: there is no " + noun + " " + name
		}
	}
	text := azerr.Clean(err).Error()
	if v.Code == ExitUnauthorised {
		if why, _ := Denied(err); why != "" {
			if answer, ok := errors.AsType[*azcore.ResponseError](err); ok && answer.StatusCode != 0 {
				why += ": " + azerr.Summary(answer)
			}
			return "not authorised: " + why
		}
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
		if azerr.Has(err, "MessageNotFound", "PopReceiptMismatch") {
			meaning[ExitLost] = "the pop receipt is stale: the message was received again since, or is gone: "
		}
		text = meaning[v.Code] + text
	}
	return strings.TrimSuffix(FirstLine(text), ".")
}

// allFacts gathers the facts of every error in the tree; those of an outer one win.
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

func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}

// hintFor is the hint the error brings, or the usual one for what happened.
func hintFor(err error, v Verdict, command, on string) string {
	noun, name := missing(err, command, on)
	if h := HintOf(err); h != "" && (v.Code != ExitNotFound || noun == "") {
		return h
	}
	if _, theirs := errors.AsType[*CommandStatus](err); theirs {
		return "" // the code is the command's, and means what the command means by it
	}
	_, inUse := errors.AsType[*pessimistic.InUseError](err)
	switch {
	case errors.Is(err, pessimistic.ErrTorn):
		return "part of the file is new, and the rest old or zeros: write it again"
	case errors.Is(err, pessimistic.ErrContent):
		return "a lock needs a blob of its own: give it another name, or --allow-content to use this blob's lease"
	case inUse:
		return "azconc file wait waits until clients have closed it; azconc file handles close closes their handles"
	case wrongType(err) != "":
		return wrongType(err)
	case azerr.Has(err, "LeaseIdMissing"):
		return "--lease-id writes under the lease, if you hold it"
	case v.Code == ExitUnknown:
		return "the write may or may not have been applied: check the resource before trying again"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at the endpoint: is the address right, and is Azurite running?"
	case v.Code == ExitUnauthorised:
		if _, way := Denied(err); way != "" {
			return way
		}
		return "azconc help environment lists the ways to give a credential"
	case v.Code == ExitNotFound:
		return createHint(command, noun, name)
	}
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return "is the account name right? it is the first part of " + unknown.Name
	}
	return ""
}

// wrongType is the way out for a blob of another type than the command writes.
func wrongType(err error) string {
	if e, ok := errors.AsType[*optimistic.BlobTypeError](err); ok {
		switch e.Type {
		case blob.BlobTypeAppendBlob:
			return "azconc blob append appends to an append blob; azconc blob delete removes it"
		case blob.BlobTypePageBlob:
			return "azconc blob page put writes a page blob; azconc blob delete removes it"
		default:
			return "azconc blob update or blob put writes a block blob; azconc blob delete removes it"
		}
	}
	return ""
}
