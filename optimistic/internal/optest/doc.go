// Package optest has the helpers that the tests of package optimistic and of the packages below it share: values to
// count in, a service without faults, history recorders, and queues.
package optest
