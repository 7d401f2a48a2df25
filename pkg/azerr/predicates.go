package azerr

var absences = map[string]string{"ContainerNotFound": "container", "TableNotFound": "table", "QueueNotFound": "queue", "ShareNotFound": "share"}

// NoBlob reports whether a blob does not exist. Its container may exist.
func NoBlob(err error) bool { return Has(err, "BlobNotFound") }

// NeedsLeaseID reports whether a request was refused because the resource is leased and the request has no lease id.
func NeedsLeaseID(err error) bool { return Has(err, "LeaseIdMissing") }

// NotLeased reports whether a lease operation was refused because there is no lease.
func NotLeased(err error) bool { return Has(err, "LeaseNotPresentWithLeaseOperation") }

// HasSnapshots reports whether a blob was not deleted because it has snapshots.
func HasSnapshots(err error) bool { return Has(err, "SnapshotsPresent") }

// StaleReceipt reports whether a pop receipt is no longer valid: the message was received again, or is gone. The service
// answers 404 MessageNotFound, emulators 400 PopReceiptMismatch. Accounts also answer 400 InvalidQueryParameterValue to stale receipts
// (recorded with real accounts), as it does to one that was mistyped: only the caller knows which it is.
func StaleReceipt(err error) bool { return Has(err, "MessageNotFound", "PopReceiptMismatch") }

// Absent returns the kind of resource that does not exist, if the request was about something in it: "container",
// "table", "queue" or "share". For any other error it returns "".
func Absent(err error) string { return absences[Classify(err).Code] }
