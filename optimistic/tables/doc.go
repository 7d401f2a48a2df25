// Package tables changes entities on the condition that nobody else has changed them since they were read.
//
// NewEntity makes an entity a target for optimistic.Update, Read, Create, Replace and Delete, and for
// optimistic.Document. Transact changes up to 100 entities of one partition together, on the condition that nothing
// that the change has read was changed. Both give the promise of package optimistic.
//
// A value is a struct, a map or Properties. Properties of types that JSON does not have (Int64, Guid, DateTime, Binary)
// keep their type through an update.
package tables
