// Package retry waits between tries and knows when to give up.
//
// A Budget bounds a loop by tries and by time; a Loop, started from it, is asked before every try but the first:
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
// Waits are full jitter: uniform between zero and a bound that doubles. Waiting the bound itself would keep clients that
// collided once in step, and colliding.
//
// Nothing here sends a request, starts a goroutine or keeps state between loops.
package retry
