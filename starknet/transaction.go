package starknet

import "github.com/ethereum/go-ethereum/common"

// Transaction is a transaction with its receipt: as much of it as block hashes
// and receipts are made of.
type Transaction struct {
	Hash      Felt
	Kind      TransactionKind
	Version   uint64
	Signature []Felt // none where the kind has none

	// ContractAddress is that of the contract which a Deploy or DeployAccount makes.
	ContractAddress Felt
	// MessageHash is that of the message from L1 which an L1Handler takes in.
	MessageHash common.Hash

	Receipt Receipt
}

// TransactionKind is what a transaction does.
type TransactionKind uint8

// The kinds of transactions.
const (
	Invoke TransactionKind = iota + 1
	Declare
	Deploy
	DeployAccount
	L1Handler
)

// String is the kind as receipts name it.
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

// Receipt is what came of a transaction.
type Receipt struct {
	Reverted     bool
	RevertReason string // why, where it reverted
	ActualFee    Felt   // in fri since version 3 of transactions, else in wei
	Gas          GasUsed
	Messages     []Message
	Events       []Event // there may be some although it reverted
}

// GasUsed is what a transaction used of each kind of gas; zero where it was not told.
type GasUsed struct{ L1, L1Data, L2 uint64 }

// Message is a message to L1.
type Message struct {
	From    Felt // the contract that sent it
	To      Felt // an address on L1, though nothing keeps it to 20 bytes
	Payload []Felt
}

// Event is what a contract told of.
type Event struct {
	From Felt // the contract's address
	Keys []Felt
	Data []Felt
}
