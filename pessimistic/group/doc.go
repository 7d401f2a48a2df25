// Package group shares the parts of a job among members that come and go: tenants, prefixes, queues, shards of an index. Each part has
// one member at a time, and each member about as many parts as the others.
//
//	g, err := group.New(locker, "ingest", 16, nil)
//	err = g.Run(ctx, func(ctx context.Context, part int, h *pessimistic.Hold) error {
//		return work(ctx, part, h.Fence()) // ctx ends when the part is to go to another member, or is lost
//	})
//
// # Authority
//
// A part is a named lock of a pessimistic.Locker, "ingest/0" to "ingest/15", and its lease alone decides who works on it: every promise
// and limit of a Locker holds for each part. Who should have a part is a hint. Nothing is taken from a member that lives.
//
// # How parts move
//
// A member holds the lock "ingest/member/<id>" as long as it takes part, so that those without a part are counted. One List Blobs shows
// who there is and who has what. Of N parts and M members, N mod M members should have ⌊N/M⌋+1 parts and the others ⌊N/M⌋: those that
// already have more than ⌊N/M⌋ before the others, and the eldest first. Since all members order each other in the same way, they agree
// without a word. A member with too few parts takes free ones, and each member begins at another number. A member with too many lets
// its youngest go:
//
//	           Lock, without waiting             too many: ErrMoved            returned, or Drain has passed
//	free ─────────────────────────▶ worked on ─────────────────────▶ draining ─────────────────────────▶ free
//	                                    │                                                                  ▲
//	                                    └─────────── the lease was lost, or its member has died ───────────┘
//
// A member looks every second while it has too few parts or too many, and otherwise every 4.5 to 6 s, so that members do not look
// together. So a part that a living member has released is worked on again within 7 s: 6 s until the next look, and the requests to
// take it. One whose member has died waits until its lease has run out, besides.
//
// # Failures
//
// A member whose lease is lost, because it was cut off, loses its parts one by one, each in time, and takes part again as soon as the
// service answers. A part that another process holds, with azconc lock run for example, is left alone. If members look at different
// moments, a part may move once more than necessary; it is never worked on twice.
//
// Work that returns is begun again while the part is held: at once is never, see Options.Pause. A job whose parts are finished one day
// is not a group: package idempotent/once, with a key for each part, remembers what is done.
package group
