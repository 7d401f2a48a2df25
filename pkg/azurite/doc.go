// Package azurite starts and stops a real Azurite, Microsoft's emulator of Azure Storage, from Go.
//
//	server, err := azurite.Start(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer server.Stop()
//	client, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
//
// # Installation
//
// Azurite comes from npm, at [Version], with its dependencies pinned by the lock file that is embedded in this package.
// [Install] installs it once into the user's cache folder, where it takes about 365 MB; [Start] calls Install if necessary.
// It needs Node.js 20 or newer and npm; a [ToolError] says which one is missing and how to get it. If AZCONC_AZURITE_DIR
// names an existing copy, nothing is installed.
//
// # Process
//
// A server is one node process on three free ports of 127.0.0.1. It has a process group of its own, so that the interrupt
// key of a terminal does not reach it before its owner. Its data are on disk, in a temporary folder: with data in memory,
// Azurite's garbage collection stops all requests for half a minute every ten minutes (DEFAULT_GC_INTERVAL_MS), on disk
// for milliseconds. Where time matters, stop a server before ten minutes have passed. Telemetry is off, and its client is
// not loaded.
//
// [Server.Stop] returns when the process has ended and its temporary folder is removed. If the starting process dies
// without calling it, Azurite ends too: its stdin is a pipe that closes then. Only the temporary folder is left behind.
//
// # Limits
//
// Azurite is not Azure Storage. It has no File service, and a test proves nothing where Azurite differs from Blob, Table
// and Queue storage: among others, it ignores x-ms-if-tags next to If-Match, and an entity group transaction may span
// partitions.
package azurite
