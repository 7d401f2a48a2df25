//go:build race

package azwatermill_test

const raceEnabled = true
