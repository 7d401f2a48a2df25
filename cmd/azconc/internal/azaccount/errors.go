package azaccount

import "fmt"

// Error is a setting that cannot be used. Nothing has been sent. Neither text contains a secret.
type Error struct {
	Message string // names the flag, the variable or the field
	Hint    string // how to fix it, if that does not follow from the message
}

func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) error { return &Error{Message: fmt.Sprintf(format, args...)} }

func hinted(hint, format string, args ...any) error {
	return &Error{Message: fmt.Sprintf(format, args...), Hint: hint}
}
