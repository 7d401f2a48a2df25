// Package azcertmagic stores the certificates, keys and locks of certmagic, and so of Caddy, in a container.
//
//	storage, err := azcertmagic.New(container, nil)
//	certmagic.Default.Storage = storage
package azcertmagic

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/caddyserver/certmagic"

	"github.com/azconc/azconc/optimistic"
	"github.com/azconc/azconc/optimistic/blobs"
	"github.com/azconc/azconc/pessimistic"
	"github.com/azconc/azconc/pkg/azerr"
)

// Options configures a Storage. The zero value selects the defaults.
type Options struct {
	// Prefix is prepended to the names of all blobs. Defaults to "certmagic/". The keys are below it in "data/", the locks in
	// "locks/".
	Prefix string

	// Owner is the name under which this process appears to those that wait for its locks. Defaults to "host/pid".
	Owner string

	_ struct{}
}

// Storage is a certmagic.Storage in a container, with TryLock and RenewLockLease. Private keys are stored as certmagic passes them:
// who can read the container has them. A lock is a lease that is renewed until Unlock; if its process dies, it is free after 30 s.
// certmagic is not stopped when a lock is lost; a lost lock shows in RenewLockLease.
//
// A Storage is safe for concurrent use. Requests: 1 for Store, Load, Stat and Exists, 1 more where the key is a directory or
// missing; 1 for each 5,000 keys that List finds; that of List and 1 for each key to Delete; those of pessimistic.Locker to lock.
type Storage struct {
	client *container.Client
	prefix string
	locks  *pessimistic.Locker

	mu    sync.Mutex
	holds map[string]hold // guarded by mu
}

type hold struct {
	*pessimistic.Hold
	end context.CancelCauseFunc
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a Storage in a container, which must exist when it is first used. It sends no request.
func New(client *container.Client, opts *Options) (*Storage, error) {
	if client == nil {
		return nil, errors.New("azcertmagic: no container client")
	}
	o := Options{Prefix: "certmagic/"}
	if opts != nil {
		o.Owner = opts.Owner
		if opts.Prefix != "" {
			o.Prefix = opts.Prefix
		}
	}
	locks, err := pessimistic.NewLocker(client, &pessimistic.LockerOptions{Prefix: o.Prefix + "locks/", Owner: o.Owner})
	if err != nil {
		return nil, err
	}
	return &Storage{client: client, prefix: o.Prefix + "data/", locks: locks, holds: map[string]hold{}}, nil
}

func (s *Storage) blob(key string) blobs.Blob[[]byte] {
	return blobs.NewBytes(s.client.NewBlockBlobClient(s.prefix + key))
}

// Store writes a value. A write whose response is lost is sent again.
func (s *Storage) Store(ctx context.Context, key string, value []byte) error {
	_, err := blobs.Upload(ctx, s.client.NewBlockBlobClient(s.prefix+key), bytes.NewReader(value), nil)
	return err
}

// Load returns the last value that was stored. If there is none, the error is fs.ErrNotExist.
func (s *Storage) Load(ctx context.Context, key string) ([]byte, error) {
	v, err := s.read(ctx, key)
	if err != nil {
		return nil, err
	}
	return v.Value, nil
}

func (s *Storage) read(ctx context.Context, key string) (*optimistic.Version[[]byte], error) {
	v, err := optimistic.Read(ctx, s.blob(key), nil)
	if errors.Is(err, optimistic.ErrNotFound) {
		return nil, &fs.PathError{Op: "load", Path: key, Err: fs.ErrNotExist}
	}
	return v, err
}

// Delete deletes a key and everything below it.
func (s *Storage) Delete(ctx context.Context, key string) error {
	keys := []string{key}
	for below, err := range s.below(ctx, key, 0) {
		if err != nil {
			return err
		}
		keys = append(keys, below)
	}
	for _, key := range keys {
		if _, err := optimistic.Delete(ctx, s.blob(key), optimistic.State{}, nil); err != nil && !errors.Is(err, optimistic.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Exists reports whether a key has a value, or keys below it.
func (s *Storage) Exists(ctx context.Context, key string) bool {
	_, err := s.Stat(ctx, key)
	return err == nil
}

// Stat describes a key, or the directory of this name. If there is neither, the error is fs.ErrNotExist.
func (s *Storage) Stat(ctx context.Context, key string) (certmagic.KeyInfo, error) {
	v, err := s.read(ctx, key)
	if err == nil {
		return certmagic.KeyInfo{Key: key, Modified: v.LastModified, Size: int64(len(v.Value)), IsTerminal: true}, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		for _, listErr := range s.below(ctx, key, 1) {
			return certmagic.KeyInfo{Key: key}, listErr
		}
	}
	return certmagic.KeyInfo{}, err
}

// List returns the keys and directories directly below a path, or all of them, in order. If the path is neither a key nor a
// directory, the error is fs.ErrNotExist.
func (s *Storage) List(ctx context.Context, path string, recursive bool) ([]string, error) {
	found, prefix := map[string]bool{}, directory(path)
	for key, err := range s.below(ctx, path, 0) {
		if err != nil {
			return nil, err
		}
		for i, r := range key[len(prefix):] + "/" {
			if r == '/' {
				found[key[:len(prefix)+i]] = true
				if !recursive {
					break
				}
			}
		}
	}
	if len(found) == 0 && path != "" {
		if _, err := s.read(ctx, path); err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// directory is what the keys below a path begin with: "a" is the directory of "a/b", not of "ab/c".
func directory(path string) string {
	if path = strings.Trim(path, "/"); path == "" {
		return ""
	}
	return path + "/"
}

// below iterates over the keys below a path, by pages of up to max, or 5,000 if it is 0.
func (s *Storage) below(ctx context.Context, path string, max int32) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		o := &container.ListBlobsFlatOptions{Prefix: new(s.prefix + directory(path))}
		if max > 0 {
			o.MaxResults = &max
		}
		for pager := s.client.NewListBlobsFlatPager(o); pager.More(); {
			page, err := pager.NextPage(ctx)
			if err != nil {
				yield("", azerr.Op(ctx, "list", path, err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(strings.TrimPrefix(*item.Name, s.prefix), nil) {
					return
				}
			}
		}
	}
}
