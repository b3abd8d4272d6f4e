package demo

import (
	"crypto/ecdsa"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// authorityCount is how many accounts delegate their code (EIP-7702).
const authorityCount = 8

// poolLimit is the most pools that a network has, one for each pair of
// neighbouring tokens.
const poolLimit = 4

const (
	collectionCount = 2
	builderCount    = 7 // fee recipients
)

// account can send transactions.
type account struct {
	key     *ecdsa.PrivateKey
	address common.Address
}

// Network is what all blocks of a demo network share. It never changes and may
// be used from many goroutines at once.
type Network struct {
	config    Config
	contracts contracts

	deployer    account   // deploys the contracts, sends nothing after that
	senders     []account // send nearly everything
	authorities []account // delegate to the Delegate contract, and back
	visitor     account   // funded for users of the demo; the traffic never uses it
	holders     []common.Address
	builders    []common.Address

	// Where the first blocks deploy the contracts.
	tokens      []common.Address
	collections []common.Address
	pools       []common.Address // pool i trades token i for token i+1
	emitter     common.Address
	ledger      common.Address
	factory     common.Address
	faults      common.Address
	delegate    common.Address
	scratch     common.Address
}

// New makes the network that a configuration describes, or says what is wrong
// with the configuration.
func New(config Config) (*Network, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	compiled, err := loadContracts()
	if err != nil {
		return nil, err
	}
	n := &Network{config: config, contracts: compiled}
	if err := n.makeAccounts(); err != nil {
		return nil, err
	}
	n.placeContracts()
	return n, nil
}

// AmsterdamBlock is the first block of Amsterdam, 0 for none.
func (n *Network) AmsterdamBlock() uint64 { return n.config.AmsterdamBlock }

func (n *Network) makeAccounts() error {
	var err error
	if n.deployer, err = n.account("deployer", 0); err != nil {
		return err
	}
	if n.senders, err = n.accounts("sender", n.config.Senders); err != nil {
		return err
	}
	if n.authorities, err = n.accounts("authority", authorityCount); err != nil {
		return err
	}
	if n.visitor, err = n.account("visitor", 0); err != nil {
		return err
	}
	for i := range n.config.Holders {
		n.holders = append(n.holders, n.address("holder", i))
	}
	for i := range builderCount {
		n.builders = append(n.builders, n.address("builder", i))
	}
	return nil
}

func (n *Network) accounts(role string, count int) ([]account, error) {
	all := make([]account, count)
	for i := range all {
		var err error
		if all[i], err = n.account(role, i); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// account makes a key that everybody can make.
func (n *Network) account(role string, i int) (account, error) {
	key, err := crypto.ToECDSA(n.hash(role, uint64(i)).Bytes())
	if err != nil {
		return account{}, fmt.Errorf("demo: key of %s %d with seed %d: %w", role, i, n.config.Seed, err)
	}
	return account{key: key, address: crypto.PubkeyToAddress(key.PublicKey)}, nil
}

// address makes an address that nobody has the key of.
func (n *Network) address(role string, i int) common.Address {
	return common.BytesToAddress(n.hash(role, uint64(i)).Bytes())
}

// hash is a fixed random-looking value of the network.
func (n *Network) hash(label string, i uint64) common.Hash {
	return crypto.Keccak256Hash(fmt.Appendf(nil, "ashlar demo network, worth nothing: %s %d, seed %d", label, i, n.config.Seed))
}

// placeContracts works out the addresses: those of the deployer's first
// creations, in the order of [Network.deployments].
func (n *Network) placeContracts() {
	var nonce uint64
	next := func() common.Address {
		at := crypto.CreateAddress(n.deployer.address, nonce)
		nonce++
		return at
	}
	for range n.config.Tokens {
		n.tokens = append(n.tokens, next())
	}
	for range collectionCount {
		n.collections = append(n.collections, next())
	}
	for range min(n.config.Tokens-1, poolLimit) {
		n.pools = append(n.pools, next())
	}
	n.emitter = next()
	n.ledger = next()
	n.factory = next()
	n.faults = next()
	n.delegate = next()
	n.scratch = next()
}
