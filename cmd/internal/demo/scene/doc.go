// Package scene has the scenes of azconc demo: what goes wrong with the textbook loops, what "Managing concurrency in Azure Storage"
// describes, and what azconc does, with what was sent and what came back.
//
// A scene is a list of acts, each a call by one client. A policy in each client's pipeline notes its requests and drops the responses
// that the scene loses; the hooks of the library note its events. The trace and the timeline are made of these records alone.
package scene
