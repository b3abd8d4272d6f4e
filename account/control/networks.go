package control

import (
	"context"
	"errors"
)

// ErrNotServed means that the server does not serve a network that a command asks for.
var ErrNotServed = errors.New("not served")

type networkRequest struct {
	Network string `json:"network"`
}

// addNetwork begins to serve a network.
var addNetwork = operation[networkRequest, nothing]{"/networks/add"}

// AddNetwork makes the server serve a stored network, too. It has no time limit: to open a store can take long,
// as after a crash, and in a cluster the server waits for the lease of another process.
func (c *Client) AddNetwork(ctx context.Context, name string) error {
	return c.await(ctx, addNetwork.path, networkRequest{name}, new(nothing))
}

// borrowNetwork takes a network out of service.
var borrowNetwork = loan[Borrowing, Borrowed]{"/networks/borrow"}

// Borrowing says which network is taken out of service.
type Borrowing struct {
	Network string `json:"network"`
	// Remove means that the command removes the network, so the server need not be able to open it again.
	Remove bool `json:"remove,omitempty"`
}

// Borrowed describes a network that was taken out of service.
type Borrowed struct {
	// Listed means that the server's configuration lists the network.
	Listed bool `json:"listed"`
}

// BorrowNetwork makes the server take a network out of service and close it, once the
// requests under way are answered. When the loan is closed, the server serves the network
// again if it is still stored. It returns ErrNotServed if the server does not serve it.
func (c *Client) BorrowNetwork(ctx context.Context, what Borrowing) (Borrowed, *Loan, error) {
	_, b, l, err := borrowNetwork.ask(ctx, c, what)
	return b, l, err
}
