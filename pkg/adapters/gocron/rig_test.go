package azgocron

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/azconc/azconc/idempotent/once"
	"github.com/azconc/azconc/idempotent/slot"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/aztest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const everyFive = "*/5 * * * *"

// skewed is the clock of a machine that is wrong.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (c skewed) Now() time.Time                   { return c.Clock.Now().Add(c.by) }
func (c skewed) Since(at time.Time) time.Duration { return c.Now().Sub(at) }
func (c skewed) Until(at time.Time) time.Duration { return at.Sub(c.Now()) }
func skew(by time.Duration) gocron.SchedulerOption {
	return gocron.WithClock(skewed{clockwork.NewRealClock(), by})
}
func lost(service *aztest.Service, share float64) {
	service.SetFaults(aztest.Fault{Kind: aztest.LoseAnswer, Probability: share})
}
func inUTC() gocron.SchedulerOption                   { return gocron.WithLocation(time.UTC) }
func quiet() gocron.SchedulerOption                   { return gocron.WithStopTimeout(time.Minute) }
func cron(expression string) gocron.JobDefinition     { return gocron.CronJob(expression, false) }
func named(name string) gocron.JobOption              { return gocron.WithName(name) }
func task(fn func(context.Context) error) gocron.Task { return gocron.NewTask(fn) }

func newService(t testing.TB) *aztest.Service {
	t.Helper()
	s := aztest.New(nil)
	if _, err := s.Container("locks").Create(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// newLocks returns the locks of a process.
func newLocks(t testing.TB, s *aztest.Service, owner string) *pessimistic.Locker {
	t.Helper()
	locks, err := pessimistic.NewLocker(s.Container("locks"), &pessimistic.LockerOptions{Owner: owner, Duration: 15 * time.Second, QuickFirst: true})
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

// newLocker returns the Locker of a process whose job "report" is due every five minutes.
func newLocker(t testing.TB, s *aztest.Service, owner string) *Locker {
	t.Helper()
	keys, err := once.New(newLocks(t, s, owner), s.Table("results"), nil)
	if err != nil {
		t.Fatal(err)
	}
	due, err := slot.Parse(everyFive, "")
	if err != nil {
		t.Fatal(err)
	}
	locker, err := NewLocker(keys, slot.ServiceClock(s.Container("locks")), map[string]*slot.Schedule{"report": due})
	if err != nil {
		t.Fatal(err)
	}
	return locker
}

// schedule starts a scheduler with the job "report".
func schedule(t testing.TB, report func(context.Context) error, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(append(opts, inUTC(), quiet())...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.NewJob(cron(everyFive), task(report), named("report")); err != nil {
		t.Fatal(err)
	}
	s.Start()
	return s
}
