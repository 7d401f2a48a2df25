package conformance

import (
	"context"
	"testing"
)

// T is the part of a test that the suite needs. [Test] makes one of a *testing.T; a program that tests a real account
// has its own.
type T interface {
	Helper()
	Context() context.Context
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)

	// Run runs f as a named part.
	Run(name string, f func(t T))

	// Answered is called with every result, right or wrong.
	Answered(a Answer)
}

// Answer is a request, the expected response, and the actual one: "ok", or status and code.
type Answer struct {
	Question, Expected, Answered string

	// Known is the reason why the service under test differs from the real one here, "" if it does not. Expected is
	// then its own response.
	Known string
}

// Test makes a T of t. An unexpected response is an error.
func Test(t *testing.T) T { return test{t} }

type test struct{ *testing.T }

func (t test) Run(name string, f func(T)) { t.T.Run(name, func(t *testing.T) { f(test{t}) }) }

func (t test) Answered(a Answer) {
	t.Helper()
	if a.Answered != a.Expected {
		t.Errorf("%s: %q, want %q (%s)", a.Question, a.Answered, a.Expected, a.Known)
	}
}
