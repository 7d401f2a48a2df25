package fail

import (
	"errors"
	"testing"

	"github.com/azconc/azconc/pkg/azerr"
)

// noToken is an error that the SDK marks as one of credentials.
type noToken struct{}

func (noToken) Error() string { return "the tenant is unknown" }
func (noToken) NonRetriable() {}

// TestASignInThatFailsIsExplainedOnce: the library's error has an explanation of its own.
func TestASignInThatFailsIsExplainedOnce(t *testing.T) {
	err := azerr.Op("read", "jobs/a", noToken{})
	v := Judge(err)
	message, hint := Message(err, v, "blob get", "jobs/a"), Hint(err, v, "blob get", "jobs/a")
	if v.Code != ExitUnauthorised || message != "not authorised: sign-in failed: read jobs/a: the tenant is unknown" ||
		hint != "sign in with az login, or give a key or a SAS: see azconc help environment" {
		t.Errorf("exit %d, %q, hint %q", v.Code, message, hint)
	}
}

// TestAnErrorKeepsItsSemicolons: the way out is cut from the message alone, where the hint says it.
func TestAnErrorKeepsItsSemicolons(t *testing.T) {
	err := errors.New("first; second")
	if got := Message(err, Judge(err), "blob copy", "jobs/a"); got != "first; second" {
		t.Errorf("message = %q", got)
	}
}
