// Package emulator serves aztest's accounts on loopback, for programs in any language:
//
//	server, err := emulator.Start(ctx, nil)
//	defer server.Stop()
//	client, err := azblob.NewClientFromConnectionString(server.ConnectionString(), nil)
//
// It has the four services: blobs, queues, tables and files. Signatures and SAS are verified with the service's errors.
// Everything is in memory, without a limit but that of 1 GiB for a request, and is gone when the server stops.
package emulator
