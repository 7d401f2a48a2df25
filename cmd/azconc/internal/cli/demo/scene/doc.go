// Package scene has the scenes of azconc demo: what "Managing concurrency in Azure Storage" describes, sent to a service, with what
// was sent and what came back.
//
// A scene is a list of acts, each a call of the library by one client. A recorder between the client and the service notes the
// requests, and the hooks of the library note its events. The timeline is drawn from these records alone.
package scene
