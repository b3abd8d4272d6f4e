package feeder

import (
	"errors"
	"fmt"
	"strings"

	"ashlar/starknet"
	"ashlar/starknet/source/wire"

	"github.com/ethereum/go-ethereum/common"
)

// blockReader reads a block, whose members may come in any order.
type blockReader struct {
	in       *wire.Reader
	block    starknet.Block
	receipts []receipt // by transaction index
	seen     map[string]bool
}

// receipt is a receipt with its other members in a gateway's response.
type receipt struct {
	starknet.Receipt
	transaction starknet.Felt
	message     common.Hash // zero if no L1 message was consumed
}

// readBlock reads a response to get_block, or to get_state_update with includeBlock, which has
// the block in a member. The block must be the child of last.
func readBlock(in *wire.Reader, last last) (*starknet.Block, error) {
	r := blockReader{in: in, seen: make(map[string]bool)}
	wrapped := false
	err := in.Object(func(name string) error {
		if name != "block" {
			return r.member(name)
		}
		wrapped = true
		if err := in.Object(r.member); err != nil {
			return err
		}
		return r.finish(last)
	})
	if err == nil && !wrapped {
		err = r.finish(last)
	}
	if err != nil {
		return nil, err
	}
	return &r.block, nil
}

// member reads a member of a block. Several names that gateways have used over time map to the
// same field.
func (r *blockReader) member(name string) (err error) {
	if r.seen[name] {
		return r.in.Fail(errors.New("given twice"))
	}
	r.seen[name] = true
	b, in := &r.block, r.in
	switch name {
	case "parent_block_hash":
		b.Parent, err = in.Felt()
	case "state_root":
		b.NewRoot, err = readRoot(in)
	case "gas_price", "eth_l1_gas_price": // the second in 0.13.0
		b.L1GasPrice.Wei, err = in.Felt()
	case "strk_l1_gas_price": // in 0.13.0
		b.L1GasPrice.Fri, err = in.Felt()
	case "transactions":
		b.Transactions, err = readTransactions(in)
	case "transaction_receipts":
		r.receipts, err = readReceipts(in)
	default:
		// The sequencer exists since 0.8, the version since 0.9.1, gas prices as a single
		// member and commitments since 0.13.1, further commitments since 0.13.2.
		var known bool
		if known, err = in.Header(name, &b.Header); !known {
			err = in.Skip()
		}
	}
	return err
}

// finish checks that the block is complete and follows last.
func (r *blockReader) finish(last last) error {
	for _, name := range []string{"status", "block_hash", "parent_block_hash", "block_number", "state_root", "timestamp", "transactions", "transaction_receipts"} {
		if !r.seen[name] {
			return r.in.FailAt(name, errors.New("missing"))
		}
	}
	if err := r.join(); err != nil {
		return err
	}
	return r.follows(last)
}

// follows checks that the block is the child of last.
func (r *blockReader) follows(last last) error {
	b := &r.block
	switch {
	case last.path == "":
		return nil
	case b.Number <= last.number:
		return r.in.FailAt("block_number", fmt.Errorf("found %d, expected %d: the block was already in %s", b.Number, last.number+1, last.path))
	case b.Number != last.number+1:
		return r.in.FailAt("block_number", fmt.Errorf("found %d, expected %d after the last block of %s", b.Number, last.number+1, last.path))
	case b.Parent != last.hash:
		return r.in.FailAt("parent_block_hash", fmt.Errorf("found %s, expected %s, the hash of block %d in %s", b.Parent, last.hash, last.number, last.path))
	}
	return nil
}

// join assigns the receipts to their transactions.
func (r *blockReader) join() error {
	transactions := r.block.Transactions
	if len(r.receipts) != len(transactions) {
		return r.in.FailAt("transaction_receipts", fmt.Errorf("found %d, expected one for each of %d transactions", len(r.receipts), len(transactions)))
	}
	for i, receipt := range r.receipts {
		if receipt.transaction != transactions[i].Hash {
			return r.in.FailAt(fmt.Sprintf("transaction_receipts[%d].transaction_hash", i),
				fmt.Errorf("found %s, expected %s, the hash of transactions[%d]", receipt.transaction, transactions[i].Hash, i))
		}
		transactions[i].Receipt = receipt.Receipt
		transactions[i].MessageHash = receipt.message
	}
	return nil
}

// readRoot reads a state root, which gateways wrote without 0x until 0.12.3.
func readRoot(in *wire.Reader) (starknet.Felt, error) {
	text, err := in.Text()
	if err != nil {
		return starknet.Felt{}, err
	}
	if !strings.HasPrefix(text, "0x") {
		text = "0x" + text
	}
	root, err := starknet.ParseFelt(text)
	if err != nil {
		return starknet.Felt{}, in.Fail(err)
	}
	return root, nil
}

func readTransactions(in *wire.Reader) ([]starknet.Transaction, error) {
	var transactions []starknet.Transaction
	err := in.Array(func(int) error {
		transaction, err := readTransaction(in)
		transactions = append(transactions, transaction)
		return err
	})
	return transactions, err
}

func readTransaction(in *wire.Reader) (t starknet.Transaction, err error) {
	var contract, sender starknet.Felt
	err = in.Object(func(name string) (err error) {
		switch name {
		case "contract_address":
			contract, err = in.Felt()
		case "sender_address":
			sender, err = in.Felt()
		default:
			err = in.Transaction(name, &t)
		}
		return err
	}, "transaction_hash", "type", "version")
	if err != nil {
		return t, err
	}
	switch t.Kind {
	case starknet.Deploy, starknet.DeployAccount:
		t.ContractAddress = contract
		if contract.IsZero() { // since version 3, the sender is the new account itself
			t.ContractAddress = sender
		}
	}
	return t, nil
}

func readReceipts(in *wire.Reader) ([]receipt, error) {
	var receipts []receipt
	err := in.Array(func(index int) error {
		receipt, err := readReceipt(in, uint64(index))
		receipts = append(receipts, receipt)
		return err
	})
	return receipts, err
}

func readReceipt(in *wire.Reader, index uint64) (r receipt, err error) {
	err = in.Object(func(name string) (err error) {
		switch name {
		case "transaction_hash":
			r.transaction, err = in.Felt()
		case "transaction_index":
			var found uint64
			if found, err = in.Uint64(); err == nil && found != index {
				err = in.Fail(fmt.Errorf("found %d, expected %d, the receipt's index", found, index))
			}
		case "execution_status": // since 0.12.1
			r.Reverted, err = in.Reverted()
		case "revert_error":
			r.RevertReason, err = in.Text()
		case "actual_fee":
			r.ActualFee, err = in.Felt()
		case "execution_resources":
			r.Gas, err = readResources(in)
		case "l1_to_l2_consumed_message":
			r.message, err = readConsumedMessage(in)
		case "l2_to_l1_messages":
			r.Messages, err = in.Messages()
		case "events":
			r.Events, err = in.Events()
		default:
			err = in.Skip()
		}
		return err
	}, "transaction_hash", "transaction_index", "l2_to_l1_messages", "events")
	return r, err
}

// readResources reads the gas that a transaction paid for, which exists since 0.13.2. It ignores
// other resources.
func readResources(in *wire.Reader) (gas starknet.GasUsed, err error) {
	err = in.Object(func(name string) (err error) {
		if name != "total_gas_consumed" {
			return in.Skip()
		}
		gas, err = in.Gas()
		return err
	})
	return gas, err
}
