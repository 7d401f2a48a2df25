package conformance

import (
	"context"
	"testing"
)

// T is the part of a test that the suite needs. [Test] makes one of a *testing.T; the program for real accounts has its own.
type T interface {
	Helper()
	Context() context.Context
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)

	// Run runs f as a part with a name of its own.
	Run(name string, f func(t T))

	// Answered is called with every answer of the service to a question of the suite, right or wrong.
	Answered(a Answer)
}

// Answer is a question, the answer that the suite expects, and the answer of the service: "ok", or status and code.
type Answer struct {
	Question, Expected, Answered string

	// Known is why the service under test is known to differ from the real one here, "" where it does not. Expected is
	// then its own answer.
	Known string
}

// Test makes a T of t. An answer that is not the expected one is an error.
func Test(t *testing.T) T { return test{t} }

type test struct{ *testing.T }

func (t test) Run(name string, f func(T)) { t.T.Run(name, func(t *testing.T) { f(test{t}) }) }

func (t test) Answered(a Answer) {
	t.Helper()
	if a.Answered != a.Expected {
		t.Errorf("%s: %q, want %q (%s)", a.Question, a.Answered, a.Expected, a.Known)
	}
}
