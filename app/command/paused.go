package command

import (
	"context"
	"errors"
	"fmt"

	"ashlar/account/control"
	"ashlar/app/config"
	"ashlar/kv"
)

// paused is a network that a running server has taken out of service. The zero value, if no
// server serves the network, does nothing.
type paused struct {
	control.Borrowed
	name   string
	client *control.Client
	loan   *control.Loan
}

// pause has the running server of a data directory take a network out of service, if it
// serves it, until the process ends or calls resume or close.
func pause(ctx context.Context, data string, what control.Borrowing) (p paused, err error) {
	client, err := control.Dial(ctx, data)
	if err != nil {
		return p, nil // no server is running
	}
	p = paused{name: what.Network, client: client}
	if p.Borrowed, p.loan, err = client.BorrowNetwork(ctx, what); err == nil {
		return p, nil
	}
	if errors.Is(err, control.ErrNotServed) {
		err = nil
	}
	return paused{}, errors.Join(err, client.Close())
}

// resume has the server serve the network again.
func (p *paused) resume(ctx context.Context) error {
	if p.client == nil {
		return nil
	}
	if err := p.client.AddNetwork(ctx, p.name); err != nil {
		return fmt.Errorf("the server does not serve the network again: %w", err)
	}
	return nil
}

// close gives the network back to the server, which serves it if it is still stored.
func (p *paused) close() error {
	if p.client == nil {
		return nil
	}
	return errors.Join(p.loan.Close(), p.client.Close())
}

// duringPause runs work on a network. If wanted, a running server takes the network out of
// service meanwhile, and serves it again even if work fails.
func duringPause(ctx context.Context, c config.Config, name string, wanted bool, work func() error) (err error) {
	if !wanted || c.Data == "" {
		return withPauseNamed(work())
	}
	p, err := pause(ctx, c.Data, control.Borrowing{Network: name})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := work(); err != nil {
		return err
	}
	return p.resume(ctx)
}

// withPauseNamed adds to the error of a store in use how a command can have it.
func withPauseNamed(err error) error {
	if errors.Is(err, kv.ErrInUse) {
		return fmt.Errorf("%w; if it is the server, --pause has it stop serving this network meanwhile", err)
	}
	return err
}
