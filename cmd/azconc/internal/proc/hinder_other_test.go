//go:build unix && !linux

package proc

func hinder() {}
