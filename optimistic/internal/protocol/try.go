package protocol

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync"
	"time"
)

// try is the context of a single try. It ends when its parent ends or when its time is up; then its Err is
// context.DeadlineExceeded. Unlike with context.WithTimeout, the time can grow during the try, because the size of a
// response is not known in advance.
type try struct {
	context.Context // the parent
	rate            int64
	done            chan struct{}
	release         func() bool // from the parent

	mu    sync.Mutex // guards what follows
	err   error
	until time.Time
	timer *time.Timer
	after []*func() // functions to run at the end; nil for one that is no longer wanted
}

type tryKey struct{}

// newTry returns a context that ends after timeout, unless that is negative, and a function that ends it.
func newTry(parent context.Context, timeout time.Duration, rate int64) *try {
	t := &try{Context: parent, rate: rate, done: make(chan struct{})}
	over := t.over // one function for both, because each takes an allocation
	t.release = context.AfterFunc(parent, over)
	if timeout >= 0 {
		t.mu.Lock()
		t.until = time.Now().Add(timeout)
		t.timer = time.AfterFunc(timeout, over)
		t.mu.Unlock()
	}
	return t
}

// over ends the try because its parent has ended, or else because its time is up.
func (t *try) over() { t.end(cmp.Or(t.Context.Err(), context.DeadlineExceeded)) }

// cancel ends the try. It has to be called.
func (t *try) cancel() {
	t.release()
	t.end(context.Canceled)
}

func (t *try) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	t.err = err
	if t.timer != nil {
		t.timer.Stop()
	}
	close(t.done)
	for _, f := range t.after {
		if f != nil {
			go (*f)()
		}
	}
	t.after = nil
}

// Done implements context.Context.
func (t *try) Done() <-chan struct{} { return t.done }

// Err implements context.Context.
func (t *try) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Value implements context.Context.
func (t *try) Value(key any) any {
	if key == (tryKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// AfterFunc lets package context derive contexts from this one without a goroutine each.
func (t *try) AfterFunc(f func()) (stop func() bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		go f()
		return func() bool { return false }
	}
	i := slices.Index(t.after, nil)
	if i < 0 {
		i, t.after = len(t.after), append(t.after, nil)
	}
	t.after[i] = &f
	return func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		if i >= len(t.after) || t.after[i] != &f {
			return false
		}
		t.after[i] = nil
		return true
	}
}

// AllowFor extends the time of the try that runs in ctx by the time that a transfer of size bytes takes at the slowest
// rate. Without a try in ctx it does nothing. It is safe for concurrent use.
func AllowFor(ctx context.Context, size int64) {
	t, ok := ctx.Value(tryKey{}).(*try)
	if !ok || t.rate <= 0 || size <= 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || t.timer == nil {
		return
	}
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
