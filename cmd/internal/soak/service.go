package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/azconc/azconc/pkg/azurite"
)

// service is an Azurite with its data on disk, which can be ended and started again.
type service struct {
	options  azurite.Options
	server   *azurite.Server
	restarts int
}

func startService(ctx context.Context, dir string) (*service, error) {
	s := &service{options: azurite.Options{Location: dir}}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	a := s.server.Account()
	for raw, port := range map[string]*int{a.BlobURL: &s.options.BlobPort, a.QueueURL: &s.options.QueuePort, a.TableURL: &s.options.TablePort} {
		u, err := url.Parse(raw)
		if err == nil {
			*port, err = strconv.Atoi(u.Port())
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", raw, err)
		}
	}
	return s, nil
}

func (s *service) start(ctx context.Context) (err error) {
	s.server, err = azurite.Start(ctx, &s.options)
	return err
}

// restart ends the service by SIGTERM in the midst of its requests, and starts it on the same folder and ports. Not by
// SIGKILL: Azurite writes its data to disk some seconds after it has acknowledged them, so that it would lose writes
// that a real account never loses. It does forget all leases when it is restarted, as no account does: for
// their holders it is as if another client had broken them.
func (s *service) restart(ctx context.Context) error {
	s.restarts++
	if err := s.server.Stop(); err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *service) stop() error { return s.server.Stop() }
