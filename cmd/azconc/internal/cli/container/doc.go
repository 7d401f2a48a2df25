// Package container has the verbs of azconc container, and those of metadata and access policies, which queues share.
package container
