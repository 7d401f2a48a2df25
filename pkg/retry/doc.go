// Package retry waits between tries and decides when to give up.
//
// A Budget bounds a loop by tries and by time. Budget.Start returns a Loop, whose Next is called before every try but
// the first:
//
//	loop := retry.Budget{Attempts: 12, Elapsed: 30 * time.Second, Backoff: retry.Backoff{Base: 20 * time.Millisecond, Cap: 2 * time.Second}}.Start()
//	for {
//		err := try(ctx)
//		if err == nil {
//			return nil
//		}
//		if waitErr := loop.Next(ctx, 0); waitErr != nil {
//			return errors.Join(err, waitErr)
//		}
//	}
//
// Waits are full jitter: uniform between zero and a bound that doubles. If clients waited for the bound itself, those
// that collided once would collide again.
//
// Nothing here sends a request, starts a goroutine or keeps state between loops.
package retry
