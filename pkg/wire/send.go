package wire

import (
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/retry"
)

// Again says how often, for how long and in which cases a request is sent again. The zero value sends it once.
type Again struct {
	Try    time.Duration // bounds one try; zero or negative means no bound
	Budget retry.Budget  // bounds all of them, and sets the waits

	// Judge decides how to continue after an error, and may send requests to find out. The error that it returns is the
	// result of Send if there is no next try: nil if the request is known to have been applied. Its Retry-After bounds
	// the wait for the next try. Judge is not called after an error without information, such as a lost connection, if
	// ctx has ended. Defaults to Failed.Usual.
	Judge func(ctx context.Context, f Failed) (Verdict, error)

	// Note is called after each try that failed, whatever follows. Defaults to none.
	Note func(ctx context.Context, f Failed)

	// Before is called before each try. If it returns true or an error, Send returns that error without sending: a look at
	// the resource has made the try unnecessary, or has shown that it must not be made. Defaults to none.
	Before func(ctx context.Context, s Sent) (done bool, err error)

	// Pause waits before the next try. It is called with the service's Retry-After, and returns an error if there is no
	// next try. Defaults to loop.Next.
	Pause func(ctx context.Context, loop *retry.Loop, retryAfter time.Duration) error
}

// Failed is a try that returned an error.
type Failed struct {
	Err     error
	Outcome azerr.Outcome // of Err

	// Ambiguous reports that this try or an earlier one may have been applied. A refusal then proves little: the request's
	// own first try may have caused it.
	Ambiguous bool
}

// Verdict says what follows a try that returned an error.
type Verdict uint8

// The verdicts.
const (
	Final  Verdict = iota // there is no next try
	Later                 // the next try follows after a wait, if the budget allows it
	AtOnce                // the next try follows at once, and does not count against the budget
)

// Usual is the verdict on a request that may be repeated: Later if the error is temporary, and Final otherwise.
func (f Failed) Usual() (Verdict, error) {
	if f.Passes() {
		return Later, f.Err
	}
	return Final, f.Err
}

// Passes reports whether the error is temporary, so that the same request may succeed later.
func (f Failed) Passes() bool { return f.Outcome.Transient() || f.Outcome.Ambiguous() }

// Sent describes the tries of a request.
type Sent struct {
	First     time.Time // when the first try began, by the local clock; zero if there was none
	Tries     int
	Ambiguous int   // tries after which it was open whether the request was applied
	Last      error // the error of the last try; nil if it succeeded
}

// Send sends a request, and repeats it as a specifies. It sends nothing if ctx has already ended. The error is
//
//   - the cause of ctx, as Ended describes it, if ctx ended before a try succeeded or Judge decided;
//   - the last one of Judge or Before otherwise. Without a Judge, that is the error of the last try.
//
// Whatever the error, the request may have been applied if Sent.Ambiguous is not 0, unless Judge knows better.
func (w Wire) Send(ctx context.Context, op string, a Again, send func(ctx context.Context) error) (Sent, error) {
	var s Sent
	var failure error // the last one that is not the end of ctx
	loop := a.Budget.Start()
	for {
		if ctx.Err() != nil {
			return s, Ended(ctx, s.Tries, s.First, failure)
		}
		if a.Before != nil {
			if done, err := a.Before(ctx, s); done || err != nil {
				return s, err
			}
		}
		if s.Tries++; s.Tries == 1 {
			s.First = time.Now()
		}
		if s.Last = w.Once(ctx, op, a.Try, send); s.Last == nil {
			return s, nil
		}
		f := Failed{Err: s.Last, Outcome: azerr.Classify(s.Last)}
		if f.Outcome.Ambiguous() {
			s.Ambiguous++
		}
		f.Ambiguous = s.Ambiguous > 0
		if a.Note != nil {
			a.Note(ctx, f)
		}
		if ctx.Err() == nil || f.Outcome.Status != 0 {
			failure = s.Last
		}
		if f.Passes() && ctx.Err() != nil {
			return s, Ended(ctx, s.Tries, s.First, failure)
		}
		v, err := a.judge(ctx, f)
		switch v {
		case Final:
			return s, err
		case AtOnce:
			continue
		}
		if a.pause(ctx, loop, azerr.Classify(err).RetryAfter) != nil {
			if ctx.Err() != nil {
				return s, Ended(ctx, s.Tries, s.First, failure)
			}
			return s, givenUp(err, s.Tries, s.First)
		}
	}
}

// Ended returns the cause of ctx, which has ended after some tries. Its text says what the last of them failed with, which is why
// the time did not suffice. errors.As does not find that failure: it decides nothing.
func Ended(ctx context.Context, tries int, began time.Time, last error) error {
	cause := context.Cause(ctx)
	if last == nil {
		return cause
	}
	return fmt.Errorf("%w; the last failure: %s", cause, azerr.Summary(givenUp(last, tries, began)))
}

// givenUp adds to an error how often a request was tried.
func givenUp(err error, tries int, began time.Time) error {
	if err == nil || tries < 2 {
		return err
	}
	return fmt.Errorf("%w (the last of %d tries in %v)", err, tries, time.Since(began).Round(100*time.Millisecond))
}

func (a Again) judge(ctx context.Context, f Failed) (Verdict, error) {
	if a.Judge != nil {
		return a.Judge(ctx, f)
	}
	return f.Usual()
}

func (a Again) pause(ctx context.Context, loop *retry.Loop, retryAfter time.Duration) error {
	if a.Pause != nil {
		return a.Pause(ctx, loop, retryAfter)
	}
	return loop.Next(ctx, retryAfter)
}
