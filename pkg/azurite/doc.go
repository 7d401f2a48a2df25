// Package azurite starts and stops a real Azurite, Microsoft's emulator of Azure Storage, from Go.
//
//	server, err := azurite.Start(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
//
// # What is run
//
// Version [Version] from npm, with all it depends on pinned by the lock file that is embedded in this package. [Install]
// puts it into the user's cache folder once, about 365 MB; [Start] does so when it has to. Needed are Node.js 20 or newer
// and npm; a [ToolError] says which one is missing and how to get it. AZCONC_AZURITE_DIR names a copy that is there
// already and then nothing is installed.
//
// # How it is run
//
// One node process on three free ports of 127.0.0.1, in a process group of its own so that the interrupt key of a terminal
// does not reach it before its owner, with its data on disk in a temporary folder: kept in memory, Azurite's collection
// of garbage stops all requests for half a minute once every ten minutes (DEFAULT_GC_INTERVAL_MS), on disk for
// milliseconds. A server should be ended before ten minutes all the same when time matters to its user.
// Telemetry is off, and its client is not even loaded.
//
// # Who ends it
//
// [Server.Stop], which returns when the process is gone and its temporary folder is removed. When the starting process
// dies without having called it, Azurite ends too: its stdin is a pipe that closes then, and on Linux the kernel kills
// it. Only the temporary folder stays behind.
//
// # Limits
//
// Azurite is not Azure Storage. It has no File service, and where it differs from Blob, Table and Queue storage a test
// that relies on it proves nothing: among others, the condition x-ms-if-tags is ignored beside If-Match, an entity group
// transaction may span partitions, and all messages of one receive share a pop receipt.
package azurite
