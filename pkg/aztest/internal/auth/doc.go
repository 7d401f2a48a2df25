// Package auth verifies the credentials of requests as the service does: shared keys, and service and account SAS.
//
// The rules are those of the REST reference: "Authorize with Shared Key", "Create a service SAS", "Create an account SAS"
// and "SAS error codes".
package auth
