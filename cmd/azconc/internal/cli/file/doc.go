// Package file has the verbs of azconc file and azconc share.
package file
