// Package denial says why the service refused a caller, so that a program can name the way out.
//
//	switch denial.Of(err) {
//	case denial.NetworkRules: …
//	}
//
// It is more specific than azerr.Unauthorised. Nothing here sends a request or keeps state.
package denial

import "github.com/azconc/azconc/pkg/azerr"

// Reason is the reason why the service refused a caller.
type Reason uint8

const (
	None              Reason = iota // not a refusal of the caller, or one without a more specific code
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

var denials = map[string]Reason{
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

// Of returns why the service refused the caller, or None if err does not show that.
func Of(err error) Reason {
	o := azerr.Classify(err)
	if o.Kind != azerr.Unauthorised {
		return None
	}
	return denials[o.Code]
}
