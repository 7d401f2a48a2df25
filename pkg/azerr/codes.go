package azerr

// The meanings of responses: what Classify returns, but for the facts of the response.
var (
	changed      = Outcome{Kind: Conflict, Reason: Changed}
	exists       = Outcome{Kind: Conflict, Reason: Exists}
	notModified  = Outcome{Kind: Conflict, Reason: NotModified}
	held         = Outcome{Kind: Held}
	open         = Outcome{Kind: Held, Reason: OpenHandle}
	deleting     = Outcome{Kind: Held, Reason: DeletePending}
	lost         = Outcome{Kind: Lost}
	broken       = Outcome{Kind: Lost, Reason: LeaseBroken}
	unclear      = Outcome{Kind: Unknown, ambiguous: true, transient: true}
	busy         = Outcome{Kind: Throttled, ambiguous: true, transient: true} // sent by a front end that may have passed the request on
	wait         = Outcome{Kind: Throttled, transient: true}                  // sent by the service itself: not applied
	notFound     = Outcome{Kind: NotFound}
	unauthorised = Outcome{Kind: Unauthorised}
	permanent    = Outcome{Kind: Permanent}
	badInput     = Outcome{Kind: BadInput}
)

// codes maps the codes that mean something else than their status, see meant. The test walks the SDK's lists, and fails if the meaning
// of a code is not the documented one.
var codes = map[string]Outcome{
	// Conditions on versions.
	"ConditionNotMet":               changed,
	"TargetConditionNotMet":         changed,
	"UpdateConditionNotSatisfied":   changed,  // tables
	"UnsatisfiableCondition":        badInput, // If-None-Match: * on a read
	"SourceConditionNotMet":         {Kind: Conflict, Reason: SourceChanged},
	"AppendPositionConditionNotMet": {Kind: Conflict, Reason: Position},
	"MaxBlobSizeConditionNotMet":    {Kind: Conflict, Reason: Position},
	"SequenceNumberConditionNotMet": {Kind: Conflict, Reason: Sequence},
	"InvalidBlockList":              {Kind: Conflict, Reason: BlockList},
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
	"UnauthorizedBlobOverwrite": {Kind: Unauthorised, Reason: Exists}, // a signature that permits creating, not writing

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
	"FileLockConflict":              {Kind: Held, Reason: RangeLocked},
	"DeletePending":                 deleting,
	"SMBDeletePending":              deleting,
	"ClientCacheFlushDelay":         {Kind: Unknown, Reason: CacheFlush, ambiguous: true, transient: true}, // 408 or 500
	"ReadOnlyAttribute":             {Kind: Permanent, Reason: ReadOnly},
	"DeleteShareWhenSnapshotLeased": held,
	"HandleLimitExceeded":           wait,

	// The service says that it has not carried the request out. The same status without a code, from a front end, does not say so.
	"ServerBusy": wait,

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
	"Md5Mismatch":   {Kind: BadInput, transient: true},
	"Crc64Mismatch": {Kind: BadInput, transient: true},

	"InvalidAuthenticationInfo": unauthorised, // 400 or 401

	// Invalid requests that have the status of a conflict.
	"BlockCountExceedsLimit":             badInput,
	"InvalidSourceBlobUrl":               badInput,
	"InvalidVersionForPageBlobOperation": badInput,
	"SequenceNumberIncrementTooLarge":    badInput,
}
