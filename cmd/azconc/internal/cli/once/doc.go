// Package once has the verbs of azconc once.
package once
