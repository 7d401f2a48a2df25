package azurite

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTool matches every [ToolError]: node or npm is missing or unusable.
	ErrTool = errors.New("a tool is missing")
	// ErrInstall is returned when Azurite could not be installed. No half-made installation is left behind.
	ErrInstall = errors.New("could not be installed")
	// ErrStart is returned when Azurite did not come up. The process is gone by then.
	ErrStart = errors.New("did not start")
	// ErrExited is the error of a [Server] whose process ended before it was stopped.
	ErrExited = errors.New("ended by itself")
)

// ToolError says which tool is missing or too old, and how to get it.
type ToolError struct {
	// Tool is the name of the program: "node" or "npm".
	Tool string
	// Problem says what is wrong with it.
	Problem string
	// Hint says how to get it.
	Hint string
	// Err is the error of looking for the tool or running it for its version; nil if it is too old.
	Err error
}

func (e *ToolError) Error() string { return e.Problem + ": " + e.Hint }

func (e *ToolError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrTool}
	}
	return []error{ErrTool, e.Err}
}

// ProcessError is the failure of npm or of Azurite itself, with the end of what it printed.
type ProcessError struct {
	// Kind is ErrInstall, ErrStart or ErrExited.
	Kind error
	// Output is the end of what the process wrote to stdout and stderr.
	Output string
	// Err is how the process ended, or why it was not waited for any longer.
	Err error
}

func (e *ProcessError) Error() string {
	s := fmt.Sprintf("Azurite %s %v: %v", Version, e.Kind, e.Err)
	if e.Output != "" {
		s += "; its last output:\n  " + strings.ReplaceAll(e.Output, "\n", "\n  ")
	}
	return s
}

func (e *ProcessError) Unwrap() []error { return []error{e.Kind, e.Err} }
