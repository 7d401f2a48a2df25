//go:build !race

package idempotent

import ()

const underRace = false
