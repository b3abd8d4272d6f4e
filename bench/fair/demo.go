package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"ashlar/internal/node"
)

// demo is the program and a demo's data in a temporary folder, and its service.
type demo struct {
	dir     string
	ashlar  node.Ashlar
	service *node.Process // nil until start
	host    string        // and port, from start on
}

// newDemo builds the program in a temporary folder. The caller must remove it.
func newDemo(ctx context.Context) (*demo, error) {
	dir, err := os.MkdirTemp("", "ashlar-fair-")
	if err != nil {
		return nil, err
	}
	bin, err := node.BuildAshlar(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &demo{dir: dir, ashlar: node.Ashlar{Bin: bin, Data: filepath.Join(dir, "data")}}, nil
}

// start starts the service with further flags of the command.
func (d *demo) start(ctx context.Context, flags ...string) error {
	service, at, err := d.ashlar.Demo(ctx, flags...)
	if err != nil {
		return err
	}
	d.service = service
	u, err := url.Parse(at)
	if err != nil {
		return err
	}
	d.host = u.Host
	return nil
}

// remove ends the service, if it still runs, and removes its folder.
func (d *demo) remove() {
	if d.service != nil {
		d.service.Kill()
	}
	os.RemoveAll(d.dir)
}

// honest creates the accounts of the honest clients.
func (d *demo) honest(ctx context.Context) (all []*client, err error) {
	for i := range honestAccounts {
		keys, err := account(ctx, d.ashlar, fmt.Sprintf("honest%d@example.org", i), 1)
		if err != nil {
			return nil, err
		}
		all = append(all, newClient(d.host, keys, i+1))
	}
	return all, nil
}
