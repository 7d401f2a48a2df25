// Package root puts the groups of verbs together and runs a command line.
package root
