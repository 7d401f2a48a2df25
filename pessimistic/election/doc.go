// Package election elects one leader at a time among many processes. The lead is a named lock of a pessimistic.Locker,
// with its promises and limits, and the term is its fence, which grows from leader to leader.
package election
