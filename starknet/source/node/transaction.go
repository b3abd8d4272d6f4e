package node

import (
	"errors"
	"fmt"

	"ashlar/starknet"
	"ashlar/starknet/source/wire"
)

// transactionReader reads a transaction with its receipt. In some versions of the
// specification both have some fields; their values must match.
type transactionReader struct {
	in          *wire.Reader
	transaction starknet.Transaction
	hash        *starknet.Felt // in the transaction; nil if it has none
	kind        starknet.TransactionKind
}

func readTransaction(in *wire.Reader) (starknet.Transaction, error) {
	r := transactionReader{in: in}
	t := &r.transaction
	err := in.Object(func(name string) error {
		switch name {
		case "transaction":
			return in.Object(r.member, "type", "version")
		case "receipt":
			return in.Object(r.receiptMember, "type", "transaction_hash", "actual_fee", "messages_sent", "events", "execution_status")
		}
		return in.Skip()
	}, "transaction", "receipt")
	switch {
	case err != nil:
		return *t, err
	case r.kind != t.Kind:
		return *t, in.FailAt("receipt.type", fmt.Errorf("found %s, but the transaction is %s", r.kind, t.Kind))
	case r.hash != nil && *r.hash != t.Hash:
		return *t, in.FailAt("receipt.transaction_hash", fmt.Errorf("found %s, but the transaction is %s", t.Hash, *r.hash))
	case t.Kind == starknet.Deploy || t.Kind == starknet.DeployAccount:
		if t.ContractAddress.IsZero() {
			return *t, in.FailAt("receipt.contract_address", errors.New("missing"))
		}
	default:
		t.ContractAddress = starknet.Felt{} // the called contract, not a new one
	}
	return *t, nil
}

func (r *transactionReader) member(name string) error {
	if name != "transaction_hash" { // only in some versions
		return r.in.Transaction(name, &r.transaction)
	}
	hash, err := r.in.Felt()
	r.hash = &hash
	return err
}

func (r *transactionReader) receiptMember(name string) (err error) {
	t, in := &r.transaction, r.in
	receipt := &t.Receipt
	switch name {
	case "type":
		r.kind, err = in.Kind()
	case "transaction_hash":
		t.Hash, err = in.Felt()
	case "contract_address":
		t.ContractAddress, err = in.Felt()
	case "message_hash":
		t.MessageHash, err = in.Hash()
	case "execution_status":
		receipt.Reverted, err = in.Reverted()
	case "revert_reason":
		receipt.RevertReason, err = in.Text()
	case "actual_fee":
		receipt.ActualFee, err = readFee(in)
	case "execution_resources":
		receipt.Gas, err = in.Gas() // since 0.8; earlier versions have VM steps and the like
	case "messages_sent":
		receipt.Messages, err = in.Messages()
	case "events":
		receipt.Events, err = in.Events()
	default:
		err = in.Skip()
	}
	return err
}

// readFee reads a fee. Its unit follows from the transaction's version.
func readFee(in *wire.Reader) (amount starknet.Felt, err error) {
	err = in.Object(func(name string) (err error) {
		if name != "amount" {
			return in.Skip()
		}
		amount, err = in.Felt()
		return err
	}, "amount")
	return amount, err
}
