//go:build !race

package optest

// RaceScale divides the sizes of the long property tests.
const RaceScale = 1
