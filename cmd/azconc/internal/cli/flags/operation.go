package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
)

// AddOperationID adds the flag that makes a change idempotent. The resource keeps the ids of the last keeps operations.
func AddOperationID(set *pflag.FlagSet, to *string, what string, keeps int) {
	set.StringVar(to, "op-id", "", fmt.Sprintf("`id` of this change: nothing is written if it is among the last %[2]d ids applied to %[1]s (azconc help operations)", what, keeps))
}

// OperationsInTags is the number of operations that azconc's own tag has room for.
const OperationsInTags = 7

func OperationsHelp() string {
	return fmt.Sprintf(`--op-id gives a change an id, so that running the same command again does not apply it again:

  azconc blob update jobs/state.json --jq '.n += 1' --op-id deploy-42

The resource keeps the ids of the changes that were applied to it: the last %d, for %d days; index tags the last %d,
without an age limit. Within that window a rerun writes nothing and ends with 0: its outcome is "already_applied", in text and
with -o json, and "changed" is false. The id is checked before any condition, so a rerun of an applied change with an
--if-match that has become stale also succeeds. If two commands run at once under one id, one of them applies the change.

A change is applied again if its id has been dropped, or if the resource was deleted and created again, or overwritten
without azconc, or by a verb that replaces a blob without its ids: blob put (but for --if-match), blob copy, blob block commit
and blob page create. The content, the metadata and the tags of a blob are separate: one id on two of them is two changes. An
id does not identify the kind of change: a different change under the same id is not applied.

For an operation that must never repeat, however late, use azconc once run, which keeps its results in a table.`,
		optimistic.OperationsKept, int(optimistic.OperationAge/(24*time.Hour)), OperationsInTags)
}

// Update adds the flags of a verb that reads a resource and writes it back, and starts over when the resource has changed. what names
// the part of the resource that is changed, which remembers as many operations as kept.
func Update(set *pflag.FlagSet, o *optimistic.UpdateOptions, what string, kept int) {
	AddOperationID(set, &o.OperationID, what, kept)
	MaxAttempts(set, o)
	AddConfirmConflicts(set, &o.ConfirmConflicts)
}

// MaxAttempts adds the flag --max-attempts of an update.
func MaxAttempts(set *pflag.FlagSet, o *optimistic.UpdateOptions) {
	Int(set, &o.Attempts, "max-attempts", 1, "give up after this many conflicts (default 100, or 30s)").given = func() { o.Elapsed = -1 }
}

// AddMaxSize adds the flag of the verbs that hold the content of a blob in memory.
func AddMaxSize(set *pflag.FlagSet, size *int64) {
	*size = blobs.DefaultMaxSize
	Size(set, size, "max-size", "refuse content longer than this many `bytes`, since it is held in memory")
}

// MaxSizeHint names the flag that raises the bound that a blob's content exceeds.
func MaxSizeHint(err error) error {
	large, ok := errors.AsType[interface {
		error
		MaxSize() int64
	}](err)
	if !ok {
		return err
	}
	return fail.WithHint(fmt.Errorf("the content has more than the %s that --max-size allows", show.Bytes(large.MaxSize())),
		"--max-size raises the limit; azconc blob get and put stream content of any size")
}

// AddConfirmConflicts adds the flag of the verbs that confirm a refusal before they report a conflict.
func AddConfirmConflicts(set *pflag.FlagSet, confirm *optimistic.Confirm) {
	const name = "confirm-conflicts"
	values := map[string]optimistic.Confirm{"auto": optimistic.ConfirmByPath, "always": optimistic.ConfirmAlways, "never": optimistic.ConfirmNever}
	v := Text(set, confirm, name, "whether a conflict that nothing in the resource confirms has an unknown outcome (exit code 5); auto: unless TLS to the service or a loopback connection rules out that a proxy delivered the write twice: {auto | always | never}", func(text string) (optimistic.Confirm, error) {
		c, ok := values[text]
		if !ok {
			return 0, fail.Usagef("--%s %q is neither auto, always nor never", name, text)
		}
		return c, nil
	})
	v.text, set.Lookup(name).DefValue = "auto", "auto"
}

// UnconfirmedHint names the flag that makes a conflict of a refusal that nothing confirms.
func UnconfirmedHint(err error) error {
	if unknown, ok := errors.AsType[*optimistic.UnknownError](err); ok && unknown.Unconfirmed {
		return fail.WithHint(err, "look at what is there before trying again: a proxy may have delivered the write twice, and another writer has removed the proof; if nothing on the way repeats requests, --confirm-conflicts never makes this a conflict (exit code 4)")
	}
	return err
}

// MetricsName is the flag that Metrics adds, by which the frame finds it.
const MetricsName = "metrics"

// Metrics adds the address at which a command shows its metrics and its health.
func Metrics(set *pflag.FlagSet) {
	set.String(MetricsName, "", "serve Prometheus metrics, /livez and /readyz at this `address`, such as 127.0.0.1:9090")
}
