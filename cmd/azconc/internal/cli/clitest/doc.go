// Package clitest tests how verbs read their command lines, up to the options that they arrive at.
package clitest
