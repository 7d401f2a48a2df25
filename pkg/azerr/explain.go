package azerr

import "cmp"

// Explanation is what a person needs to know about an error code.
type Explanation struct {
	Code   string
	Kind   Kind
	Reason Reason

	Means  string // what has happened
	Passes bool   // it may end without the caller doing anything about it
	Until  string // what ends it
	Do     string // the way out
}

// Explain tells what a code means, whether that passes, and what to do, or ok false for a code that no service
// documents. The codes of the File service have rows of their own, from "Managing file locks" and "File service error
// codes"; every other code is explained by its kind.
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
	waitClose = "wait, look who it is (file handles list), or take the handle away (file handles close), which costs the client what it has not written"
)

// pendingDeletion has two names on the wire.
var pendingDeletion = Explanation{
	Means:  "an SMB client has marked the file for deletion while it is open; it is not listed any more, and not gone yet",
	Passes: true,
	Until:  "the last handle closes, and then it is gone (404); or the mark is taken back, and then it is as before",
	Do:     "wait, and see which of the two it was (file delete --wait, file wait --until gone); do not take it for deleted",
}

// explained has the codes that are about files in use.
var explained = map[string]Explanation{
	"SharingViolation": {Means: "an SMB client has the file open and does not share the access that the request needs; or, of an SMB client, a lease is in its way",
		Passes: true, Until: closes, Do: waitClose},
	"FileOpenBySmbClient": {Means: "an SMB client has the file or directory open, and the request needs that nobody has", Passes: true, Until: closes, Do: waitClose},
	"CannotDeleteFileOrDirectory": {Means: "the file or directory is in use by an SMB client, so it cannot be deleted: that needs that nobody has it open, whatever is shared",
		Passes: true, Until: closes, Do: waitClose},
	"FileLockConflict": {Means: "an SMB client has locked some of the bytes", Passes: true, Until: "the client unlocks them, or closes the file, or its handle is closed for it", Do: waitClose},
	"DeletePending":    pendingDeletion,
	"SMBDeletePending": pendingDeletion,
	"ClientCacheFlushDelay": {Means: "an SMB client holds what it has written in its cache, was asked for it, and has not answered in time",
		Passes: true, Until: "the client has flushed, or has lost its right to cache", Do: "send it again after a pause; a write may have been carried out"},
	"ReadOnlyAttribute": {Means: "the file's read-only attribute is set, which forbids to write and to delete it",
		Until: "somebody clears the attribute", Do: "clear the attribute (Set File Properties, or attrib -r on a mounted share), if the file is meant to be written"},
	"LeaseAlreadyPresent": {Means: "somebody else holds the lease", Passes: true,
		Until: "the holder releases it, or somebody breaks it; a file's lease is infinite, a share's may run out",
		Do:    "wait (lease acquire --wait), look how long the holder has been silent (lease show), or break it (lease break)"},
	"LeaseIdMissing": {Means: "there is a lease, and the request does not carry its id", Passes: true,
		Until: "the holder releases it, or somebody breaks it", Do: "pass the id (--lease-id) if it is yours; otherwise wait, or break it (lease break)"},
	"LeaseLost":                         {Means: "the lease of this id is over", Do: "stop the work, acquire again, and look at what was written meanwhile"},
	"LeaseIdMismatchWithFileOperation":  {Means: "another holds the lease of the file than the id given", Do: "stop the work: somebody broke the lease, and acquired it"},
	"LeaseIdMismatchWithLeaseOperation": {Means: "another holds the lease than the id given", Do: "stop the work: somebody broke the lease or it ran out, and was acquired again"},
	"LeaseIdMismatchWithShareOperation": {Means: "another holds the lease of the share than the id given", Do: "stop the work: it ran out or was broken, and was acquired again"},
	"LeaseNotPresentWithFileOperation":  {Means: "the file has no lease, so the id given is of one that was broken or released", Do: "stop the work, acquire again, and look at what was written meanwhile"},
	"LeaseNotPresentWithShareOperation": {Means: "the share has no lease, so the id given is of one that is over", Do: "stop the work, and acquire again"},
	"LeaseNotPresentWithLeaseOperation": {Means: "there is no lease", Do: "acquire one"},
	"ShareBeingDeleted":                 {Means: "the share was deleted, and its name is not free yet", Passes: true, Until: "the service has removed it, which takes 30 s and more", Do: "wait, or take another name"},
	"DeleteShareWhenSnapshotLeased":     {Means: "a snapshot of the share is leased", Passes: true, Until: "that lease is released or broken", Do: "find the snapshot that is leased, and wait or break its lease"},
	"DirectoryNotEmpty":                 {Means: "the directory has something in it, maybe a file whose deletion is pending, which is not listed", Until: "it is empty", Do: "empty it first; if it looks empty, wait"},
	"HandleLimitExceeded":               {Means: "too many handles are open on the file or directory", Passes: true, Until: "SMB clients close some", Do: "look who has them (file handles list)"},
	"ResourceNotFound":                  {Means: "there is no such file or directory", Until: "somebody creates it", Do: "look at the spelling; a deletion that was pending is over now"},
	"ParentNotFound":                    {Means: "the directory that it is to be in does not exist", Until: "somebody creates it", Do: "create the directory first"},
	"ShareNotFound":                     {Means: "there is no such share", Until: "somebody creates it", Do: "look at the spelling and the account"},
}

// byKind explains every other code.
var byKind = map[Kind]Explanation{
	Other:        {Means: "it depends on the status", Until: "nobody knows", Do: "look at the message"},
	Conflict:     {Means: "the resource is not as the request demanded: somebody was faster", Until: "it is read again", Do: "read again, and decide anew"},
	Held:         {Means: "somebody else has it", Passes: true, Until: "the holder lets go", Do: "wait"},
	Lost:         {Means: "the lease or receipt that the request names is not valid any more", Until: "it is acquired or received anew", Do: "stop the work, and begin anew"},
	Unknown:      {Means: "the service could not say whether it was carried out", Passes: true, Until: "the fault is over", Do: "find out whether it was, or send it again if that does no harm"},
	Throttled:    {Means: "not now: the service is busy, or in a state that passes", Passes: true, Until: "a while later", Do: "send it again after a pause"},
	NotFound:     {Means: "there is no such resource", Until: "somebody creates it", Do: "look at the spelling"},
	Unauthorised: {Means: "the caller may not do this", Until: "somebody grants the right", Do: "look at the role, the key or the signature"},
	Permanent:    {Means: "it is refused, and will be refused again", Until: "something else is changed first", Do: "do not send it again"},
	BadInput:     {Means: "the request itself is wrong", Until: "it is put right", Do: "put it right"},
}
