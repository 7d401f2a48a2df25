package fail

import (
	"errors"
	"fmt"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/show"
)

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
