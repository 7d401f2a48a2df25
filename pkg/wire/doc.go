// Package wire sends requests through the SDK's clients. It is the only place that turns the SDK's own retries off: they
// hide which try was answered, they outlast a short lease or a pop receipt, and they turn a lost response into a wrong
// one, such as the conflict that a write meets with its own first try.
//
// Wire.Once sends a request once. Wire.Send sends it until its fate is known or its budget is spent:
//
//	sent, err := w.Send(ctx, "release", wire.Again{Try: 3 * time.Second, Budget: budget}, func(ctx context.Context) error {
//		_, err := client.ReleaseLease(ctx, nil)
//		return err
//	})
//
// By default Send repeats a request after every error that passes by itself, whether or not that try may have been
// applied. A request that must not be repeated blindly has a Judge, which looks at the resource and decides.
//
// Wire.Paced holds requests to the rate at which the service carries them out, together with all others of this process that
// go to the same partition. It has an effect only after the service has refused requests because there were too many. A service
// that refuses everything shows no rate: after such an outage the rate is at once what it was before.
//
// The package is no API: it is here because several packages of this module share it, and may change in any release.
//
// A response that says success but did not come from the service is an *azerr.ForeignError, whose outcome is unknown.
package wire
