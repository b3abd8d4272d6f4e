package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"ashlar/internal/fakenode"
	"ashlar/internal/node"
)

// served is a service of a network that follows a node.
type served struct {
	demo     // its folder, program and service
	operator string
	chain    *chain
	upstream *fakenode.Node
}

// soakConfig is the service's configuration. The cache is small, and filters that nobody
// polls end soon, so that both are at their bounds before memory is compared.
const soakConfig = `
operator: %s
cache: 16MiB
limits: {memory: 256MiB, time: 10s}
filters: {unread: 20s}
networks:
  live: {hosts: [127.0.0.1], genesis: %s, source: %s}
  %s: {}
`

// serve starts a service with a configuration that lists the network of a brancher, too.
// The caller must close it.
func serve(ctx context.Context) (_ *served, err error) {
	d, err := newDemo(ctx)
	if err != nil {
		return nil, err
	}
	s := &served{demo: *d, chain: newChain(chainPast - finalBehind)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.operator, err = node.FreeAddress(); err != nil {
		return nil, err
	}
	if s.upstream, err = fakenode.New(fakenode.Options{ChainID: s.chain.genesis.Config.ChainID.Uint64(), Raw: true, Subscriptions: true}, s.chain.blocks[0]); err != nil {
		return nil, err
	}
	folder := filepath.Join(s.dir, "live")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	genesis, final, err := s.chain.write(folder, "live.rlp", 1)
	if err != nil {
		return nil, err
	}
	s.chain.grow(finalBehind)
	s.upstream.Set(s.chain.blocks, chainPast-finalBehind, chainPast-finalBehind)
	live := s.ashlar
	live.Network = "live"
	importing, err := live.Import(ctx, genesis, final)
	if err == nil {
		_, err = importing.Wait()
	}
	if err != nil {
		return nil, err
	}
	s.ashlar.Config = filepath.Join(s.dir, "ashlar.yaml")
	write := func(branch string) error {
		return os.WriteFile(s.ashlar.Config, fmt.Appendf(nil, soakConfig, s.operator, genesis, s.upstream.SocketURL(), branch), 0o600)
	}
	if err := write("# " + branchName); err != nil { // it is not stored yet
		return nil, err
	}
	service, client, err := s.ashlar.Serve(ctx)
	if err != nil {
		return nil, err
	}
	s.service = service
	u, err := url.Parse(client.URL)
	if err != nil {
		return nil, err
	}
	s.host = u.Host
	return s, write(branchName)
}

// close ends the service, if it still runs, and removes its folder.
func (s *served) close() error {
	if s.upstream != nil {
		s.upstream.Close()
	}
	var err error
	if s.service != nil {
		err = s.service.Stop()
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
