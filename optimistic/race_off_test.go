//go:build !race

package optimistic

const raceScale = 1
