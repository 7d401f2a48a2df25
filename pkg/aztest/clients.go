package aztest

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/file"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/service"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azfile/share"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/azconc/azconc/pkg/aztest/internal/blobservice"
	"github.com/azconc/azconc/pkg/aztest/internal/fileservice"
	"github.com/azconc/azconc/pkg/aztest/internal/queueservice"
	"github.com/azconc/azconc/pkg/aztest/internal/storage"
	"github.com/azconc/azconc/pkg/aztest/internal/tableservice"
)

// ClientOptions returns options for any SDK client that is to use the Service.
func (s *Service) ClientOptions() azcore.ClientOptions { return policy.ClientOptions{Transport: s} }

// must returns a client or a credential. Those of a Service's own URLs and key, which New has checked, make no error.
func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}

// BlobURL is the Blob service's URL for clients whose transport is the Service.
func (s *Service) BlobURL() string { return "http://" + blobservice.Host + "/" + s.o.Account }

// BlobHandler serves the Blob service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) BlobHandler() http.Handler { return s.handler(blobservice.Host) }

// Container returns a client for a container, which need not exist.
func (s *Service) Container(name string) *container.Client {
	credential := must(container.NewSharedKeyCredential(s.o.Account, s.o.Key))
	o := &container.ClientOptions{ClientOptions: s.ClientOptions()}
	return must(container.NewClientWithSharedKeyCredential(s.BlobURL()+"/"+name, credential, o))
}

// BlockBlob returns a client for a blob, and creates the container if it is missing, without a request.
func (s *Service) BlockBlob(containerName, blobName string) *blockblob.Client {
	s.ensure(storage.Blob, containerName)
	return s.Container(containerName).NewBlockBlobClient(blobName)
}

// TableURL is the Table service's URL for clients whose transport is the Service.
func (s *Service) TableURL() string { return "http://" + tableservice.Host + "/" + s.o.Account }

// TableHandler serves the Table service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) TableHandler() http.Handler { return s.handler(tableservice.Host) }

// TableService returns a client for the account's tables.
func (s *Service) TableService() *aztables.ServiceClient {
	credential := must(aztables.NewSharedKeyCredential(s.o.Account, s.o.Key))
	return must(aztables.NewServiceClientWithSharedKey(s.TableURL(), credential, &aztables.ClientOptions{ClientOptions: s.ClientOptions()}))
}

// Table returns a client for a table, and creates the table if it is missing, without a request.
func (s *Service) Table(name string) *aztables.Client {
	s.ensure(storage.Table, name)
	return s.TableService().NewClient(name)
}

// QueueURL is the Queue service's URL for clients whose transport is the Service.
func (s *Service) QueueURL() string { return "http://" + queueservice.Host + "/" + s.o.Account }

// QueueHandler serves the Queue service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) QueueHandler() http.Handler { return s.handler(queueservice.Host) }

// QueueService returns a client for the account's queues.
func (s *Service) QueueService() *azqueue.ServiceClient {
	credential := must(azqueue.NewSharedKeyCredential(s.o.Account, s.o.Key))
	o := &azqueue.ClientOptions{ClientOptions: s.ClientOptions()}
	return must(azqueue.NewServiceClientWithSharedKeyCredential(s.QueueURL()+"/", credential, o))
}

// Queue returns a client for a queue, and creates the queue if it is missing, without a request.
func (s *Service) Queue(name string) *azqueue.QueueClient {
	s.ensure(storage.Queue, name)
	return s.QueueService().NewQueueClient(name)
}

// FileURL is the File service's URL for clients whose transport is the Service. No emulator has this service.
func (s *Service) FileURL() string { return "http://" + fileservice.Host + "/" + s.o.Account }

// FileHandler serves the File service over HTTP, at /devstoreaccount1. A lost response closes the connection.
func (s *Service) FileHandler() http.Handler { return s.handler(fileservice.Host) }

// FileService returns a client for the File service.
func (s *Service) FileService() *service.Client {
	credential := must(service.NewSharedKeyCredential(s.o.Account, s.o.Key))
	return must(service.NewClientWithSharedKeyCredential(s.FileURL(), credential, &service.ClientOptions{ClientOptions: s.ClientOptions()}))
}

// Share returns a client for a share, and creates the share if it is missing, without a request.
func (s *Service) Share(name string) *share.Client {
	s.ensure(storage.File, name)
	return s.FileService().NewShareClient(name)
}

// File returns a client for a file, which need not exist, in the root of a share, which is created if it is missing.
func (s *Service) File(shareName, name string) *file.Client {
	return s.Share(shareName).NewRootDirectoryClient().NewFileClient(name)
}

// HoldCopies(true) keeps the copies that start from now on pending, as the service does with large copies and with
// those from other accounts: their destination is empty and refuses every change until the copy is aborted.
// HoldCopies(false), the default, completes copies at once, and completes those that are pending: with status success,
// or failed if their source has changed since.
func (s *Service) HoldCopies(pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs.HoldCopies(pending)
}

// OpenSMB opens a file as an SMB client does, and returns its status. It is refused if another handle does not share
// the access, or has an access that this one does not share; if the file is leased and is opened for writing or
// deletion; and if its deletion is pending (REST: "Managing file locks", "Lease File").
func (s *Service) OpenSMB(shareName, path string, h SMBHandle) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files.OpenSMB(shareName, path, fileservice.SMBHandle(h))
}

// CloseSMB closes a handle. The last one takes with it a file whose deletion is pending.
func (s *Service) CloseSMB(shareName, path, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.CloseSMB(shareName, path, id)
}

// MarkDeletedSMB sets or clears the mark with which an SMB client deletes an open file. It has an effect only while the
// file is open (REST: "Managing file locks", SMB delete).
func (s *Service) MarkDeletedSMB(shareName, path string, marked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.MarkDeletedSMB(shareName, path, marked)
}

// LockRangeSMB locks bytes of a file through one of its handles, until the handle closes.
func (s *Service) LockRangeSMB(shareName, path, id string, first, last int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.LockRangeSMB(shareName, path, id, first, last)
}

// StickSMB makes the service fail to close a handle by force.
func (s *Service) StickSMB(shareName, path, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files.StickSMB(shareName, path, id)
}

// SMBHandle is a file or directory that an SMB client has open. Other clients cannot get the access that it does not
// share.
type SMBHandle struct {
	ID          string
	ClientName  string
	Write       bool // the access that it was opened with, in addition to reading
	Delete      bool
	ShareRead   bool // the access that it shares
	ShareWrite  bool
	ShareDelete bool
}

// The statuses that OpenSMB returns, with SMB's names.
const (
	SMBOpened           = fileservice.SMBOpened
	SMBSharingViolation = fileservice.SMBSharingViolation
	SMBDeletePending    = fileservice.SMBDeletePending
	SMBNotFound         = fileservice.SMBNotFound
)
