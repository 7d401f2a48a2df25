//go:build race

package optest

// RaceScale divides the sizes of the long property tests. Under the race detector a request takes about ten times as
// long.
const RaceScale = 20
