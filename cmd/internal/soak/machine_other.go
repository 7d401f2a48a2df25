//go:build !linux

package main

import (
	"errors"
	"os"
	"syscall"
)

const supported = false

func now() int64                     { return 0 }
func stop(*os.Process) error         { return errors.ErrUnsupported }
func goOn(*os.Process) error         { return errors.ErrUnsupported }
func ownGroup() *syscall.SysProcAttr { return nil }
