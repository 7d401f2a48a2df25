package tfstate

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/azconc/azconc/pkg/ptr"
)

// azurerm is a run with the azurerm backend: it sends what the backend of OpenTofu 1.12.6 sends, in the same order
// (internal/backend/remote-state/azure/client.go). TestOpenTofuWithAzurerm… have the backend itself.
type azurerm struct {
	blob  *blockblob.Client
	info  Info // of its lock
	lease *string

	sent   int // requests so far
	killAt int // it is killed before this request; 0: never
}

// azurermKey is where the backend describes the holder of its lock.
const azurermKey = "terraformlockid"

func newAzurerm(w *world, id, who string) *azurerm {
	return &azurerm{blob: w.service.BlockBlob("tfstate", "prod"), info: Info{ID: id, Operation: "OperationTypeApply", Who: who, Version: "1.12.6",
		Created: time.Now().UTC().Format(time.RFC3339Nano), Path: "https://contoso.blob.core.windows.net/tfstate/prod"}}
}

func (c *azurerm) dead() error {
	if c.sent++; c.sent == c.killAt {
		return errKilled
	}
	return nil
}

func (c *azurerm) underLease() *blob.AccessConditions {
	return &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: c.lease}}
}

// properties returns the metadata, with names in lower case.
func (c *azurerm) properties(ctx context.Context) (blob.GetPropertiesResponse, map[string]*string, error) {
	if err := c.dead(); err != nil {
		return blob.GetPropertiesResponse{}, nil, err
	}
	p, err := c.blob.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: c.underLease()})
	metadata := map[string]*string{}
	for name, value := range p.Metadata {
		metadata[strings.ToLower(name)] = value
	}
	return p, metadata, err
}

func (c *azurerm) upload(ctx context.Context, state []byte, metadata map[string]*string) error {
	if err := c.dead(); err != nil {
		return err
	}
	_, err := c.blob.UploadBuffer(ctx, state, &blockblob.UploadBufferOptions{Metadata: metadata, AccessConditions: c.underLease(),
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")}})
	return err
}

func (c *azurerm) setInfo(ctx context.Context, info *string) error {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return err
	}
	delete(metadata, azurermKey)
	if info != nil {
		metadata[azurermKey] = info
	}
	if err := c.dead(); err != nil {
		return err
	}
	_, err = c.blob.SetMetadata(ctx, metadata, &blob.SetMetadataOptions{AccessConditions: c.underLease()})
	return err
}

func (c *azurerm) lock(ctx context.Context) error {
	p, _, err := c.properties(ctx)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		err = c.upload(ctx, nil, nil)
	}
	if err != nil {
		return err
	}
	if ptr.Value(p.LeaseStatus) == lease.StatusTypeLocked {
		return c.heldByAnother(ctx)
	}
	l, err := lease.NewBlobClient(c.blob, &lease.BlobClientOptions{LeaseID: &c.info.ID})
	if err == nil {
		err = c.dead()
	}
	if err != nil {
		return err
	}
	if _, err := l.AcquireLease(ctx, -1, nil); err != nil {
		return errors.Join(err, c.heldByAnother(ctx))
	}
	c.lease = &c.info.ID
	text, err := json.Marshal(c.info)
	if err != nil {
		return err
	}
	return c.setInfo(ctx, to.Ptr(base64.StdEncoding.EncodeToString(text)))
}

// holder reads the description of the holder, which must be one that the client can decode: otherwise it does not wait.
func (c *azurerm) holder(ctx context.Context) (Info, error) {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return Info{}, err
	}
	text, err := base64.StdEncoding.DecodeString(ptr.Value(metadata[azurermKey]))
	var held struct {
		Info
		Created time.Time
	}
	if err == nil {
		err = json.Unmarshal(text, &held)
	}
	if err != nil {
		return Info{}, fmt.Errorf("no holder: %w", err)
	}
	return held.Info, nil
}

func (c *azurerm) heldByAnother(ctx context.Context) error {
	held, err := c.holder(ctx)
	if err != nil {
		return err
	}
	return &lockedError{held}
}

func (c *azurerm) get(ctx context.Context) ([]byte, error) {
	if err := c.dead(); err != nil {
		return nil, err
	}
	r, err := c.blob.DownloadStream(ctx, &blob.DownloadStreamOptions{AccessConditions: c.underLease()})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err = b.ReadFrom(r.Body)
	return b.Bytes(), errors.Join(err, r.Body.Close())
}

func (c *azurerm) put(ctx context.Context, state []byte) error {
	_, metadata, err := c.properties(ctx)
	if err != nil {
		return err
	}
	return c.upload(ctx, state, metadata)
}

func (c *azurerm) unlock(ctx context.Context) error {
	held, err := c.holder(ctx)
	switch {
	case err != nil:
		return err
	case held.ID != c.info.ID:
		return fmt.Errorf("lock id %q does not match existing lock", c.info.ID)
	}
	c.lease = &c.info.ID
	if err := c.setInfo(ctx, nil); err != nil {
		return err
	}
	l, err := lease.NewBlobClient(c.blob, &lease.BlobClientOptions{LeaseID: c.lease})
	if err == nil {
		err = c.dead()
	}
	if err == nil {
		_, err = l.ReleaseLease(ctx, nil)
	}
	c.lease = nil
	return err
}

// apply appends a word to the state, in one step.
func (c *azurerm) apply(ctx context.Context, word string) error {
	err := c.lock(ctx)
	if err != nil {
		return err
	}
	state, err := c.get(ctx)
	if err == nil {
		err = c.put(ctx, append(state, word...))
	}
	if errors.Is(err, errKilled) {
		return err
	}
	return errors.Join(err, c.unlock(ctx))
}
