package pessimistic_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pessimistic/files"
	"github.com/azconc/azconc/pkg/fence"
)

// TestEachTypedErrorIsItsSentinel: errors.Is with the sentinel and errors.As with the type say the same, wrapped or not, and
// the cause stays in the chain.
func TestEachTypedErrorIsItsSentinel(t *testing.T) {
	cause := errors.New("412")
	for _, tt := range []struct {
		err  error
		is   []error
		from error // the cause that it was given
	}{
		{&pessimistic.HeldError{Err: cause}, []error{pessimistic.ErrHeld}, cause},
		{&pessimistic.HeldError{}, []error{pessimistic.ErrHeld}, nil},
		{&pessimistic.LostError{Err: cause}, []error{pessimistic.ErrLost}, cause},
		{&pessimistic.LostError{}, []error{pessimistic.ErrLost}, nil},
		{&pessimistic.UnknownError{Err: cause}, []error{pessimistic.ErrOutcomeUnknown}, cause},
		{&pessimistic.ContentError{}, []error{pessimistic.ErrContent}, nil},
		{&files.InUseError{Err: cause}, []error{files.ErrInUse, pessimistic.ErrHeld}, cause},
		{&files.TornError{Err: cause}, []error{files.ErrTorn}, cause},
		{&fence.Error{}, []error{fence.ErrFenced}, nil},
	} {
		wrapped := fmt.Errorf("nightly: %w", tt.err)
		for _, sentinel := range tt.is {
			if !errors.Is(wrapped, sentinel) {
				t.Errorf("%T is not %v", tt.err, sentinel)
			}
		}
		if tt.from != nil && !errors.Is(wrapped, tt.from) {
			t.Errorf("%T has lost its cause", tt.err)
		}
		if got := reflect.New(reflect.TypeOf(tt.err)); !errors.As(wrapped, got.Interface()) || got.Elem().Interface() != tt.err {
			t.Errorf("%T is not found in the chain", tt.err)
		}
	}
}
