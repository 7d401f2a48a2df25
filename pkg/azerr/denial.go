package azerr

// Denial is the reason why the service refused a caller. It is more specific than the kind Unauthorised, and shows what
// would help.
type Denial uint8

const (
	NotDenied         Denial = iota // not a refusal of the caller, or one without a more specific code
	KeysDisabled                    // the account allows neither its keys nor signatures made with one
	NoPermission                    // the role, or the signature, does not permit this
	OtherResourceType               // the signature covers other types of resource
	OtherService                    // the signature covers other services
	NeedsHTTPS                      // the signature is for HTTPS only
	OtherAddress                    // the signature covers other addresses
	NetworkRules                    // the account's network rules do not admit the address, or the credential does not cover the request
	AccountDisabled                 // the account is disabled
	NoCredential                    // the request has no credential
	BadCredential                   // the credential is wrong, expired or not yet valid, or a clock is wrong
)

var denials = map[string]Denial{
	"KeyBasedAuthenticationNotPermitted": KeysDisabled,
	"AuthorizationPermissionMismatch":    NoPermission,
	"InsufficientAccountPermissions":     NoPermission,
	"AuthorizationResourceTypeMismatch":  OtherResourceType,
	"AuthorizationServiceMismatch":       OtherService,
	"AuthorizationProtocolMismatch":      NeedsHTTPS,
	"AuthorizationSourceIPMismatch":      OtherAddress,
	"AuthorizationFailure":               NetworkRules,
	"AccountIsDisabled":                  AccountDisabled,
	"NoAuthenticationInformation":        NoCredential,
	"AuthenticationFailed":               BadCredential,
	"InvalidAuthenticationInfo":          BadCredential,
}

// DenialOf returns why the service refused the caller, or NotDenied if err does not show that.
func DenialOf(err error) Denial {
	o := Classify(err)
	if o.Kind != Unauthorised {
		return NotDenied
	}
	return denials[o.Code]
}

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
