//go:build race

package idempotent

const underRace = true
