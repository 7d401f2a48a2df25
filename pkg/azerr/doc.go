// Package azerr is the one place that knows what an answer of Azure Storage means.
//
// Classify turns an error of the SDK into an Outcome: what happened, why, and whether it is worth sending the request
// again. It goes by the service's error code (x-ms-error-code, or the code in the body), never by the HTTP status as
// long as there is a code, because the status is not the meaning: 409 is "someone holds a lease", "wait, it is being
// deleted", "it exists" and "this will never work", and the service's own pages disagree about the status of some codes.
//
// Two questions are kept apart. Outcome.Transient: is it worth sending again? Outcome.Ambiguous: may this very request
// have been carried out although no success was reported? After a lost connection, a 500 or a 503 it may have been; an
// error while dialling means that nothing was sent.
//
// Clean takes what must not be shown out of an error's text (URLs with a shared access signature, keys) and keeps its
// chain, so that errors.Is and errors.As work as before.
//
// Sources: "Common REST API error codes", "Blob service error codes", "Table service error codes", "Queue service error
// codes", "File service error codes" of the REST reference, and the answers of the services as far as they differ.
package azerr
