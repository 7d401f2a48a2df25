// Package lock has azconc lock, semaphore and elect: holding something while a command runs, and ending the command before it is lost.
package lock
