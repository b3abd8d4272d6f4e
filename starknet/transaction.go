package starknet

import "github.com/ethereum/go-ethereum/common"

// Transaction is a transaction with its receipt. It has only the parts that block hashes and
// receipts need.
type Transaction struct {
	Hash      Felt
	Kind      TransactionKind
	Version   uint64
	Signature []Felt // empty if the kind has none

	// ContractAddress is the contract created by a Deploy or DeployAccount.
	ContractAddress Felt
	// MessageHash is the hash of the L1 message consumed by an L1Handler.
	MessageHash common.Hash

	Receipt Receipt
}

// TransactionKind is the kind of a transaction.
type TransactionKind uint8

// The kinds of transactions.
const (
	Invoke TransactionKind = iota + 1
	Declare
	Deploy
	DeployAccount
	L1Handler
)

// String returns the kind as it is written in receipts.
func (k TransactionKind) String() string {
	switch k {
	case Invoke:
		return "INVOKE"
	case Declare:
		return "DECLARE"
	case Deploy:
		return "DEPLOY"
	case DeployAccount:
		return "DEPLOY_ACCOUNT"
	case L1Handler:
		return "L1_HANDLER"
	}
	return "unknown"
}

// Receipt is the outcome of a transaction.
type Receipt struct {
	Reverted     bool
	RevertReason string // empty unless Reverted
	ActualFee    Felt   // in fri since transaction version 3, else in wei
	Gas          GasUsed
	Messages     []Message
	Events       []Event // a reverted transaction may have some
}

// GasUsed is the gas used of each kind; zero if unknown.
type GasUsed struct{ L1, L1Data, L2 uint64 }

// Message is a message to L1.
type Message struct {
	From    Felt // sending contract
	To      Felt // L1 address; not guaranteed to fit 20 bytes
	Payload []Felt
}

// Event is an event emitted by a contract.
type Event struct {
	From Felt // the contract's address
	Keys []Felt
	Data []Felt
}
