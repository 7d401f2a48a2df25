// Package queue has the verbs of azconc queue.
package queue
