// Package azgocron runs the jobs of gocron schedulers on several machines once per time at which they are due.
//
//	locker, err := azgocron.NewLocker(keys, slot.ServiceClock(container), map[string]*slot.Schedule{"report": everyFiveMinutes})
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker), gocron.WithGlobalJobOptions(locker.Watch()))
//	_, err = scheduler.NewJob(gocron.CronJob("*/5 * * * *", false), gocron.NewTask(report), gocron.WithName("report"))
//
// gocron asks its locker for a lock that is named after the job, when the clock of the machine says that the job is due. A lock
// alone is not enough: a job that takes a second is over when a machine whose clock lags by two asks for it, and that machine
// runs it again. Locker asks for a key per slot: the time at which the job was due, by the service's clock.
package azgocron

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
)

// ErrDone reports that the slot is completed: this machine is late, or another one was faster. ErrRunning reports that an earlier
// run of the job has not ended in this process. Like every error of Locker.Lock, they make gocron skip the run; an
// AfterLockError listener gets them. A run that another process is working on is once.ErrInProgress.
var (
	ErrDone    = errors.New("the slot is completed")
	ErrRunning = errors.New("an earlier run of the job has not ended")
)

// Locker is a gocron.Locker under which each slot of a job is run once, by whichever scheduler is first. It is safe for
// concurrent use by the schedulers of a process.
//
// A slot is completed when its run has ended. With Watch, a run that returned an error or panicked leaves its slot free, and a
// scheduler that is later runs it. If the process dies, the slot is free once its lease has expired, but gocron has no reason to
// ask again before the next slot: slot.Missed tells which slots nobody completed.
//
// gocron cancels nothing when a lock is lost: a job that outlives the loss of its lease may overlap with a run on another
// machine. Only the task itself can prevent that; see slot.Job, which passes it the context of the hold and the fence.
//
// Where a Locker is used without Watch, the end of a run completes its slot, whatever the run returned.
type Locker struct {
	keys      *once.Once
	clock     func(context.Context) (time.Time, error)
	schedules map[string]*slot.Schedule

	mu   sync.Mutex
	runs map[string]*run // by the name of the job, guarded by mu
}

// NewLocker returns a Locker. clock tells the time that all machines share, as slot.ServiceClock does; schedules has the times at
// which each job is due, by the name of the job: gocron does not pass them on. They have to be those of the job's definition, in
// the time zone of the scheduler. It sends no request.
func NewLocker(keys *once.Once, clock func(context.Context) (time.Time, error), schedules map[string]*slot.Schedule) (*Locker, error) {
	if keys == nil || clock == nil || len(schedules) == 0 {
		return nil, errors.New("azgocron: a Locker needs keys, a clock and the schedules of its jobs")
	}
	for name, schedule := range schedules {
		if schedule == nil || name == "" {
			return nil, fmt.Errorf("azgocron: no schedule or no name for the job %q", name)
		}
	}
	return &Locker{keys: keys, clock: clock, schedules: maps.Clone(schedules), runs: map[string]*run{}}, nil
}

// Lock begins a run of the slot that is due now. Errors: ErrDone, ErrRunning, once.ErrInProgress; a job without a schedule; those
// of slot.Schedule.Due and of once.Once.Begin. After an error nothing is held. A run that is started by hand (RunNow) belongs to
// the slot that is due. Requests: one for the time, and those of Begin, of which a completed slot costs one.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	schedule, ok := l.schedules[job]
	if !ok {
		return nil, fmt.Errorf("azgocron: the job %q has no schedule in NewLocker: set WithName to a name that has one", job)
	}
	r := &run{locker: l, job: job}
	l.mu.Lock()
	_, running := l.runs[job]
	if !running {
		l.runs[job] = r
	}
	l.mu.Unlock()
	if running {
		return nil, fmt.Errorf("azgocron: %s: %w", job, ErrRunning)
	}
	due, err := schedule.Due(ctx, l.clock, 0)
	if err == nil {
		if r.slot, err = l.keys.Begin(ctx, due.Key(job), nil); errors.Is(err, once.ErrDone) {
			err = ErrDone
		}
	}
	if err != nil {
		l.end(job)
		return nil, fmt.Errorf("azgocron: %s: %w", job, err)
	}
	return r, nil
}

func (l *Locker) end(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, job)
}

// Watch returns an option for gocron.WithGlobalJobOptions, or for single jobs, by which the Locker learns whether a run has
// succeeded. It uses the listeners BeforeJobRuns and AfterJobRuns, of which gocron keeps the last one that a job is given.
func (l *Locker) Watch() gocron.JobOption {
	listener := func(note func(*run)) func(uuid.UUID, string) {
		return func(_ uuid.UUID, job string) {
			l.mu.Lock()
			defer l.mu.Unlock()
			if r := l.runs[job]; r != nil {
				note(r)
			}
		}
	}
	return gocron.WithEventListeners(
		gocron.BeforeJobRuns(listener(func(r *run) { r.failed = true })), // until AfterJobRuns says otherwise
		gocron.AfterJobRuns(listener(func(r *run) { r.failed = false })))
}

// run is a slot that this process works on.
type run struct {
	slot   *once.Run
	locker *Locker
	job    string
	failed bool // guarded by the locker's mu
}

// Unlock completes the slot, or frees it, and releases the lock. While the service does not answer, it tries to complete the slot
// for as long as the lock is held, and for 15 s if the scheduler is shutting down: gocron then passes a context that has ended. It
// drops the error.
func (r *run) Unlock(ctx context.Context) (err error) {
	defer r.locker.end(r.job)
	r.locker.mu.Lock()
	failed := r.failed
	r.locker.mu.Unlock()
	if !failed {
		_, err = r.slot.Finish(ctx, nil)
	}
	return errors.Join(err, r.slot.Release(ctx))
}
