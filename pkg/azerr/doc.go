// Package azerr is the one place that knows what a response of Azure Storage means.
//
// Classify turns an error of the SDK into an Outcome: what happened, why, and whether it is worth sending the request
// again. It goes by the service's error code (x-ms-error-code, or the code in the body), and by the HTTP status only if there
// is no code, because the status is not the meaning: 409 is "someone holds a lease", "wait, it is being
// deleted", "it exists" and "this will never work", and the service's own pages disagree about the status of some codes.
//
// Two questions are kept apart. Outcome.Transient: is it worth sending again? Outcome.Ambiguous: may this very request
// have been carried out although no success was reported?
//
//	what happened                                        Kind          ambiguous  transient
//	refused, name unknown: there was no connection       Unreachable   no         yes
//	no trust in the certificate, or no TLS               Permanent     no         no
//	no token to sign the request with                    Unauthorised  no         no
//	connection lost, answer cut off, deadline            Unknown       yes        yes
//	cancelled                                            Unknown       yes        no
//	408, 500, 502, 504                                   Unknown       yes        yes
//	429, 503                                             Throttled     yes        yes
//	409 being deleted, copy pending, rate exceeded       Throttled     no         yes
//	400 damaged on the way (Md5Mismatch)                 BadInput      no         yes
//	any other answer                                     by its code   no         no
//	an error of neither the service nor the network      Other         no         no
//
// Explain says what is wrong around a request, such as an expired signature, a missing role or a name that does not resolve, and the
// way out. The text of Clean and Summary ends with both.
//
// Clean removes what must not be shown from an error's text (URLs with a shared access signature, keys) and keeps its
// chain, so that errors.Is and errors.As work as before. Redact does the same for any text, as far as patterns can: it
// recognizes secrets by their names and forms, and misses a secret in any other form. It is the second line of
// defence; the first is not to put secrets into texts.
//
// Nothing here sends a request or keeps state.
//
// Sources: "Common REST API error codes", "Blob service error codes", "Table service error codes", "Queue service error
// codes", "File service error codes" of the REST reference, and the answers of the services as far as they differ.
package azerr
