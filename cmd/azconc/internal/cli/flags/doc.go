// Package flags has the flags that several commands share, and the rules that hold for every flag.
package flags
