package protocol

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// try is the context of a single try. It ends when its parent ends or when its time is up; then its Err is
// context.DeadlineExceeded. Unlike with context.WithTimeout, the time can grow during the try, because the size of a
// response is not known in advance.
type try struct {
	context.Context
	end  context.CancelCauseFunc
	rate int64

	mu    sync.Mutex // guards what follows
	until time.Time
	timer *time.Timer // nil if the time is not bounded
}

type tryKey struct{}

// newTry returns a context that ends after timeout, unless that is negative.
func newTry(parent context.Context, timeout time.Duration, rate int64) *try {
	t := &try{rate: rate}
	t.Context, t.end = context.WithCancelCause(parent)
	if timeout >= 0 {
		t.until = time.Now().Add(timeout)
		t.timer = time.AfterFunc(timeout, func() { t.end(context.DeadlineExceeded) })
	}
	return t
}

// cancel ends the try. It has to be called.
func (t *try) cancel() {
	if t.timer != nil {
		t.timer.Stop()
	}
	t.end(nil)
}

// Err implements context.Context.
func (t *try) Err() error {
	err := t.Context.Err()
	if err != nil && errors.Is(context.Cause(t.Context), context.DeadlineExceeded) {
		return context.DeadlineExceeded
	}
	return err
}

// Value implements context.Context.
func (t *try) Value(key any) any {
	if key == (tryKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// AllowFor extends the time of the try that runs in ctx by the time that a transfer of size bytes takes at the slowest
// rate. Without a try in ctx it does nothing. It is safe for concurrent use.
func AllowFor(ctx context.Context, size int64) {
	t, ok := ctx.Value(tryKey{}).(*try)
	if !ok || t.timer == nil || t.rate <= 0 || size <= 0 || t.Err() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = t.until.Add(time.Duration(float64(size) / float64(t.rate) * float64(time.Second)))
	t.timer.Reset(time.Until(t.until))
}

// timedBody is the body of a response. Every byte that arrives extends the time of its try.
type timedBody struct {
	ctx  context.Context
	body io.Reader
}

// Timed returns a reader of body that extends the time of the try in ctx with every byte.
func Timed(ctx context.Context, body io.Reader) io.Reader { return timedBody{ctx, body} }

func (t timedBody) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	AllowFor(t.ctx, int64(n))
	return n, err
}
