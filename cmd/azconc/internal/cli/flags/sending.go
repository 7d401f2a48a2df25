package flags

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pkg/observe"
)

// Sending bound a single try of a request that carries content.
type Sending struct {
	TryTimeout time.Duration
	MinRate    int64
}

func (s *Sending) Add(set *pflag.FlagSet) {
	Duration(set, &s.TryTimeout, "try-timeout", false, "retry a request without a response after this long, plus the time that its content takes at --min-rate (default 30s, or 5m for blocks and ranges of a blob)").hint = "--timeout bounds the whole command"
	Int(set, &s.MinRate, "min-rate", 1, "slowest transfer to wait for, in `bytes` per second (default 65536)").hint = "a slower network needs a smaller rate, such as 8192"
}

func (s *Sending) Sending(hooks observe.Hooks) optimistic.SendOptions {
	return optimistic.SendOptions{Hooks: hooks, TryTimeout: s.TryTimeout, MinRate: s.MinRate}
}

// AddMaxSize adds the flag of the verbs that hold the content of a blob in memory.
func AddMaxSize(set *pflag.FlagSet, size *int64) {
	*size = blobs.DefaultMaxSize
	Int(set, size, "max-size", 1, "refuse content longer than this many `bytes`, since it is held in memory")
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
	return fail.WithHint(&tooLargeError{limit: large.MaxSize(), err: err}, "--max-size raises the limit; azconc blob get and put stream content of any size")
}

// tooLargeError is content that is not read into memory.
type tooLargeError struct {
	limit int64
	err   error
}

func (e *tooLargeError) Error() string {
	return "the content has more than the " + show.Bytes(e.limit) + " that --max-size allows"
}
func (e *tooLargeError) Unwrap() error { return e.err }

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
