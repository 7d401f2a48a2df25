package cli

import "fmt"

// FilterError is a change that could not be made from the content. Nothing was written.
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
	return fmt.Sprintf("%s: %s: nothing was written", e.What, OneLine(e.Err.Error()))
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
