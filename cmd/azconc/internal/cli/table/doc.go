// Package table has the verbs of azconc table.
package table
