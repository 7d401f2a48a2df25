// Package fileservice is the File service of an account in memory: shares, directories, files, leases and handles of SMB clients.
//
// Route carries out one request, at once. Nothing here locks: package aztest calls a service with its lock held.
package fileservice
