//go:build !race

package optest

const RaceScale = 1
