package tf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/cmd/azconc/internal/cli/fail"
	"github.com/azconc/azconc/cmd/azconc/internal/cli/ref"
	"github.com/azconc/azconc/cmd/azconc/internal/tfstate"
)

// errored is the file in which Terraform and OpenTofu leave a state that could not be stored.
const errored = "errored.tfstate"

// readSuffix names the file beside it that has the state which the run had read.
const readSuffix = ".read"

// keepRead keeps what a run had read beside the state that it has left, for tf push. It returns the file of that state, which is empty
// if the run has left none.
func keepRead(dir string, began time.Time, read []byte) (left string, err error) {
	left = filepath.Join(dir, errored)
	if info, err := os.Stat(left); err != nil || info.ModTime().Before(began.Truncate(time.Second)) {
		return "", nil
	}
	return left, os.WriteFile(left+readSuffix, read, 0o600)
}

// moved reports whether the state is another one than the run had read.
func moved(ctx context.Context, client *container.Client, name string, read []byte) (bool, error) {
	now, err := tfstate.Read(ctx, client, name)
	return err == nil && !bytes.Equal(now, read), err
}

// unstoredError reports that the command has left a state that was not stored.
type unstoredError struct {
	cause error // why the lock was lost; nil if a write was refused for another reason
	code  int   // of the command, which counts if the lock was not lost
	on    ref.Blob
	file  string
	moved bool
	doubt error // why moved is not known
}

func (e *unstoredError) Error() string {
	text := "the state that the command has left in " + e.file + " is not stored"
	if e.cause != nil {
		text += fmt.Sprintf(": the lock was lost while it ran: %v", e.cause)
	}
	return text
}
func (e *unstoredError) Unwrap() error { return e.cause }
func (e *unstoredError) Verdict() fail.Verdict {
	if e.cause == nil {
		return fail.Verdict{Code: e.code, Outcome: "command_failed"}
	}
	return fail.Verdict{Code: 76, Outcome: "lost"}
}

// hint says whether the state can be stored as it is.
func (e *unstoredError) hint() string {
	push := "azconc tf push " + e.on.String()
	if e.file != errored {
		push += " " + e.file
	}
	switch {
	case e.doubt != nil:
		return push + " stores it if the state is still the one that the run had read, and compares the two otherwise"
	case e.moved:
		return "another run has changed the state since, and terraform state push would erase what that run has created; " + push + " shows which resources differ"
	}
	return "the state is still the one that the run had read: " + push + " stores it"
}

// errNothingRead means that what the run had read is not there to compare with.
var errNothingRead = errors.New("what the run had read is not known")

// readPair reads a state that was left, and what its run had read.
func readPair(file, read string) (state, base []byte, err error) {
	if state, err = os.ReadFile(file); err != nil {
		return nil, nil, err
	}
	if base, err = os.ReadFile(read); errors.Is(err, os.ErrNotExist) {
		return nil, nil, fail.WithHint(fmt.Errorf("%w: there is no %s", errNothingRead, read),
			"azconc tf run keeps it; --read names another file, such as a version of the state that azconc blob get has read")
	}
	return state, base, err
}
