package azerr

// meaning is the meaning of a code.
type meaning struct {
	kind      Kind
	reason    Reason
	ambiguous bool // a write with this response may have been applied
	transient bool // the same request may succeed later
}

var (
	changed      = meaning{kind: Conflict, reason: Changed}
	exists       = meaning{kind: Conflict, reason: Exists}
	notModified  = meaning{kind: Conflict, reason: NotModified}
	held         = meaning{kind: Held}
	open         = meaning{kind: Held, reason: OpenHandle}
	deleting     = meaning{kind: Held, reason: DeletePending}
	lost         = meaning{kind: Lost}
	broken       = meaning{kind: Lost, reason: LeaseBroken}
	unclear      = meaning{kind: Unknown, ambiguous: true, transient: true}
	busy         = meaning{kind: Throttled, ambiguous: true, transient: true} // sent by a front end that may have passed the request on
	wait         = meaning{kind: Throttled, transient: true}                  // sent by the service itself: not applied
	notFound     = meaning{kind: NotFound}
	unauthorised = meaning{kind: Unauthorised}
	permanent    = meaning{kind: Permanent}
	badInput     = meaning{kind: BadInput}
)

// codes maps the codes that mean something else than their status, see meant. The test walks the SDK's lists, and fails if the meaning
// of a code is not the documented one.
var codes = map[string]meaning{
	// Conditions on versions.
	"ConditionNotMet":               changed,
	"TargetConditionNotMet":         changed,
	"UpdateConditionNotSatisfied":   changed,  // tables
	"UnsatisfiableCondition":        badInput, // If-None-Match: * on a read
	"SourceConditionNotMet":         {kind: Conflict, reason: SourceChanged},
	"AppendPositionConditionNotMet": {kind: Conflict, reason: Position},
	"MaxBlobSizeConditionNotMet":    {kind: Conflict, reason: Position},
	"SequenceNumberConditionNotMet": {kind: Conflict, reason: Sequence},
	"InvalidBlockList":              {kind: Conflict, reason: BlockList},
	"BlobOverwritten":               changed,

	// The resource to create already exists.
	"BlobAlreadyExists":         exists,
	"ContainerAlreadyExists":    exists,
	"EntityAlreadyExists":       exists,
	"TableAlreadyExists":        exists,
	"QueueAlreadyExists":        exists,
	"ShareAlreadyExists":        exists,
	"ResourceAlreadyExists":     exists,
	"AccountAlreadyExists":      exists,
	"UnauthorizedBlobOverwrite": {kind: Unauthorised, reason: Exists}, // a signature that permits creating, not writing

	// Leases.
	"LeaseAlreadyPresent":                   held,
	"LeaseIdMissing":                        held,
	"LeaseIsBreakingAndCannotBeAcquired":    held,
	"LeaseIsBreakingAndCannotBeChanged":     broken,
	"LeaseIdMismatchWithBlobOperation":      lost,
	"LeaseIdMismatchWithContainerOperation": lost,
	"LeaseIdMismatchWithLeaseOperation":     lost,
	"LeaseIdMismatchWithFileOperation":      lost,
	"LeaseIdMismatchWithShareOperation":     lost,
	"LeaseNotPresentWithBlobOperation":      lost,
	"LeaseNotPresentWithContainerOperation": lost,
	"LeaseNotPresentWithLeaseOperation":     lost,
	"LeaseNotPresentWithFileOperation":      lost,
	"LeaseNotPresentWithShareOperation":     lost,
	"LeaseIsBrokenAndCannotBeRenewed":       broken,
	"LeaseAlreadyBroken":                    broken,
	"LeaseLost":                             lost,
	"InfiniteLeaseDurationRequired":         badInput,

	// Queue messages: the service answers 404 MessageNotFound to a stale receipt, emulators 400 PopReceiptMismatch.
	"MessageNotFound":    lost,
	"PopReceiptMismatch": lost,

	// Files in use through SMB. Both spellings of a pending deletion are documented. The deletion ends when the last
	// handle is closed.
	"SharingViolation":              open,
	"FileOpenBySmbClient":           open,
	"CannotDeleteFileOrDirectory":   open,
	"FileLockConflict":              {kind: Held, reason: RangeLocked},
	"DeletePending":                 deleting,
	"SMBDeletePending":              deleting,
	"ClientCacheFlushDelay":         {kind: Unknown, reason: CacheFlush, ambiguous: true, transient: true}, // 408 or 500
	"ReadOnlyAttribute":             {kind: Permanent, reason: ReadOnly},
	"DeleteShareWhenSnapshotLeased": held,
	"HandleLimitExceeded":           wait,

	// States that pass.
	"ContainerBeingDeleted":         wait,
	"TableBeingDeleted":             wait,
	"QueueBeingDeleted":             wait,
	"ShareBeingDeleted":             wait,
	"AccountBeingCreated":           wait,
	"PendingCopyOperation":          wait,
	"ShareSnapshotInProgress":       wait,
	"SnapshotOperationRateExceeded": wait,
	"SystemInUse":                   wait,

	// The request was damaged in transit, so it was not applied. A repetition may arrive intact.
	"Md5Mismatch":   {kind: BadInput, transient: true},
	"Crc64Mismatch": {kind: BadInput, transient: true},

	"InvalidAuthenticationInfo": unauthorised, // 400 or 401

	// Invalid requests that have the status of a conflict.
	"BlockCountExceedsLimit":             badInput,
	"InvalidSourceBlobUrl":               badInput,
	"InvalidVersionForPageBlobOperation": badInput,
	"SequenceNumberIncrementTooLarge":    badInput,
}
