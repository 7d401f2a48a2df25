package azerr

import "cmp"

// Explanation explains an error code to a person.
type Explanation struct {
	Code   string
	Kind   Kind
	Reason Reason

	Means  string // what has happened
	Passes bool   // it may end without any action by the caller
	Until  string // what ends it
	Do     string // the way out
}

// Explain returns the meaning of a code, whether the cause is temporary, and what to do about it. ok is false for a
// code that is not documented. The codes of the File service have their own rows, from "Managing file locks" and "File
// service error codes"; every other code is explained by its kind.
func Explain(code string) (e Explanation, ok bool) {
	m, known := codes[code]
	if !known {
		return Explanation{}, false
	}
	e = explained[code]
	if m != byItsStatus {
		e.Kind, e.Reason = m.kind, m.reason
	}
	general := byKind[e.Kind]
	if e.Means == "" {
		e.Passes = general.Passes
	}
	e.Code = code
	e.Means, e.Until, e.Do = cmp.Or(e.Means, general.Means), cmp.Or(e.Until, general.Until), cmp.Or(e.Do, general.Do)
	return e, true
}

const (
	closes    = "the SMB client closes the file, or its handle is closed for it"
	waitClose = "wait, find out which client it is (file handles list), or close its handle (file handles close); the client then loses what it has not written"
)

// pendingDeletion has two spellings.
var pendingDeletion = Explanation{
	Means:  "an SMB client has marked the file for deletion while it is open; it is no longer listed, and not deleted yet",
	Passes: true,
	Until:  "the last handle closes, and the file is deleted (404); or the mark is removed, and the file stays",
	Do:     "wait for one of the two (file delete --wait, file wait --until gone); do not treat the file as deleted",
}

// explained has the rows of the codes about files in use.
var explained = map[string]Explanation{
	"SharingViolation": {Means: "an SMB client has the file open and does not share the access that the request needs; for an SMB client: a lease denies the access",
		Passes: true, Until: closes, Do: waitClose},
	"FileOpenBySmbClient": {Means: "an SMB client has the file or directory open, and the request needs it to be closed everywhere", Passes: true, Until: closes, Do: waitClose},
	"CannotDeleteFileOrDirectory": {Means: "the file or directory is in use by an SMB client; it can be deleted only when no client has it open, whatever access they share",
		Passes: true, Until: closes, Do: waitClose},
	"FileLockConflict": {Means: "an SMB client has locked some of the bytes", Passes: true, Until: "the client unlocks them, or closes the file, or its handle is closed for it", Do: waitClose},
	"DeletePending":    pendingDeletion,
	"SMBDeletePending": pendingDeletion,
	"ClientCacheFlushDelay": {Means: "an SMB client has unwritten data in its cache, and did not flush it in time when the service asked",
		Passes: true, Until: "the client has flushed its cache, or has lost the right to cache", Do: "send the request again after a pause; if it was a write, it may have been applied"},
	"ReadOnlyAttribute": {Means: "the file's read-only attribute is set, so it cannot be written or deleted",
		Until: "the attribute is cleared", Do: "clear the attribute (Set File Properties, or attrib -r on a mounted share), if the file is meant to be written"},
	"LeaseAlreadyPresent": {Means: "another client holds the lease", Passes: true,
		Until: "the holder releases it, or it is broken; the lease of a file does not expire, that of a share may",
		Do:    "wait (lease acquire --wait), look at the age of the holder's heartbeat (lease show), or break the lease (lease break)"},
	"LeaseIdMissing": {Means: "there is a lease, and the request does not carry its id", Passes: true,
		Until: "the holder releases it, or it is broken", Do: "pass the id (--lease-id) if it is yours; otherwise wait, or break it (lease break)"},
	"LeaseLost":                         {Means: "the lease with this id has ended", Do: "stop the work, acquire the lease again, and check what others have written since"},
	"LeaseIdMismatchWithFileOperation":  {Means: "the file is leased under another id", Do: "stop the work: the lease was broken and acquired by another client"},
	"LeaseIdMismatchWithLeaseOperation": {Means: "it is leased under another id", Do: "stop the work: the lease expired or was broken, and another client acquired it"},
	"LeaseIdMismatchWithShareOperation": {Means: "the share is leased under another id", Do: "stop the work: the lease expired or was broken, and another client acquired it"},
	"LeaseNotPresentWithFileOperation":  {Means: "the file has no lease: the one with this id was broken or released", Do: "stop the work, acquire the lease again, and check what others have written since"},
	"LeaseNotPresentWithShareOperation": {Means: "the share has no lease: the one with this id has ended", Do: "stop the work, and acquire the lease again"},
	"LeaseNotPresentWithLeaseOperation": {Means: "there is no lease", Do: "acquire one"},
	"ShareBeingDeleted":                 {Means: "the share was deleted, and its name is not available yet", Passes: true, Until: "the service has removed it, which takes 30 s or more", Do: "wait, or use another name"},
	"DeleteShareWhenSnapshotLeased":     {Means: "a snapshot of the share is leased", Passes: true, Until: "that lease is released or broken", Do: "find the snapshot that is leased, and wait or break its lease"},
	"DirectoryNotEmpty":                 {Means: "the directory is not empty; it may contain a file whose deletion is pending, which is not listed", Until: "it is empty", Do: "delete its content first; if it looks empty, wait"},
	"HandleLimitExceeded":               {Means: "too many handles are open on the file or directory", Passes: true, Until: "SMB clients close some", Do: "list the clients that have them open (file handles list)"},
	"ResourceNotFound":                  {Means: "there is no such file or directory", Until: "it is created", Do: "check the spelling; a deletion that was pending may have completed"},
	"ParentNotFound":                    {Means: "the parent directory does not exist", Until: "it is created", Do: "create the directory first"},
	"ShareNotFound":                     {Means: "there is no such share", Until: "it is created", Do: "check the spelling and the account"},
}

// byKind has the rows of all other codes.
var byKind = map[Kind]Explanation{
	Other:        {Means: "its meaning depends on the status", Until: "unknown", Do: "read the message"},
	Conflict:     {Means: "the resource is not in the state that the request requires: another writer was faster", Until: "it is read again", Do: "read it again, and decide again"},
	Held:         {Means: "another client holds it", Passes: true, Until: "the holder releases it", Do: "wait"},
	Lost:         {Means: "the lease or pop receipt in the request is no longer valid", Until: "it is acquired or received again", Do: "stop the work, and start again"},
	Unknown:      {Means: "the service could not say whether the request was applied", Passes: true, Until: "the fault is over", Do: "check whether it was applied, or send it again if that is harmless"},
	Throttled:    {Means: "the service is busy, or in a state that passes", Passes: true, Until: "a while later", Do: "send it again after a pause"},
	NotFound:     {Means: "there is no such resource", Until: "it is created", Do: "check the spelling"},
	Unauthorised: {Means: "the caller may not do this", Until: "the right is granted", Do: "check the role, the key or the signature"},
	Permanent:    {Means: "the request is refused, and will be refused again", Until: "the cause is removed", Do: "do not send it again"},
	BadInput:     {Means: "the request itself is wrong", Until: "it is corrected", Do: "correct the request"},
}
