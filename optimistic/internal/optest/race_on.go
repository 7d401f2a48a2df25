//go:build race

package optest

// raceScale shrinks the long properties under the race detector, which makes each request some ten times as dear.
const raceScale = 20
