package azurite

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrTool is matched by every [ToolError]: node or npm is missing or unusable.
	ErrTool = errors.New("a tool is missing")
	// ErrInstall means that Azurite could not be installed. No incomplete installation is left behind.
	ErrInstall = errors.New("could not be installed")
	// ErrStart means that Azurite did not start. Its process has ended.
	ErrStart = errors.New("did not start")
	// ErrExited means that the process of a [Server] ended without a call of Stop.
	ErrExited = errors.New("ended by itself")
)

// ToolError describes a tool that is missing or too old, and how to get it.
type ToolError struct {
	// Tool is the name of the program: "node" or "npm".
	Tool string
	// Problem describes the problem.
	Problem string
	// Hint tells the user how to get the tool.
	Hint string
	// Err is the error of the search for the tool, or of asking for its version; nil if it is too old.
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
	// Err says how the process ended, or why the wait for it ended.
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
