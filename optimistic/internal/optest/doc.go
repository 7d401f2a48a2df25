// Package optest has what the tests of package optimistic and of the packages below it share: values to count in, a
// service without faults, history recorders, and queues.
package optest
