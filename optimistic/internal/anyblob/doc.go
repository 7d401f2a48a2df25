// Package anyblob has what the packages blobs, appends and pages share: conditions, properties, bodies and whole writes of
// blobs of any type.
package anyblob
