//go:build !linux

package main

import "syscall"

const (
	supported  = false
	stop, goOn = syscall.Signal(0), syscall.Signal(0)
)

func now() int64                     { return 0 }
func ownGroup() *syscall.SysProcAttr { return nil }
