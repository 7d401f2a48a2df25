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
